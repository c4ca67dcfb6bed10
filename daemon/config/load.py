"""``[load]``: how tables are filled from the source's own database."""

from __future__ import annotations

from pydantic import Field, field_validator

from daemon.config.sections import Section
from daemon.jobs.window import Window


class LoadSection(Section):
    """Of all pipelines. A database has bounds of its own, in ``[database.NAME]``."""

    concurrent: int = Field(1, ge=1, le=16)
    rows_per_s: int | None = Field(None, ge=1)
    chunk_rows: int = Field(200_000, ge=1000, le=10_000_000)
    margin_s: float = Field(60.0, ge=0, le=3600, strict=False)
    settle_s: float = Field(30.0, ge=0, le=3600, strict=False)
    idle_s: float | None = Field(None, gt=0, strict=False)
    spill_bytes: int = Field(8 << 30, ge=1 << 20)
    max_rows_unasked: int = Field(10_000_000, ge=0)
    attempts_per_hour: int = Field(3, ge=1, le=100)
    window: str | None = None

    @field_validator("window")
    @classmethod
    def _hours(cls, value: str | None) -> str | None:
        if value is not None:
            Window.parse(value)
        return value
