"""Settings for what can't be applied: a part of a pipeline's section."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from daemon.config.sections import Section


class FaultSection(Section):
    """Nothing is skipped unless these settings ask for it. Then it is kept, never dropped."""

    on_bad_record: Literal["stop", "dead-letter"] = "stop"
    dead_letters: str = "file"
    dead_letter_retry_s: float = Field(60.0, ge=0, strict=False)
    retention_s: float | None = Field(None, ge=3600, strict=False)
    max_bad_records_per_hour: int = Field(1000, ge=1)
    on_refused_target: Literal["stop", "quarantine", "reload"] = "stop"
    quarantine_bytes: int = Field(1 << 30, ge=1 << 20)
    on_quarantine_full: Literal["pause", "stop"] = "pause"
    away_after_s: float = Field(60.0, gt=0, strict=False)
    away_spill_bytes: int = Field(8 << 30, ge=1 << 20)

    @field_validator("dead_letters")
    @classmethod
    def _known_store(cls, value: str) -> str:
        if value != "file" and not re.fullmatch(r"topic:[A-Za-z0-9._-]{1,249}", value):
            raise ValueError(f'"file" or "topic:NAME" is wanted, not {value!r}')
        return value

    @model_validator(mode="after")
    def _letters_to_remove(self) -> Self:
        if self.retention_s is not None and self.on_bad_record == "stop":
            raise ValueError('retention_s: no dead letter is kept with on_bad_record = "stop"')
        if self.retention_s is not None and self.dead_letter_topic is not None:
            raise ValueError("retention_s: letters in a topic expire by its retention.ms")
        return self

    @property
    def dead_letter_topic(self) -> str | None:
        """The topic's name, None if letters are kept in a file."""
        return None if self.dead_letters == "file" else self.dead_letters.removeprefix("topic:")
