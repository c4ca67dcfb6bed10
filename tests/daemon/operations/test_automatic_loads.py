"""Which loads are recorded without a command."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daemon.config.config import Config
from daemon.operations import automatic_loads as unasked
from daemon.operations.automatic_loads import AutomaticLoads, due
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Job, JobRequest, State, new_job
from daemon.operations.figures import refused_figures
from daemon.operations.load.kind import LoadKind
from daemon.operations.load.plan import FIRST_SIGHT, RELOAD
from databases.base.errors import DatabaseAway
from offsets.position import TopicPartition
from offsets.rebuild import Load, Rebuild
from offsets.snapshot import Snapshot, SpillMark, TargetMark

P0 = TopicPartition("binlog", 0)
NOW_MS = 1_700_000_000_000
OLD, NEW, BAD = "lake.s.old", "lake.s.new", "lake.s.bad"


def config(folder: Path, **pipeline: Any) -> Config:
    section = {
        "topics": ["binlog"], "format": "canal-json", "target": "lake.{database}.{table}",
        "database": "shop", **pipeline,
    }  # fmt: skip
    return Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "x:1"},
            "sink": {"lake": {"kind": "sqlite", "path": "x.db"}},
            "daemon": {"state_dir": str(folder)},
            "database": {"shop": {"url": "jdbc:mysql://h", "user": "u"}},
            "pipeline": {"p": section},
        }
    )


def snapshot() -> Snapshot:
    return Snapshot(
        "p",
        "g",
        targets={name: TargetMark("v", {P0: 1}) for name in (OLD, NEW)},
        spills={BAD: SpillMark(1, {P0: (1, 2)})},
    )


def job(*targets: str, state: State = State.DONE, origin: str = RELOAD, age_s: int = 60) -> Job:
    wanted = JobRequest("load", "p", targets, {}, origin)
    return replace(new_job(wanted, NOW_MS - age_s * 1000), state=state)


def found(folder: Path, jobs: list[Job], here: Snapshot, **pipeline: Any) -> list[tuple[str, str]]:
    section = config(folder, **pipeline).pipeline["p"]
    return list(due(here, section, jobs, {OLD}, NOW_MS))


def test_nothing_is_loaded_unless_it_is_configured(tmp_path: Path) -> None:
    """Off by default."""
    assert not config(tmp_path).pipeline["p"].loads_unasked
    assert not found(tmp_path, [], snapshot())


def test_a_table_that_appears_is_loaded(tmp_path: Path) -> None:
    """Not one that was there."""
    assert found(tmp_path, [], snapshot(), load="on-first-sight") == [(NEW, FIRST_SIGHT)]


@pytest.mark.parametrize(
    "how", [{"on_refused_target": "reload"}, {"ddl": {"lossy_change": "reload"}}]
)
def test_a_target_in_quarantine_is_loaded(tmp_path: Path, how: dict[str, Any]) -> None:
    """For whichever reason it is there."""
    assert found(tmp_path, [], snapshot(), **how) == [(BAD, RELOAD)]


def test_not_while_it_is_loaded_already(tmp_path: Path) -> None:
    """By a job, or by what is recorded of one; nor the table that is filled."""
    how = {"on_refused_target": "reload"}
    assert not found(tmp_path, [job(BAD, state=State.WAITING)], snapshot(), **how)
    filled = Rebuild("lake.s.bad__rebuild_1", {}, load=Load("load-1", {}))
    spills = {"lake.s.bad__rebuild_1": SpillMark(1, {P0: (1, 2)})}
    here = replace(snapshot(), rebuilds={BAD: filled}, spills=spills)
    assert not found(tmp_path, [], here, **how)


def test_not_where_its_sink_is_away(tmp_path: Path) -> None:
    """It has all its messages, and goes on by itself."""
    here = replace(snapshot(), spills={BAD: SpillMark(1, {P0: (1, 2)}, away=True)})
    assert not found(tmp_path, [], here, on_refused_target="reload")


def test_after_three_reloads_in_an_hour_it_stays_in_quarantine(tmp_path: Path) -> None:
    """Those that people asked for don't count, nor those of before."""
    how = {"on_refused_target": "reload"}
    three = [job(BAD), job(BAD), job(BAD)]
    assert not found(tmp_path, three, snapshot(), **how)
    assert found(tmp_path, [*three[:2], job(BAD, origin="command")], snapshot(), **how)
    assert found(tmp_path, [*three[:2], job(BAD, age_s=3700)], snapshot(), **how)


def test_it_needs_a_database(tmp_path: Path) -> None:
    """Said when the configuration is read."""
    with pytest.raises(ValueError, match="read the source"):
        config(tmp_path, database=None, load="on-first-sight")


class Runner:
    """Records what is added."""

    def __init__(self) -> None:
        self.jobs: tuple[Job, ...] = ()

    def add(self, wanted: JobRequest) -> Any:
        self.jobs += (new_job(wanted, NOW_MS),)
        return self

    def result(self) -> None:
        """It is durable."""


