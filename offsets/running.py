"""Running numbers that a producer gives its messages: they show repeated messages, and gaps.

They are recorded with a position only where they are of the messages just below it. With a number
from further below, messages of a producer that began to count again in between would be dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_SAMPLES = 1024
"""A sample is a batch that was sent on. At the bound every other one is dropped: then fewer
positions have their numbers recorded, and what is recorded stays right."""


@dataclass(frozen=True, slots=True)
class Running:
    """The last number of each stream (shard) below the offset ``at``."""

    at: int
    numbers: Mapping[str, int]


class RunningTrail:
    """The numbers of one partition at the positions that are not done. One thread."""

    def __init__(self, known: Running | None = None) -> None:
        """``known`` is what was recorded with the position that reading began at."""
        self._samples: list[Running] = [] if known is None else [known]

    def add(self, at: int, numbers: Mapping[str, int]) -> None:
        """All below ``at`` was sent on, and these are the numbers then."""
        if self._samples and self._samples[-1].at == at:
            self._samples.pop()
        self._samples.append(Running(at, numbers))
        if len(self._samples) > MOST_SAMPLES:
            self._samples = self._samples[::-1][::2][::-1]

    def at(self, frontier: int) -> Running | None:
        """What to record with a frontier, which only ever grows: None where it is not known."""
        while self._samples and self._samples[0].at < frontier:
            del self._samples[0]
        if self._samples and self._samples[0].at == frontier:
            return self._samples[0]
        return None
