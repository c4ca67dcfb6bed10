"""Deadlines for the demo's steps: each has its own, and all of them one together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Say = Callable[[str], None]


class TooLong(Exception):
    """A step was not done by its deadline; the text names it."""


class Steps:
    """Runs steps one after the other under deadlines. For the main thread: it uses SIGALRM.

    A signal reaches a step wherever it waits, for a process, a socket or the JVM, which a timeout
    handed to each call would not.
    """

    def __init__(self, within_s: float, say: Say) -> None:
        """Start the clock of the whole; ``say`` is told each step's name and duration."""
        self._until = time.monotonic() + within_s
        self._say = say

    @contextmanager
    def step(self, name: str, within_s: float) -> Iterator[None]:
        """Run the block; raises TooLong in it when the step's or the whole's time is up."""
        limit = min(within_s, self._until - time.monotonic())

        def ring(_number: int, _frame: FrameType | None) -> None:
            raise TooLong(f"{name}: not done in {max(limit, 0):.0f} s")

        before = signal.signal(signal.SIGALRM, ring)
        # At the end of the whole a step still gets a moment, not a timer of 0, which means none.
        signal.setitimer(signal.ITIMER_REAL, max(limit, 0.001))
        started = time.monotonic()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self._say(f"{name} ({time.monotonic() - started:.1f} s)")
