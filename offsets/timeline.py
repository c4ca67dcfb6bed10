"""Times at which a partition's messages were made: a few samples, kept for what is not done."""

from __future__ import annotations

from bisect import bisect_right

MOST_SAMPLES = 1024
"""A sample is a fetched batch. A target that stands still for days must not make this grow: at the
bound every other sample goes, so the answers get coarser and stay right."""


class Timeline:
    """Maps an offset to the source's time, as exactly as a fetched batch. One thread."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times_ms: list[int] = []

    def add(self, next_offset: int, time_ms: int) -> None:
        """The last message below ``next_offset`` was made at ``time_ms`` (Unix milliseconds)."""
        self._ends.append(next_offset)
        self._times_ms.append(time_ms)
        if len(self._ends) > MOST_SAMPLES:
            # The newest stays: it says how fresh the whole is.
            self._ends = self._ends[::-1][::2][::-1]
            self._times_ms = self._times_ms[::-1][::2][::-1]

    def time_ms(self, offset: int) -> int | None:
        """When the message at that offset was made, None when no sample covers it."""
        at = bisect_right(self._ends, offset)
        return self._times_ms[at] if at < len(self._ends) else None

    def newest_below(self, offset: int) -> int | None:
        """The time of the newest message below ``offset``, None when nothing is known of it."""
        at = bisect_right(self._ends, offset) - 1
        return self._times_ms[at] if at >= 0 else None

    def forget_below(self, frontier: int) -> None:
        """Everything below is done: keep only the sample that shows how fresh that is."""
        at = bisect_right(self._ends, frontier) - 1
        if at > 0:
            del self._ends[:at]
            del self._times_ms[:at]
