"""Where log lines go: a file or standard error that may be full, or gone, without any harm.

What a line is told of has happened and goes on. Were a full disk an error of whoever logs, it would
end the actor, and with it the process, that is about to try again until there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO


class LogStream:
    """Writes whole lines; those that are not taken are counted, and told with the next that is.

    For ``structlog.PrintLogger``, which holds a lock for the stream: one thread at a time.
    """

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        """``lost`` makes the line that tells how many are not there."""
        self._stream = stream
        self._lost = lost
        self._line = ""
        self._missing = 0

    def write(self, text: str) -> int:
        """Take a part of a line."""
        self._line += text
        return len(text)

    def flush(self) -> None:
        """The line is whole."""
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
