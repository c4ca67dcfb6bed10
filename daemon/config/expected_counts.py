"""``[pipeline.NAME.expected_counts]``: who says how many changes the source made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from daemon.config.pipeline_parts import KafkaSettings
from settings.section import Section

BOUNDS = ("{from}", "{to}")
"""Stand in a query for the range: minutes since 1970, the second one not included."""


class ExpectedCountsSection(Section):
    """Either a topic of counts, or a query that the pipeline's databases answer."""

    topic: str = ""
    kafka: KafkaSettings = Field(default_factory=dict)
    query: str = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.topic) == bool(self.query):
            raise ValueError("topic or query is required, not both")
        if self.kafka and not self.topic:
            raise ValueError("kafka: there is no topic that it could be for")
        if self.query and any(bound not in self.query for bound in BOUNDS):
            raise ValueError(
                "query: {from} and {to} are required in it, the minutes since 1970 of the range"
            )
        return self

    def settings(self, of_pipeline: Mapping[str, Any]) -> dict[str, Any]:
        """The client's settings for the topic: its own overrule the pipeline's."""
        return {**of_pipeline, **self.kafka}

    def sql(self, minutes: range) -> str:
        """The query of a range. Whole numbers alone are put into it."""
        begin, end = (str(int(bound)) for bound in (minutes.start, minutes.stop))
        text = self.query.replace(BOUNDS[0], begin).replace(BOUNDS[1], end)
        return text.strip().rstrip(";")
