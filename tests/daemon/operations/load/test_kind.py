"""A load as a kind of job: what it begins with, and that none is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changes.model.errors import SinkUnavailable
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Advanced, JobAway, JobFailed
from daemon.operations.engine.record import Job, JobRequest, State, new_job
from daemon.operations.load.kind import LoadKind
from daemon.operations.load.memory import LoadMemory
from daemon.operations.load.rule import LoadSteps
from daemon.operations.load.settings import settings_of
from daemon.operations.rebuild.kind import without_job
from daemon.state.edits import EditFailed
from databases.base.log_end import ReaderPosition
from offsets.rebuild import Load, Rebuild, SwapRefused
from offsets.rebuild_steps import cancelled as given_up
from offsets.rebuild_steps import ended, refused
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from tests.daemon.operations.test_automatic_loads import P0, config
from tests.sources.fake_source import FakeSource

T = "lake.s.t"


def job() -> Job:
    params = {"tables": ["s.t"], "rows": {T: 7}}
    return new_job(JobRequest("load", "p", (T,), params), 0, "load-1")


class Control:
    """A pipeline of which a load is recorded."""

    def __init__(self, folder: Path) -> None:
        self.config = config(folder)
        load = Load("load-1", {P0: 5})
        self.here = Snapshot("p", "g", rebuilds={T: Rebuild("lake.s.t__rebuild_1", {}, load=load)})
        self.fails = False

    def snapshot(self, pipeline: str) -> Snapshot:
        return self.here

    def source(self, pipeline: str) -> FakeSource:
        return FakeSource({P0: Watermarks(0, 9)})

    def reader_position(self, pipeline: str) -> ReaderPosition:
        return {}

    def edit(self, pipeline: str, change: Any) -> None:
        if self.fails:
            raise EditFailed("it does not end")
        self.here = change(self.here)


def begun(control: Control) -> Job:
    outcome = LoadKind().step(job(), control)  # type: ignore[arg-type]
    assert isinstance(outcome, Advanced)
    return replace(job(), memory=outcome.memory)


def test_it_begins_with_its_tables(tmp_path: Path) -> None:
    """As the plan named them."""
    memory = LoadMemory.of(begun(Control(tmp_path)).memory)
    (filled,) = memory.at("new").values()
    assert (filled.source, filled.expected) == (("s", "t"), 7)


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), AssertionError("another")])
def test_what_nobody_foresaw_leaves_no_load_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Its table would get no change any more. Where it can't be undone now the step is repeated."""

    def step(self: object, job: Job, control: object) -> None:
        raise error

    control = Control(tmp_path)
    asked = begun(control)
    monkeypatch.setattr(LoadSteps, "step", step)
    control.fails = True
    with pytest.raises(JobAway, match="given up once this passes"):
        LoadKind().step(asked, control)  # type: ignore[arg-type]
    control.fails = False
    with pytest.raises(type(error)):
        LoadKind().step(asked, control)  # type: ignore[arg-type]
    assert control.here.rebuilds[T].cancelled


def test_what_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given up for it."""

    def step(self: object, job: Job, control: object) -> None:
        raise SinkUnavailable("away")

    control = Control(tmp_path)
    asked = begun(control)
    monkeypatch.setattr(LoadSteps, "step", step)
    with pytest.raises(SinkUnavailable):
        LoadKind().step(asked, control)  # type: ignore[arg-type]
    assert not control.here.rebuilds[T].cancelled


def cancelled(control: Control, asked: Job) -> tuple[Job, str]:
    """It is remembered first that it has no name."""
    kind, before = LoadKind(), control.here
    outcome = kind.undo(asked, control)  # type: ignore[arg-type]
    assert isinstance(outcome, Advanced)
    assert control.here == before
    asked = replace(asked, memory=outcome.memory)
    said = kind.undo(asked, control)  # type: ignore[arg-type]
    assert isinstance(said, str)
    return asked, said


def test_cancelled_it_is_given_up(tmp_path: Path) -> None:
    """Once."""
    control = Control(tmp_path)
    asked, said = cancelled(control, begun(control))
    assert T in said
    assert control.here.rebuilds[T].cancelled
    into = control.here.rebuilds[T].into
    said = f"nothing of it is left; {into} is removed at a next start, once its sink can be reached"
    assert LoadKind().undo(asked, control) == said  # type: ignore[arg-type]


def following(control: Control) -> Job:
    """All rows are there, and the stream is applied over them."""
    asked = begun(control)
    memory = LoadMemory.of(asked.memory)
    memory.targets[T].stage, memory.targets[T].into = "following", control.here.rebuilds[T].into
    return replace(asked, memory=memory.json())


def test_a_load_that_was_given_up_is_not_told_as_loaded(tmp_path: Path) -> None:
    """Also if a kill came behind the edit, and the next start has removed what was recorded."""
    control = Control(tmp_path)
    asked, _ = cancelled(control, following(control))
    control.here = ended(control.here, T)
    assert LoadKind().undo(asked, control) == "nothing of it is left"  # type: ignore[arg-type]


def test_a_load_that_is_cancelled_by_hand_is_not_told_as_loaded(tmp_path: Path) -> None:
    """`tables rebuild --cancel --force`, whose start has not removed the table yet."""
    control = Control(tmp_path)
    asked = following(control)
    control.here = given_up(control.here, T)
    outcome = LoadKind().step(asked, control)  # type: ignore[arg-type]
    assert isinstance(outcome, Advanced)
    with pytest.raises(JobFailed, match="cancelled by hand"):
        LoadKind().step(replace(asked, memory=outcome.memory), control)  # type: ignore[arg-type]


def test_a_load_that_can_not_go_on_stays_so_behind_a_kill(tmp_path: Path) -> None:
    """Refused for good, it was given up; the step's own end was not remembered."""
    control = Control(tmp_path)
    control.here = refused(control.here, T, SwapRefused("it is a view"))
    asked = following(control)
    outcome = LoadKind().step(asked, control)  # type: ignore[arg-type]
    assert isinstance(outcome, Advanced)
    assert not control.here.rebuilds[T].cancelled
    asked = replace(asked, memory=outcome.memory)
    with pytest.raises(JobFailed, match="it is a view"):
        LoadKind().step(asked, control)  # type: ignore[arg-type]
    assert control.here.rebuilds[T].cancelled
    control.here = ended(control.here, T)
    with pytest.raises(JobFailed, match="it is a view"):
        LoadKind().step(asked, control)  # type: ignore[arg-type]


def test_bounds_are_the_least_of_all(tmp_path: Path) -> None:
    """Of loads and of the database."""
    settings = settings_of(PipelineConfig(config(tmp_path), "p"))
    assert (settings.parallel, settings.rows_per_s, settings.margin_s) == (2, None, 60.0)


def test_a_load_whose_job_is_gone_is_named(tmp_path: Path) -> None:
    """Or has ended without it."""
    here = Control(tmp_path).here
    assert without_job(here, {}) == {T: "load-1"}
    assert without_job(here, {"load-1": replace(job(), state=State.FAILED)}) == {T: "load-1"}
    assert not without_job(here, {"load-1": job()})
