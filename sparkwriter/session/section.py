"""The configuration's sections of the daemon itself, and Spark's."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from settings.section import Section, flatten


class SparkSection(Section):
    """``[spark]``: the one session. ``[spark.conf]`` passes any Spark setting through."""

    master: str = "local[*]"
    warm_up: bool = True
    conf: dict[str, str] = Field(default_factory=dict)

    @field_validator("conf", mode="before", json_schema_input_type=dict[str, Any])
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return flatten(value) if isinstance(value, dict) else value
