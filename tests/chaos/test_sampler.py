"""The soak's eyes: what a process holds is seen, and an event that comes wakes who waits."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.chaos.events import EventLog
from tests.chaos.sampler import look


def held() -> dict[str, float]:
    """What this process holds."""
    return dict(next(iter(look(os.getpid())))[1])


def test_open_files_and_threads_are_counted(tmp_path: Path) -> None:
    """Each one more is one more."""
    ended = threading.Event()
    before = held()
    with (tmp_path / "a").open("w"), (tmp_path / "b").open("w"):
        thread = threading.Thread(target=ended.wait)
        thread.start()
        after = held()
        ended.set()
        thread.join()
    assert after["files"] == before["files"] + 2
    assert after["threads"] == before["threads"] + 1


def test_memory_is_counted() -> None:
    """In megabytes."""
    before = held()["rss_mb"]
    block = bytearray(os.urandom(1 << 20) * 64)
    assert held()["rss_mb"] == pytest.approx(before + 64, abs=10)
    assert len(block) == 64 << 20


def test_an_event_of_the_log_wakes_who_waits_for_it(tmp_path: Path) -> None:
    """A line that was cut off by a kill is no event, and one that never comes is told."""
    path = tmp_path / "binlogd.log"
    log = EventLog(path)
    try:
        with path.open("a") as file:
            file.write('{"event": "writ\n' + json.dumps({"event": "written"}) + "\n")
        log.reach("written", 1, 20)
        assert log.count("written") == 1
        with pytest.raises(TimeoutError, match="no assigned"):
            log.reach("assigned", 1, 0.1)
    finally:
        log.close()
