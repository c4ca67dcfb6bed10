"""What becomes of signals: jobs, and a line in the log for each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors.runtime.backoff import BackOff
from daemon.operations.engine.context import DaemonLook
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import JobRequest, State
from daemon.operations.signals import SignalDesk
from databases.base.errors import DatabaseAway
from offsets.position import TopicPartition
from sources.base.port import LogRecord
from tests.daemon.operations.job_rig import JobRig
from tests.daemon.operations.toy import Count

LANE = TopicPartition("signals", 0)


class Load(Count):
    """A load that counts, planned by patterns as the real one is: a job for each table that is
    asked for, of those that there are."""

    name = "load"

    def __init__(self, *tables: str) -> None:
        super().__init__(gate=lambda control: control.wait(30), concurrent=9)
        self.tables = tables
        self.away = 0

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        if self.away:
            self.away -= 1
            raise DatabaseAway("the database is away")
        chosen = [table for table in self.tables if table in wanted.targets]
        if not chosen:
            return Plan((), refusals=("no table matches",))
        document = {"patterns": chosen}
        return Plan(tuple(self._of(table, wanted) for table in chosen), document=document)

    def _of(self, table: str, wanted: JobRequest) -> JobRequest:
        params = {"tables": [table], "to": 9}
        return JobRequest("load", "shop", (f"lake.{table}",), params, wanted.origin)


class World:
    """A desk over a running runner."""

    def __init__(self, folder: Path) -> None:
        self.kind = Load("shop.a", "shop.b")
        self.rig = JobRig(folder, self.kind)
        self.rig.start()
        kinds = {"load": self.kind}
        quick = BackOff(30.0, base_s=0.001)
        self.desk = SignalDesk(self.rig.runner, kinds, lambda: DaemonLook(self.rig.daemon), quick)
        self.offset = 0

    def send(self, type_: str, *tables: str, key: bytes | None = None, again: bool = False) -> Any:
        """Carry one out; gives the last event of the log."""
        self.offset += not again
        value = {"id": "s1", "type": type_, "data": {"data-collections": list(tables)}}
        record = LogRecord(self.offset, key, json.dumps(value).encode(), (), 0)
        with capture_logs() as said:
            self.done = self.desk.carry_out(LANE, record, "topic-id")
        return next((e for e in reversed(said) if e["event"].startswith("signal_")), None)

    def states(self) -> dict[str, State]:
        jobs = self.rig.runner.jobs
        return {job.wanted.params["tables"][0]: job.state for job in jobs}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.rig.runner.stop(30)


def test_a_snapshot_is_a_load_of_each_table(world: World) -> None:
    """Recorded, with where it came from."""
    said = world.send("execute-snapshot", "shop.a", "shop.b")
    assert said["event"] == "signal_carried_out"
    jobs = world.rig.runner.jobs
    assert [job.id for job in jobs] == said["jobs"]
    assert {job.wanted.origin for job in jobs} == {"signal signals:0@1"}
    assert {job.wanted.signal for job in jobs} == {"s1"}


def test_a_signal_that_is_read_again_begins_nothing(world: World) -> None:
    """A crash came before its place was stored."""
    first = world.send("execute-snapshot", "shop.a")
    again = world.send("execute-snapshot", "shop.a", again=True)
    assert first["jobs"] == again["jobs"]
    assert len(world.rig.runner.jobs) == 1
    assert world.send("execute-snapshot", "shop.a")["jobs"] != first["jobs"]


def test_what_can_not_be_done_is_told_by_name(world: World) -> None:
    """Nothing is recorded."""
    said = world.send("execute-snapshot", "shop.c")
    assert (said["event"], said["log_level"]) == ("signal_refused", "error")
    assert (said["signal"], said["reason"]) == ("signals:0@1", "shop: no table matches")
    assert world.send("shout")["event"] == "signal_refused"
    assert world.send("pause-snapshot")["reason"] == "there is no load that it could be for"
    other = world.send("execute-snapshot", "shop.a", key=b"dbserver1")
    assert (other["event"], other["log_level"]) == ("signal_of_others", "info")
    assert world.rig.runner.jobs == ()


def test_loads_are_paused_resumed_and_stopped(world: World) -> None:
    """All, or those of the tables that are named."""
    world.send("execute-snapshot", "shop.a", "shop.b")
    ids = {job.wanted.params["tables"][0]: job.id for job in world.rig.runner.jobs}
    assert sorted(world.send("pause-snapshot")["jobs"]) == sorted(ids.values())
    for id_ in ids.values():
        world.rig.wait(id_, lambda job: job.state is State.PAUSED)
    assert "is paused already" in world.send("pause-snapshot")["reason"]
    world.send("resume-snapshot")
    for id_ in ids.values():
        world.rig.wait(id_, lambda job: job.state is State.RUNNING)
    assert world.send("stop-snapshot", "shop.b")["jobs"] == [ids["shop.b"]]
    world.rig.ended(ids["shop.b"])
    assert world.states() == {"shop.a": State.RUNNING, "shop.b": State.CANCELLED}


def test_a_signal_at_a_stop_is_left_for_the_next_start(world: World) -> None:
    """It is not refused: nothing is wrong with it. Told once."""
    world.rig.runner.stop(30)
    said = world.send("execute-snapshot", "shop.a")
    assert (said["event"], world.done) == ("signal_left", False)
    assert world.send("execute-snapshot", "shop.a", again=True) is None
    world.rig.restart()
    world.desk._runner = world.rig.runner
    assert world.send("execute-snapshot", "shop.a", again=True)["event"] == "signal_carried_out"
    assert world.done


def test_a_signal_whose_job_can_not_be_stored_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: it is tried again."""

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        said = world.send("execute-snapshot", "shop.a")
    assert (said["event"], said["reason"], world.done) == ("signal_left", "no space left", False)
    assert world.send("execute-snapshot", "shop.a", again=True)["event"] == "signal_carried_out"


def test_a_database_that_is_away_is_waited_for(world: World) -> None:
    """Not as long as one likes: the signals behind wait as well."""
    world.kind.away = 3
    assert world.send("execute-snapshot", "shop.a")["event"] == "signal_carried_out"
    world.kind.away = 1_000
    world.desk._back_off = BackOff(0.0)
    said = world.send("execute-snapshot", "shop.b")
    assert (said["event"], said["reason"]) == ("signal_refused", "the database is away")


def test_a_kind_that_is_not_there_is_told(world: World) -> None:
    """As of a binlogd without loads."""
    world.desk._kinds = {}
    assert "no job of the kind 'load'" in world.send("execute-snapshot", "shop.a")["reason"]


def test_a_fault_in_a_plan_ends_no_reader(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged with its traceback, and the next signal is read."""

    def breaks(*_: object) -> Plan:
        raise KeyError("nobody thought of it")

    with monkeypatch.context() as patched:
        patched.setattr(world.kind, "plan", breaks)
        said = world.send("execute-snapshot", "shop.a")
    assert (said["event"], said["exc_info"]) == ("signal_refused", True)
    assert world.send("execute-snapshot", "shop.a")["event"] == "signal_carried_out"
