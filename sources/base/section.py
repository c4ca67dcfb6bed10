"""Sections of pipelines: where one reads, where it starts, and its routes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from offsets.position import TopicPartition
from offsets.recovery import StartAt
from settings.section import Section


class StartSection(Section):
    """``start = "earliest"`` or ``[pipeline.NAME.start]``: where to begin when nothing is recorded.

    ``force`` overrules what is recorded, once for each text: change it to force again.
    """

    at: Literal["earliest", "latest", "timestamp", "offset"]
    timestamp: datetime | None = None
    offsets: dict[str, int] = Field(default_factory=dict)
    force: str | None = Field(None, min_length=1)

    @field_validator("offsets")
    @classmethod
    def _partitions(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            TopicPartition.parse(name)
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.at == "timestamp") != (self.timestamp is not None):
            raise ValueError('at = "timestamp" and a timestamp go together')
        if self.timestamp is not None and self.timestamp.tzinfo is None:
            raise ValueError("timestamp needs a zone, such as 2026-01-31T00:00:00Z")
        if (self.at == "offset") != bool(self.offsets):
            raise ValueError('at = "offset" and offsets = {"topic:0" = 123} go together')
        return self

    @property
    def start_at(self) -> StartAt:
        """The setting in the terms of ``offsets``."""
        return StartAt(self.at)
