"""Every kind of job can be asked for by each way that it has, and only by a request that it knows.

A kind that is added without a line in ``KINDS`` fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from changes.model.model import TableName
from daemon.operations.engine import source_targets as targets
from daemon.operations.engine.context import DaemonLook
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.load import plan as load_plan
from daemon.operations.load.estimates import Flow
from daemon.operations.load.memory import LoadMemory
from daemon.operations.load.rule import new_memory
from daemon.operations.registry import kinds_of
from daemon.operations.service import JobsDesk
from daemon.operations.signals import SignalDesk
from databases.base.port import SourceTable
from offsets.position import TopicPartition
from sources import opening
from sources.base.port import LogRecord
from tests.daemon.flow import Log
from tests.daemon.operations.job_rig import JobRig

LOADED = {"targets": ["lake.shop.a"], "params": {"tables": ["shop.a"], "rows": {"lake.shop.a": 3}}}

KINDS: Mapping[str, tuple[dict[str, Any], list[dict[str, Any]], bool]] = {
    "load": (
        LOADED,
        [
            {"targets": []},
            {"targets": ["lake.shop.a", "lake.shop.b"]},
            {"targets": ["nothing"]},
            {"params": {}},
            {"params": {"tables": "shop.a"}},
            {"params": {"tables": ["a"]}},
            {"params": {"tables": [5]}},
            {"params": {"tables": ["shop.a"], "rows": {"lake.shop.a": "three"}}},
            {"params": {"tables": ["shop.a"], "rows": [3]}},
        ],
        True,
    ),
    "verify": (
        {"targets": ["lake.shop.a"], "params": {"tables": ["shop.a"], "sample": 1.0}},
        [
            {"targets": []},
            {"params": {"sample": 1.0}},
            {"params": {"tables": ["shop.a", "shop.b"], "sample": 1.0}},
            {"params": {"tables": ["shop.a"]}},
            {"params": {"tables": ["shop.a"], "sample": "all"}},
        ],
        False,
    ),
    "rebuild": (
        {"targets": ["lake.shop.a"], "params": {"keep_old": True}},
        [{"targets": []}, {"targets": ["lake.shop.a", "lake.shop.b"]}, {"targets": ["nothing"]}],
        False,
    ),
}
"""By kind: a request that it takes, what of it makes it none, and whether signals ask for it."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[JobsDesk]:
    """The desk of a daemon whose jobs are recorded, and not begun."""
    made = JobsDesk(JobRig(tmp_path).daemon)
    made.runner.open()
    made.runner._crew.do = lambda effect: None  # type: ignore[method-assign]
    made.runner.start()
    yield made
    made.runner.stop(0.1)


def test_each_kind_has_its_requests() -> None:
    """A new kind says here how it is asked for."""
    assert KINDS.keys() == kinds_of().keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_job_is_recorded_of_what_the_kind_knows(kind: str, desk: JobsDesk) -> None:
    """What would fail at its first step is refused by name, and not recorded."""
    good, bad, _ = KINDS[kind]
    for change in bad:
        wanted = {**good, **change}
        asked = JobRequest(kind, "shop", tuple(wanted["targets"]), wanted.get("params", {}))
        with pytest.raises(ValueError, match=f"a {kind} "):
            desk.runner.add(asked).result(10)
    assert desk.runner.jobs == ()
    asked = JobRequest(kind, "shop", tuple(good["targets"]), good["params"])
    id_ = desk.runner.add(asked).result(10).id
    assert [job.id for job in desk.runner.jobs] == [id_]


class Signals:
    """A desk of signals over the real kinds; the source's tables are ``shop.a`` and ``shop.b``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset = 1
        monkeypatch.setitem(opening.ADAPTERS, "kafka", Log().source)
        rig = JobRig(folder)
        self.desk = JobsDesk(rig.daemon)
        self.desk.runner.open()
        self.desk.runner._crew.do = lambda effect: None  # type: ignore[method-assign]
        self.desk.runner.start()
        self.signals = SignalDesk(self.desk.runner, kinds_of(), lambda: DaemonLook(rig.daemon))
        config = rig.config
        pipeline = type(config.pipeline["shop"])
        tables = [("db", TableName("shop", "a")), ("db", TableName("shop", "b"))]
        monkeypatch.setattr(pipeline, "named_databases", lambda self: [("*", "db")])
        monkeypatch.setattr(targets, "_tables", lambda *_: iter(tables))
        monkeypatch.setattr(load_plan, "_not_now", lambda *_: iter(()))
        monkeypatch.setattr(load_plan, "flow_of", lambda *_: Flow(0.0, 0))
        monkeypatch.setattr(load_plan, "_why_margin", lambda *_: "")
        source = SourceTable(tables[0][1], (), (), 1, 1, "")
        monkeypatch.setattr(load_plan, "_described", lambda *_: source)
        monkeypatch.setattr(
            load_plan,
            "_loaded",
            lambda look, name, one, *_: load_plan.Loaded(str(one.target), str(one.table), 1, 1),
        )

    def send(self, *tables: str) -> dict[str, Any]:
        data = {"type": "incremental", "data-collections": list(tables)}
        value = json.dumps({"id": "s", "type": "execute-snapshot", "data": data}).encode()
        record = LogRecord(self.offset, None, value, (), 0)
        with capture_logs() as said:
            self.signals.carry_out(TopicPartition("signals", 0), record, "id")
        return dict(next(e for e in reversed(said) if e["event"].startswith("signal_")))


def test_a_signal_records_loads_that_can_be_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real plan: the tables become targets, which the first step reads."""
    world = Signals(tmp_path, monkeypatch)
    said = world.send("shop.a")
    assert said["event"] == "signal_carried_out", said
    (job,) = world.desk.runner.jobs
    assert [job.id] == said["jobs"]
    assert _first_targets(job) == dict.fromkeys(job.wanted.targets, ("shop", "a"))
    assert len(job.wanted.targets) == 1
    world.desk.runner.stop(0.1)


def test_each_signal_fills_tables_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second load into the same name would put its files into the first one's folder."""
    world = Signals(tmp_path, monkeypatch)
    numbers = set()
    for offset in (1, 2):
        world.offset = offset
        said = world.send("shop.a")
        numbers.add(said["jobs"][0].rpartition("-")[2])
    assert len(numbers) == 2
    world.desk.runner.stop(0.1)


def test_a_signal_for_no_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and records nothing; a pattern is a pattern."""
    world = Signals(tmp_path, monkeypatch)
    said = world.send("shop.c")
    assert said["event"] == "signal_refused"
    assert "shop.c: no table" in said["reason"]
    assert world.desk.runner.jobs == ()
    assert world.send("shop\\..*")["event"] == "signal_carried_out"
    (job,) = world.desk.runner.jobs
    assert len(job.wanted.targets) == 2
    world.desk.runner.stop(0.1)


def test_only_the_kinds_of_the_list_are_asked_for_by_signals() -> None:
    """Debezium's signals know one."""
    assert [kind for kind, (_, _, by_signal) in KINDS.items() if by_signal] == ["load"]


def _first_targets(job: Job) -> dict[str, tuple[str, str]]:
    """As the load's own first step has them."""
    named = dict(zip(job.wanted.targets, job.wanted.params["tables"], strict=True))
    memory: LoadMemory = new_memory(
        {target: tuple(table.split(".", 1)) for target, table in named.items()}, {}
    )
    return {target: filled.table for target, filled in memory.targets.items()}
