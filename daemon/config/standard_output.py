"""The standard output of every command: where it can't be written, one line and a status say so."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

READER_GONE = 128 + 13
"""The exit status of a program that SIGPIPE ended."""


class OutputFailed(Exception):
    """Standard output can't be written: why. Empty where its reader has gone, as ``head`` does.

    No OSError: it is not the fault of a file that a command reads or writes.
    """


class CheckedStream:
    """Standard output, which raises OutputFailed alone. None: the caller has closed it."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._closed = stream is None
        self._stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def write(self, text: str) -> int:
        """Write it, or keep it until there is more."""
        if self._closed:
            raise OutputFailed("is closed")
        with _checked():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is kept."""
        with _checked():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self._stream, name)


@contextmanager
def _checked() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise OutputFailed from error
    except OSError as error:
        raise OutputFailed(f"can't be written: {error.strerror or error}") from error


def status_of(command: Callable[[], object]) -> object:
    """Carry a command out, and give the status to exit with. Main thread, once."""
    status: object = 0
    try:
        try:
            command()
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
    except OutputFailed as failed:
        # What is kept must go somewhere when the interpreter ends, or it prints a traceback.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not str(failed):
            return status or READER_GONE
        print(f"binlogd: the standard output {failed}", file=sys.stderr)
        return status or 1
    return status
