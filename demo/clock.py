"""The shop's own time: it moves with the stream, so the same seed gives the same stream."""

from __future__ import annotations

from datetime import UTC, datetime

_START_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC


class Clock:
    """The time of the row events, with its text kept at hand."""

    def __init__(self) -> None:
        """Start with the year 2026."""
        self.ms = _START_MS
        self.text = ""
        """The second as MySQL prints it: ``2026-01-01 00:00:00``."""
        self._until_ms = 0
        self.advance(0)

    def advance(self, ms: int) -> None:
        """Let some time pass."""
        self.ms += ms
        if self.ms >= self._until_ms:
            second = self.ms // 1000
            self._until_ms = (second + 1) * 1000
            self.text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
