"""Processes that a test started: those that it leaves behind where it fails are ended after it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_STARTED: list[subprocess.Popen[str]] = []


def started(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Note it."""
    _STARTED.append(process)
    return process


@contextmanager
def none_is_left() -> Iterator[None]:
    """End what was started meanwhile, and runs still. What fixtures start, they end themselves."""
    before = len(_STARTED)
    try:
        yield
    finally:
        for process in _STARTED[before:]:
            if process.poll() is None:
                process.kill()
                process.wait(60)
        del _STARTED[before:]
