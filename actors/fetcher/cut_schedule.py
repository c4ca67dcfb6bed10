"""When a cut is due, and when the processors are to write what they have."""

from __future__ import annotations


class CutSchedule:
    """One per pipeline; used by the fetcher's thread. Times are monotonic seconds.

    What is written at cuts alone would be held for ever where none can be made. So it is written,
    too, where none was made in twice its time.
    """

    def __init__(self, every_s: float | None, patience_s: float) -> None:
        """``every_s``: None: no cut is ever due, and nothing overdue."""
        self._every_s, self._patience_s = every_s, patience_s
        self._due_at: float | None = None
        self._overdue_at: float | None = None
        self._flushed = False

    def due(self, now: float) -> bool:
        """Whether the next cut is to be made."""
        if self._due_at is None:
            self.over(now)
            self.put_off(now)
        return self._due_at is not None and now >= self._due_at

    def soon(self, now: float) -> None:
        """It is due now."""
        self._due_at = now

    def over(self, now: float) -> None:
        """One is made, or given up."""
        if self._every_s is not None:
            self._due_at = now + self._every_s

    def put_off(self, now: float) -> None:
        """From now on one has its whole time until it is overdue."""
        if self._every_s is not None:
            self._overdue_at = now + 2 * self._every_s + self._patience_s

    def rest(self) -> None:
        """A boundary is reached."""
        self._flushed = False

    def flush(self, now: float, *, at_rest: bool) -> bool:
        """Whether the processors are to write, which they then do: once a cut, or if overdue."""
        overdue = self._overdue_at is not None and now >= self._overdue_at
        begins = not self._flushed if at_rest else overdue
        self._flushed |= at_rest
        if begins:
            self.put_off(now)
        return begins
