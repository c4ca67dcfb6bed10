"""The JVM is killed, or suspended: the daemon goes on, the tables are right.

The daemon is a process of its own with the real broker; its JVM is a child of it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.admin.status.observer import FRESH_S
from daemon.state import control
from tests.integration.rig import Rig, canal
from tests.integration.test_process import ROUTES, Follower, daemon, ended, workload

pytestmark = pytest.mark.long


@pytest.fixture
def follower(rig: Rig) -> Iterator[Follower]:
    made = Follower(rig.log_file)
    yield made
    made.close()


def jvm_of(rig: Rig) -> int:
    """The process id of the JVM that the daemon says is its own."""
    status: dict[str, Any] = control.ask(rig.folder / "state", {"ask": "status"})
    pid = status["spark"]["pid"]
    assert Path(f"/proc/{pid}/comm").read_text() == "java\n"
    return int(pid)


def when_read(rig: Rig, messages: int) -> dict[str, Any]:
    """The first status that shows so many messages read."""
    end = time.monotonic() + 60
    while True:
        status: dict[str, Any] = control.ask(rig.folder / "state", {"ask": "status"})
        if status["pipelines"][0]["messages_read"] == messages:
            return status
        assert time.monotonic() < end, status
        # Answers are shared for so long.
        threading.Event().wait(FRESH_S)


def config_of(rig: Rig, *edits: tuple[str, str], **more: Any) -> Path:
    path = rig.write_config(p=rig.pipeline(**more))
    text = path.read_text()
    for old, new in (("drain_timeout_s = 60", "drain_timeout_s = 120"), *edits):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def stop(process: Any) -> None:
    """It is the process that was started, and it ends in good order."""
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert ended(process, 200) == (0, "")


@pytest.mark.timeout(500)
def test_kill_9_of_the_jvm_under_load_loses_and_doubles_nothing(
    rig: Rig, follower: Follower
) -> None:
    """The same daemon starts another JVM; tables and changelog equal the source afterwards."""
    stream, tables = workload(rig.db, 6_000)
    process = daemon("run", "--config", str(config_of(rig, target=None, route=ROUTES)))
    follower.wait_for("running")
    rig.produce(*stream[: len(stream) // 2])
    follower.wait_for("written", times=3)
    os.kill(jvm_of(rig), signal.SIGKILL)
    rig.produce(*stream[len(stream) // 2 :])
    follower.wait_for("session_rebuilt")
    follower.wait_for("written")
    stop(process)
    assert [event["how"] for event in rig.events("jvm_ended")] == ["was ended by SIGKILL"]
    assert rig.events("crashed") == []
    assert not list((rig.folder / "staging").iterdir())
    for name, rows in tables.items():
        assert rig.rows(name) == sorted((key, *row) for key, row in rows.items())
    places = [
        (row[2], row[3]) for name in tables for row in rig.rows(f"{name}_log", "_offset, _index")
    ]
    assert sorted(places) == [(offset, 0) for offset in range(len(stream))]


@pytest.mark.timeout(500)
def test_a_jvm_that_hangs_past_the_deadline_is_killed_and_replaced(
    rig: Rig, follower: Follower
) -> None:
    """Suspended, it neither writes nor can it be asked to cancel: its write lands by the next."""
    edits = ('kind = "iceberg"', 'kind = "iceberg"\nwrite_timeout_s = 8')
    process = daemon("run", "--config", str(config_of(rig, edits)))
    follower.wait_for("running")
    row = {"id": 1, "name": "a", "qty": 1}
    rig.produce(canal(f"{rig.db}.t", "INSERT", [row]))
    follower.wait_for("written")
    os.kill(jvm_of(rig), signal.SIGSTOP)
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{**row, "id": 2}]))
    follower.wait_for("write_timed_out")
    follower.wait_for("jvm_hangs")
    follower.wait_for("session_rebuilt")
    follower.wait_for("written")
    stop(process)
    reasons = [event["reason"] for event in rig.events("sink_unavailable")]
    assert f"lake.{rig.db}.t: timed out after 8 s" in reasons[0]
    assert rig.rows("t") == [(1, "a", 1), (2, "a", 1)]


@pytest.mark.timeout(500)
def test_a_stop_while_the_session_is_rebuilt_writes_what_is_in_hand(
    rig: Rig, follower: Follower
) -> None:
    """The drain waits for the next JVM as it waits for a sink that is away."""
    process = daemon("run", "--config", str(config_of(rig)))
    follower.wait_for("running")
    follower.wait_for("assigned")
    os.kill(jvm_of(rig), signal.SIGKILL)
    follower.wait_for("jvm_ended")
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    status = when_read(rig, 1)
    assert (status["ready"], status["healthy"]) == (False, True)
    assert status["spark"]["last_end"] == "was ended by SIGKILL"
    stop(process)
    assert rig.rows("t") == [(1, "a", 1)]
