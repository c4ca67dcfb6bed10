"""Jobs of a real daemon: beside the flow, over stops and kills, with real topics. No Spark."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner

from daemon.admin.logs import set_up_logs
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.operations import service as desk
from daemon.operations.engine.port import Control, Look, Plan
from daemon.operations.engine.record import Job, JobRequest, State
from daemon.operations.engine.store import JobStore
from daemon.operations.rebuild.kind import RebuildKind
from settings.exit import Exit
from sparkwriter.sinks import ConfiguredSinks
from tests.daemon.operations.toy import Count
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, ended, workload
from tests.integration.test_sqlite_sink import read, start, write_config

pytestmark = pytest.mark.integration

LOAD = "load"


class Load(Count):
    """A kind of that name which counts, and waits at each step until it is let go on."""

    name = LOAD

    def __init__(self) -> None:
        super().__init__(gate=self._wait, concurrent=1)
        self.go_on = threading.Event()

    def _wait(self, control: Control) -> None:
        while not self.go_on.is_set() and not control.wait(0.05):
            pass

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        tables = list(wanted.targets)
        targets = tuple(f"copy.{table}" for table in tables)
        params = {"tables": tables, "to": 3}
        return Plan((JobRequest(LOAD, "p", targets, params, wanted.origin, wanted.signal),))


class Daemon:
    """A real service in this process, on a thread of its own, with real sinks."""

    def __init__(self, path: Path) -> None:
        settings = load(path)
        set_up_logs(settings.log)
        self.service = Service(settings, False, Quiet(), ConfiguredSinks())
        self.status: Exit | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.status = self.service.run()

    def stop(self) -> Exit | None:
        self.service.stop("test")
        self._thread.join(90)
        return self.status


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Load:
    """The daemon has it beside its own."""
    made = Load()
    kinds = {LOAD: made, "rebuild": RebuildKind()}
    monkeypatch.setattr(desk, "kinds_of", lambda config=None: kinds)
    return made


@pytest.fixture
def follower(rig: Rig) -> Iterator[Follower]:
    made = Follower(rig.log_file)
    yield made
    made.close()


def insert(rig: Rig, key: int) -> bytes:
    return canal(f"{rig.db}.t", "INSERT", [{"id": key, "name": "n", "qty": key}])


def jobs(path: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, ["jobs", *words, "--json", "-c", str(path)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def with_topics(rig: Rig, path: Path) -> tuple[str, str]:
    signals, notifications = f"signals-{rig.db}", f"notifications-{rig.db}"
    rig.create_topic(signals)
    rig.create_topic(notifications)
    section = f'[jobs]\nsignals_topic = "{signals}"\nnotifications_topic = "{notifications}"\n'
    path.write_text(path.read_text() + section)
    return signals, notifications


def send(rig: Rig, topic: str, value: Any, key: str | None = None) -> None:
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    producer.produce(topic, json.dumps(value).encode(), key)
    assert producer.flush(30) == 0


def notified(rig: Rig, topic: str, until: str) -> list[dict[str, Any]]:
    """What came, until one of that type did."""
    consumer = Consumer(
        {
            "bootstrap.servers": rig.broker.bootstrap,
            "group.id": rig.db,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[dict[str, Any]] = []
    try:
        while not found or found[-1]["type"] != until:
            message = consumer.poll(60.0)
            assert message is not None, found
            assert message.error() is None
            value = message.value()
            assert value is not None
            assert message.key() == b"p"
            found.append(json.loads(value))
    finally:
        consumer.close()
    return found


@pytest.mark.timeout(200)
def test_signals_become_jobs_beside_the_flow(rig: Rig, kind: Load, follower: Follower) -> None:
    """Begun, paused, carried over a stop, ended; each told in Debezium's form. The flow goes on,
    and a signal that is no good is in the log by its place."""
    path = write_config(rig)
    signals, notifications = with_topics(rig, path)
    first = Daemon(path)
    follower.wait_for("signals_from")
    send(rig, signals, {"type": "execute-snapshot", "data": {"data-collections": ["(a|b).t"]}})
    follower.wait_for("signal_refused")
    (refused,) = rig.events("signal_refused")
    assert refused["signal"] == f"{signals}:0@0"
    data = {"type": "incremental", "data-collections": [f"{rig.db}.t"]}
    send(rig, signals, {"id": "s-1", "type": "execute-snapshot", "data": data}, key="p")
    follower.wait_for("job_started")
    rig.produce(insert(rig, 1))
    follower.wait_for("written")
    (row,) = jobs(path, "list")
    assert (row["state"], row["targets"]) == ("running", [f"copy.{rig.db}.t"])
    send(rig, signals, {"id": "s-2", "type": "pause-snapshot"})
    follower.wait_for("signal_carried_out")
    assert first.stop() is Exit.OK
    (stored,) = JobStore(rig.folder / "state").load().jobs
    assert stored.state is State.PAUSED
    kind.go_on.set()
    second = Daemon(path)
    send(rig, signals, {"id": "s-3", "type": "resume-snapshot"})
    follower.wait_for("job_done")
    assert second.stop() is Exit.OK
    told = notified(rig, notifications, "COMPLETED")
    types = [one["type"] for one in told if one["type"] != "IN_PROGRESS"]
    assert types == ["STARTED", "PAUSED", "RESUMED", "COMPLETED"]
    assert {one["id"] for one in told} == {"s-1"}
    assert told[0]["additional_data"]["data_collections"] == f"{rig.db}.t"
    assert read(rig, "t") == [(1, "n", 1)]
    assert len(JobStore(rig.folder / "state").load().jobs) == 1


@pytest.mark.timeout(200)
def test_a_failing_job_does_not_disturb_the_flow(rig: Rig, kind: Load, follower: Follower) -> None:
    """It is shown as failed, in status and metrics; a stop then ends in good order."""

    def breaks(job: Job, control: Control) -> Any:
        raise KeyError("nobody thought of it")

    kind.step = breaks  # type: ignore[method-assign]
    path = write_config(rig)
    path.write_text(path.read_text() + '[metrics]\nlisten = "127.0.0.1:0"\n')
    running = Daemon(path)
    follower.wait_for("running")
    running.service._jobs.runner.add(JobRequest(LOAD, "p")).result(30)
    follower.wait_for("job_failed")
    rig.produce(insert(rig, 1))
    follower.wait_for("written")
    shown = CliRunner().invoke(app, ["status", "-c", str(path)])
    assert "failed" in shown.output
    assert "KeyError" in shown.output
    port = rig.events("metrics")[0]["port"]
    metrics = subprocess.run(
        [sys.executable, "-c", _GET, f"http://127.0.0.1:{port}/metrics"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "binlogd_job_state{" in metrics
    assert running.stop() is Exit.OK
    assert read(rig, "t") == [(1, "n", 1)]


_GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rebuild_over_kill_9_is_one_job(rig: Rig) -> None:
    """A damaged table, asked for on the running daemon, killed in the middle: equal, and done."""
    stream, tables = workload(rig.db, 40_000)
    path = write_config(rig)
    rig.produce(*stream)
    assert ended(start(path, "--until-caught-up"))[0] == 0
    name = f"copy.{rig.db}.t1"
    with sqlite3.connect(rig.folder / "copy.db") as file:
        file.execute(f"UPDATE \"{rig.db}.t1\" SET name = 'wrong'")
    file.close()
    follower = Follower(rig.log_file)
    try:
        process = start(path)
        follower.wait_for("running", times=2)
        asked = ["tables", "rebuild", name, "-c", str(path)]
        begun = CliRunner().invoke(app, asked)
        assert begun.exit_code == 0, begun.output
        follower.wait_for("rebuilding")
        follower.wait_for("written")
        process.kill()
        ended(process)
        (row,) = jobs(path, "list")
        assert (row["kind"], row["targets"]) == ("rebuild", [name])
        assert row["state"] in ("running", "waiting")
        process = start(path)
        follower.wait_for("job_done")
        process.terminate()
        assert ended(process)[0] == 0
    finally:
        follower.close()
    (row,) = jobs(path, "list")
    assert (row["state"], row["progress"]["ratio"]) == ("done", 1.0)
    for table, rows in tables.items():
        assert read(rig, table) == [(key, *row) for key, row in sorted(rows.items())]
