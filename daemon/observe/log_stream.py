"""The stream of log lines: a file or standard error that may be full, or gone, without harm.

What a line reports has happened and goes on. If a full disk raised an error in the caller, it would
end the actor, and with it the process, which is about to retry until there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO


class LogStream:
    """Writes whole lines. Lines that can't be written are counted and reported with the next one.

    For ``structlog.PrintLogger``, which holds a lock for the stream: one thread at a time.
    """

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        """``lost`` makes the line that reports how many are missing."""
        self._stream = stream
        self._lost = lost
        self._line = ""
        self._missing = 0

    def write(self, text: str) -> int:
        """Add a part of a line."""
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Write the line."""
        line, self._line = self._line, ""
        if not line:
            return
        notice = f"\n{self._lost(self._missing)}\n" if self._missing else ""
        try:
            self._stream.write(notice + line)
            self._stream.flush()
        except (OSError, ValueError):  # full, or gone; closed
            self._missing += 1
        else:
            self._missing = 0
