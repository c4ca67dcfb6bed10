"""Failures of a collector's task in a row, and when it is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from actors.runtime.backoff import Waits

STEADY_S = 60.0
"""A task that has run for so long and fails begins a new row of failures."""

_WAITS = Waits(5.0, 300.0)


@dataclass(slots=True)
class Failures:
    """``count``: in a row; ``restarts``: in all. ``again_s``: the monotonic second of the next
    restart, None where none is due."""

    count: int = 0
    restarts: int = 0
    again_s: float | None = None
    _running_s: float | None = None

    def runs(self, now: float) -> None:
        """The task runs."""
        self._running_s = now if self._running_s is None else self._running_s
        self.again_s = None
        if now - self._running_s >= STEADY_S:
            self.count = 0

    def failed(self, now: float) -> bool:
        """It has failed; whether that is news."""
        if self.again_s is not None:
            return False
        self.count += 1
        self._running_s = None
        self.again_s = now + _WAITS.after(self.count)
        return True

    def due(self, now: float) -> bool:
        """Whether it is to be started again now; then it counts as done."""
        if self.again_s is None or now < self.again_s:
            return False
        self.again_s = None
        self.restarts += 1
        return True

    def forget(self) -> None:
        """Somebody has seen to it: the next failure is the first."""
        self.count, self.again_s = 0, None
