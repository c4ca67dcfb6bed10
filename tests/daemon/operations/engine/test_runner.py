"""The runner over real files and threads."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from changes.model.errors import SinkUnavailable, TargetRefused
from daemon.operations.engine import rule
from daemon.operations.engine.port import Control, JobAway, JobFailed, JobStopped
from daemon.operations.engine.record import JobProgress, JobRequest, State, new_job
from daemon.operations.engine.runner import JobsClosed
from daemon.state.edits import EditBusy, EditFailed, EditRefused
from databases.base.errors import DatabaseAway, DatabaseRefused
from offsets.store import StoreError
from sources.base.port import NotAnswered
from tests.daemon.operations.job_rig import JobRig, refused
from tests.daemon.operations.toy import Count, wanted


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is repeated at once."""
    monkeypatch.setattr(rule, "FIRST_WAIT_S", 0.001)


class Gate:
    """Where steps stand until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, control: Control) -> None:
        self.reached.set()
        assert self.opened.wait(30)


def test_a_job_is_durable_before_it_is_told_and_runs_to_its_end(tmp_path: Path) -> None:
    """Its result is in its file."""
    kind = Count()
    rig = JobRig(tmp_path, kind)
    rig.start()
    id_ = rig.runner.add(wanted(3)).result(30).id
    assert [job.id for job in rig.files.load().jobs] == [id_]
    job = rig.ended(id_)
    assert (job.state, job.result, job.progress.ratio) == (State.DONE, {"counted": 3}, 1.0)
    assert [at for _, at in kind.called] == [0, 1, 2, 3]
    rig.runner.stop(30)
    assert rig.files.load().jobs == (job,)
    assert [type_ for _, type_ in rig.told] == ["STARTED", "IN_PROGRESS", "COMPLETED"]


def test_what_was_recorded_is_carried_out_at_the_next_start(tmp_path: Path) -> None:
    """From the step that was under way on."""
    gate = Gate()
    first = Count(gate=gate)
    rig = JobRig(tmp_path, first)
    rig.start()
    id_ = rig.runner.add(wanted(2)).result(30).id
    assert gate.reached.wait(30)
    rig.runner.stop(0.0)  # the step does not end: as if the process died
    gate.opened.set()
    (recorded,) = rig.files.load().jobs
    assert (recorded.state, recorded.memory) == (State.RUNNING, {})
    rig.restart()
    assert rig.ended(id_).state is State.DONE
    rig.runner.stop(30)


AWAY = (
    JobAway("x"),
    SinkUnavailable("x"),
    DatabaseAway("x"),
    StoreError("x"),
    NotAnswered("x", away=True),
    EditFailed("x"),
    OSError("x"),
)
LASTING = (
    JobFailed("x"),
    TargetRefused("x"),
    DatabaseRefused("x"),
    EditRefused("x"),
    NotAnswered("x", away=False),
)


def test_what_may_pass_is_repeated(tmp_path: Path) -> None:
    """Whatever of it."""
    kind = Count(dict(enumerate(AWAY, 1)))
    rig = JobRig(tmp_path, kind)
    rig.start()
    job = rig.ended(rig.runner.add(wanted(0)).result(30).id)
    assert job.state is State.DONE
    assert len(kind.called) == len(AWAY) + 1
    rig.runner.stop(30)


@pytest.mark.parametrize("error", LASTING, ids=lambda error: type(error).__name__)
def test_what_does_not_pass_ends_the_job(tmp_path: Path, error: Exception) -> None:
    """With its own words."""
    rig = JobRig(tmp_path, Count({1: error}))
    rig.start()
    job = rig.ended(rig.runner.add(wanted(0)).result(30).id)
    assert (job.state, job.message) == (State.FAILED, "x")
    rig.runner.stop(30)


def test_a_fault_in_a_job_ends_that_job_alone(tmp_path: Path) -> None:
    """The others go on."""
    rig = JobRig(tmp_path, Count({1: KeyError("nobody thought of it")}))
    rig.start()
    first = rig.ended(rig.runner.add(wanted(1)).result(30).id)
    assert (first.state, first.message) == (State.FAILED, "KeyError: 'nobody thought of it'")
    assert rig.ended(rig.runner.add(wanted(1)).result(30).id).state is State.DONE
    rig.runner.stop(30)


def test_a_long_step_sees_what_is_asked(tmp_path: Path) -> None:
    """And the job rests, is cancelled, or the daemon stops, as soon as it returns."""

    def until_asked(control: Control) -> None:
        control.tell(JobProgress(1, 9), "looks up")
        assert control.wait(30)
        seen.append(control.asked)

    seen: list[str] = []
    kind = Count(gate=until_asked)
    rig = JobRig(tmp_path, kind)
    rig.start()
    id_ = rig.runner.add(wanted(9)).result(30).id
    rig.wait(id_, lambda job: job.message == "looks up")
    assert rig.runner.ask(id_, "pause").result(30) is None
    rig.wait(id_, lambda job: job.state is State.PAUSED)
    assert rig.runner.ask(id_, "resume").result(30) is None
    rig.wait(id_, lambda job: job.message == "looks up")
    rig.runner.stop(30)
    (stopped,) = rig.files.load().jobs
    assert (stopped.state, stopped.memory) == (State.RUNNING, {"at": 2})
    rig.restart()
    rig.wait(id_, lambda job: job.message == "looks up")
    assert rig.runner.ask(id_, "cancel").result(30) is None
    assert rig.ended(id_).state is State.CANCELLED
    assert seen == ["pause", "stop", "cancel"]
    assert kind.undone == [id_]
    rig.runner.stop(30)


def test_a_step_that_is_left_is_repeated(tmp_path: Path) -> None:
    """JobStopped says that nothing of it counts."""
    rig = JobRig(tmp_path, Count({1: JobStopped()}))
    rig.start()
    assert rig.ended(rig.runner.add(wanted(1)).result(30).id).state is State.DONE
    rig.runner.stop(30)


def test_the_same_name_is_recorded_once(tmp_path: Path) -> None:
    """A signal that is read again begins nothing."""
    kind = Count()
    rig = JobRig(tmp_path, kind)
    rig.start()
    first = rig.runner.add(wanted(1), "count-7").result(30)
    rig.ended("count-7")
    again = rig.runner.add(wanted(5), "count-7").result(30)
    assert (again.id, again.state) == (first.id, State.DONE)
    assert len(rig.runner.jobs) == 1
    with pytest.raises(ValueError, match="is no job's name"):
        rig.runner.add(wanted(1), "../x").result(30)
    rig.runner.stop(30)


def test_a_job_of_a_pipeline_that_is_gone_waits(tmp_path: Path) -> None:
    """The configuration may name it again; what it has begun is not forgotten."""
    kind = Count()
    rig = JobRig(tmp_path, kind)
    rig.start()
    id_ = rig.runner.add(wanted(1, pipeline="other")).result(30).id
    job = rig.wait(id_, lambda job: job.attempts > 2)
    assert job.message == "the configuration has no pipeline 'other'"
    assert not kind.called
    rig.runner.stop(30)


def test_nothing_is_taken_before_the_start_and_after_the_end(tmp_path: Path) -> None:
    """Whoever asks hears it at once."""
    rig = JobRig(tmp_path, Count())
    rig.runner.open()
    with pytest.raises(JobsClosed, match="not started"):
        rig.runner.add(wanted(1)).result(0)
    rig.runner.start()
    rig.runner.stop(30)
    with pytest.raises(JobsClosed, match="stopping"):
        rig.runner.ask("count-1", "pause").result(0)
    assert rig.files.load().jobs == ()


class Disk:
    """Nothing can be renamed while it is ``full``; ``refused`` counts what was tried."""

    def __init__(self) -> None:
        self.full, self.refused = threading.Event(), threading.Semaphore(0)
        self._replace = os.replace

    def replace(self, *given: str) -> None:
        if self.full.is_set():
            self.refused.release()
            raise OSError("no space left")
        self._replace(*given)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(os, "replace", made.replace)
    return made


def test_a_job_that_can_not_be_stored_is_refused(tmp_path: Path, disk: Disk) -> None:
    """It would be forgotten."""
    kind = Count()
    rig = JobRig(tmp_path, kind)
    rig.start()
    disk.full.set()
    with pytest.raises(OSError, match="no space left"):
        rig.runner.add(wanted(1)).result(30)
    assert rig.runner.jobs == ()
    assert not kind.called
    rig.runner.stop(30)


def test_no_step_goes_ahead_of_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    """However often its record is tried again; the job goes on once there is room."""

    def fills(control: Control) -> None:
        if len(kind.called) == 2:
            disk.full.set()

    kind = Count(gate=fills)
    rig = JobRig(tmp_path, kind)
    rig.start()
    id_ = rig.runner.add(wanted(3)).result(30).id
    for _ in range(4):
        assert disk.refused.acquire(timeout=30)
    assert rig.runner.jobs[0].memory == {"at": 2}
    assert rig.files.load().jobs[0].memory == {"at": 1}
    assert [at for _, at in kind.called] == [0, 1]
    disk.full.clear()
    rig.ended(id_)
    assert [at for _, at in kind.called] == [0, 1, 2, 3]
    rig.runner.stop(30)


def test_an_edit_is_waited_for(tmp_path: Path) -> None:
    """One that others make is waited for; a refusal is the job's."""

    def edits(control: Control) -> None:
        control.edit("shop", lambda snapshot: replace(snapshot, forced="by the job"))

    rig = JobRig(tmp_path, Count(gate=edits))
    rig.answers = [EditBusy("pipeline shop is being changed already")]
    rig.start()
    job = rig.ended(rig.runner.add(wanted(0)).result(30).id)
    assert (job.state, rig.store.snapshot.forced) == (State.DONE, "by the job")
    rig.runner.stop(30)


def test_a_refused_edit_ends_the_job(tmp_path: Path) -> None:
    """With the edit's words."""
    rig = JobRig(tmp_path, Count(gate=lambda control: control.edit("shop", refused)))
    rig.start()
    job = rig.ended(rig.runner.add(wanted(0)).result(30).id)
    assert (job.state, job.message) == (State.FAILED, "no")
    rig.runner.stop(30)


def test_a_job_of_another_version_is_left_alone(tmp_path: Path) -> None:
    """It is shown, and does not stand in the way."""
    rig = JobRig(tmp_path, Count())
    rig.files.save(new_job(JobRequest("weigh", "shop"), 0, "weigh-1"))
    rig.start()
    rig.ended(rig.runner.add(wanted(0)).result(30).id)
    assert {job.id: job.state for job in rig.runner.jobs}["weigh-1"] is State.PLANNED
    rig.runner.stop(30)
