"""The hours of a day in which something may begin. Pure; UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass

DAY_S = 86_400

_TEXT = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """From one second of the day until another, over midnight where that is the smaller one."""

    begins_s: int
    ends_s: int

    @classmethod
    def parse(cls, text: str) -> Window:
        """From ``22:00-06:00``, in UTC. Raises ValueError."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f'{text!r} is no window: "22:00-06:00" is wanted, in UTC')
        h1, m1, h2, m2 = map(int, match.groups())
        begins, ends = h1 * 3600 + m1 * 60, h2 * 3600 + m2 * 60
        if begins == ends:
            raise ValueError(f"{text!r} is no window: it ends where it begins")
        return cls(begins, ends)

    def opens_in_s(self, unix_s: float) -> float:
        """Seconds until it is open: 0 while it is."""
        at = unix_s % DAY_S
        if (at - self.begins_s) % DAY_S < (self.ends_s - self.begins_s) % DAY_S:
            return 0.0
        return (self.begins_s - at) % DAY_S

    def __str__(self) -> str:
        begins, ends = (f"{s // 3600:02}:{s % 3600 // 60:02}" for s in (self.begins_s, self.ends_s))
        return f"{begins}-{ends} UTC"
