"""``[pipeline.NAME.verify]``: how targets are compared with the source, and how often."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from daemon.config.sections import Section

_TIME = re.compile(r"(\d+)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class VerifySection(Section):
    """``every`` unset: only when a command asks for it."""

    every: str | None = None
    sample: float = Field(1.0, gt=0, le=1, strict=False)
    margin_s: float = Field(10.0, ge=0, le=3600, strict=False)
    idle_s: float | None = Field(None, gt=0, strict=False)
    wait_s: float = Field(600.0, gt=0, strict=False)

    @field_validator("every")
    @classmethod
    def _span(cls, value: str | None) -> str | None:
        if value is not None and seconds_of(value) < 60:
            raise ValueError('"30m", "12h" or "1d" is wanted, a minute at least')
        return value

    @property
    def every_s(self) -> int | None:
        """The seconds between two verifications."""
        return None if self.every is None else seconds_of(self.every)


def seconds_of(text: str) -> int:
    """Of ``30m``, ``12h``, ``1d``. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'{text!r} is no time: "30m", "12h" or "1d" is wanted')
    return int(found[1]) * _SECONDS[found[2]]
