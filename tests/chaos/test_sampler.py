"""The soak's eyes: what a process holds is seen, and an event that comes wakes who waits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.events import EventLog
from tests.chaos.sampler import look

# Two files, a thread and 64 MB, on a word.
_TAKES = """
import os, sys, threading
def word():
    print(flush=True); sys.stdin.readline()
word()
files = open(os.devnull), open(os.devnull)
threading.Thread(target=threading.Event().wait, daemon=True).start()
block = os.urandom(1 << 20) * 64
word()
"""


def held(pid: int) -> dict[str, float]:
    """What that process holds."""
    return dict(next(iter(look(pid)))[1])


def test_files_threads_and_megabytes_are_counted() -> None:
    """Each one more is one more."""
    with subprocess.Popen(
        [sys.executable, "-c", _TAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        before = held(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        after = held(child.pid)
    assert after["files"] == before["files"] + 2
    assert after["threads"] == before["threads"] + 1
    assert after["rss_mb"] == pytest.approx(before["rss_mb"] + 64, abs=10)


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
