"""Growing waits before the next attempt, in one place for all that retry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MOST_DOUBLINGS = 20
"""A million times the first wait: beyond every ``max_s``, and far from a float's end."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds: ``base_s`` after the first failure, doubling up to ``max_s``. Pure, any thread.

    ``jitter`` gives 0..1 and takes up to half of a wait away, so that many that failed at once
    don't retry at once; without it waits are whole.
    """

    base_s: float
    max_s: float
    jitter: Callable[[], float] | None = None

    def after(self, failures: int) -> float:
        """The wait after so many failures in a row, from 1."""
        wait = min(self.max_s, self.base_s * 2.0 ** min(failures - 1, MOST_DOUBLINGS))
        return wait if self.jitter is None else wait * (0.5 + self.jitter() / 2)