class Look:
    config: Config

    def __init__(self, here: Snapshot) -> None:
        self.here = here

    def snapshot(self, pipeline: str) -> Snapshot:
        return self.here


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The estimates of the database."""
    estimates: dict[str, int] = {}

    def plan(self: object, look: object, wanted: JobRequest) -> Plan:
        (target,) = wanted.targets
        return Plan((wanted,), document={"tables": [{"rows": estimates.get(target, 1)}]})

    monkeypatch.setattr(LoadKind, "plan", plan)
    return estimates


def loads(folder: Path, look: Look, runner: Runner) -> AutomaticLoads:
    look.config = config(folder, load="on-first-sight")
    return AutomaticLoads(runner, lambda: look)  # type: ignore[arg-type, return-value]


def test_what_is_there_when_it_is_switched_on_is_no_news(
    tmp_path: Path, rows: dict[str, int]
) -> None:
    """What comes later is, once, also over a restart."""
    runner, look = Runner(), Look(replace(snapshot(), targets={OLD: TargetMark("v", {P0: 1})}))
    loads(tmp_path, look, runner).look_at("p")
    assert not runner.jobs
    look.here = snapshot()
    for _ in range(2):
        loads(tmp_path, look, runner).look_at("p")
    assert [each.wanted.targets for each in runner.jobs] == [(NEW,)]


def test_a_large_table_is_told_and_not_loaded(tmp_path: Path, rows: dict[str, int]) -> None:
    """Above load.max_rows_unasked."""
    runner, look = Runner(), Look(replace(snapshot(), targets={}))
    made = loads(tmp_path, look, runner)
    made.look_at("p")
    look.here, rows[NEW], rows[OLD] = snapshot(), 10_000_001, 5
    assert made.comes("p", look.here)
    made.look_at("p")
    assert [each.wanted.targets for each in runner.jobs] == [(OLD,)]
    assert not made.comes("p", look.here)


def test_a_target_that_can_not_be_planned_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sink or its database is away, or refuses; it is planned less and less often."""
    planned: list[str] = []

    def plan(self: object, look: object, wanted: JobRequest) -> Plan:
        (target,) = wanted.targets
        planned.append(target)
        if target == BAD:
            raise DatabaseAway("its sink does not answer")
        refusals = ("it has a view",) if target == OLD else ()
        return Plan((wanted,), document={"tables": [{"rows": 1}]}, refusals=refusals)

    monkeypatch.setattr(LoadKind, "plan", plan)
    spill = SpillMark(1, {P0: (1, 2)})
    here = replace(snapshot(), spills={BAD: spill, OLD: spill, NEW: spill})
    runner, look, clock = Runner(), Look(here), [0.0]
    look.config = config(tmp_path, on_refused_target="reload")
    made = AutomaticLoads(runner, lambda: look, lambda: clock[0])  # type: ignore[arg-type, return-value]
    for second in range(0, 3600, 10):
        clock[0] = float(second)
        made.look_at("p")
    assert [each.wanted.targets for each in runner.jobs] == [(NEW,)]
    assert 8 < planned.count(BAD) < 20
    assert planned.count(BAD) == planned.count(OLD)


def test_a_first_sight_that_is_refused_is_planned_again(
    tmp_path: Path, rows: dict[str, int]
) -> None:
    """It is shown as refused meanwhile, with the command; a restart plans it at once."""
    runner, look = Runner(), Look(replace(snapshot(), targets={OLD: TargetMark("v", {P0: 1})}))
    made = loads(tmp_path, look, runner)
    made.look_at("p")
    look.here, rows[NEW] = snapshot(), 10_000_001
    made.look_at("p")
    (refused,) = made.refused
    shown = refused_figures(refused)
    assert (shown["state"], shown["targets"], shown["origin"]) == ("refused", [NEW], FIRST_SIGHT)
    assert "more than load.max_rows_unasked" in shown["message"]
    assert f"binlogd tables load {NEW}" in shown["message"]
    made = loads(tmp_path, look, runner)
    made.look_at("p")
    assert [each.target for each in made.refused] == [NEW]
    assert not runner.jobs
    rows[NEW] = 5
    made = loads(tmp_path, look, runner)
    made.look_at("p")
    assert [each.wanted.targets for each in runner.jobs] == [(NEW,)]
    made.look_at("p")
    assert made.refused == ()


@pytest.mark.parametrize("state", [State.DONE, State.CANCELLED])
def test_a_load_by_hand_is_the_one_at_first_sight(
    tmp_path: Path, rows: dict[str, int], state: State
) -> None:
    """A refused one would be repeated after it; also once its job is forgotten."""
    runner, look = Runner(), Look(replace(snapshot(), targets={OLD: TargetMark("v", {P0: 1})}))
    loads(tmp_path, look, runner).look_at("p")
    look.here, runner.jobs = snapshot(), (job(NEW, state=state, origin="command"),)
    loads(tmp_path, look, runner).look_at("p")
    runner.jobs = ()
    loads(tmp_path, look, runner).look_at("p")
    assert not runner.jobs


def test_a_reload_of_the_configuration_switches_it_on(
    tmp_path: Path, rows: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no pipeline wanted it when the daemon began."""
    monkeypatch.setattr(unasked, "LOOK_EVERY_S", 0.01)
    recorded = threading.Event()
    runner = Runner()
    monkeypatch.setattr(runner, "result", recorded.set)
    look = Look(snapshot())
    look.config = config(tmp_path)
    made = AutomaticLoads(runner, lambda: look)  # type: ignore[arg-type, return-value]
    made.start()
    look.config.adopt("p", config(tmp_path, on_refused_target="reload").pipeline["p"])
    assert recorded.wait(30)
    made.close()
    assert runner.jobs[0].wanted.origin == RELOAD
