"""A run of tests that has to end in time: CI's machine may be half as fast as yesterday's.

``TEST_END`` is when, in seconds since 1970: a test that would begin later is skipped, with a line.
``TEST_TURN``, a commit, decides which file of tests begins, so that each gets its turn.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest


def in_turn(items: list[pytest.Item], turn: str) -> list[pytest.Item]:
    """The tests from another file on, those of one file together. ``turn``: hexadecimal digits."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    first = int(turn, 16) % max(len(files), 1)
    ordered = [*files.values()]
    return [item for file in (*ordered[first:], *ordered[:first]) for item in file]


def skip_when_over() -> None:
    """Skip the test where the time of the run is up."""
    end = os.environ.get("TEST_END")
    if end and time.time() > float(end):
        pytest.skip("the time of this run is up (TEST_END); another commit begins with this file")
