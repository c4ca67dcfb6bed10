"""Retries with growing waits, for a bounded time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

# Growing waits before the next attempt, in one place for all that retry.

MOST_DOUBLINGS = 20
"""A million times the first wait: beyond every ``max_s``, and far from a float's end."""


RETRY_BASE_S, RETRY_MAX_S = 0.5, 30.0
"""Between attempts to write: into a sink, a spill, a store of dead letters."""


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


T = TypeVar("T")

BASE_S = 0.1
"""The first wait. An answer that was lost by chance arrives at the second attempt."""

MAX_S = 5.0
"""The longest wait. A broker that is back is asked again after this time at the latest."""


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class BackOff:
    """Waits ``base_s`` seconds after the first failure, doubling up to ``max_s``.

    ``jitter`` returns 0..1 and shortens a wait by up to half, so that clients that failed together
    do not retry together. ``clock`` is in monotonic seconds. Blocks the calling thread.
    """

    within_s: float
    base_s: float = BASE_S
    max_s: float = MAX_S
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = _pause
    jitter: Callable[[], float] = random.random

    def call(
        self,
        act: Callable[[], T],
        passing: tuple[type[Exception], ...],
        on_failure: Callable[[Exception, int], object],
    ) -> T:
        """Call ``act`` until it returns. ``on_failure`` gets each failure and its number.

        Raises what ``act`` raised: at once if it is none of ``passing``, else when the next attempt
        would begin after ``within_s`` seconds. A running attempt is not cut short.
        """
        end = self.clock() + self.within_s
        attempt = 0
        while True:
            try:
                return act()
            except passing as error:
                attempt += 1
                on_failure(error, attempt)
                wait = Waits(self.base_s, self.max_s, self.jitter).after(attempt)
                if self.clock() + wait > end:
                    raise
            self.pause(wait)
