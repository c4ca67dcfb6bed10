"""A rebuild as a job: the snapshot's record is what counts, the job follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.operations.engine.context import DaemonLook
from daemon.operations.engine.record import Job, JobRequest, State, new_job
from daemon.operations.rebuild import kind as rebuild_job
from daemon.operations.rebuild.kind import RebuildKind, adopted, job_of, refuse_live_load
from daemon.state.edits import EditFailed, EditRefused
from offsets.rebuild import Load, Rebuild, SwapRefused
from offsets.rebuild_steps import ended, refused
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot
from tests.daemon.operations.job_rig import JobRig
from tests.sources.fake_source import FakeSource

T = "lake.s.t"
INTO = "lake.s.t__rebuild_7"
WANTED = JobRequest("rebuild", "shop", (T,))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild_job, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobRig]:
    """A table that was fed from offsets 0 to 7 of a log that holds 0 to 19."""
    made = JobRig(tmp_path, RebuildKind())
    FakeSource({made.world.source: Watermarks(0, 20)}).opened(monkeypatch)
    made.start()
    yield made
    made.runner.stop(30)


def read_up_to(rig: JobRig, offset: int) -> None:
    """The pipeline has got so far, as its committer stores it."""
    states = {rig.world.source: PartitionState(offset)}
    rig.store.snapshot = replace(rig.store.snapshot, partitions=states)


def swap(rig: JobRig) -> None:
    """The pipeline has exchanged the tables at its start."""
    rig.store.snapshot = ended(rig.store.snapshot, T)


def begin(rig: JobRig) -> Job:
    job = rig.runner.add(WANTED, "rebuild-7").result(30)
    return rig.wait(job.id, lambda job: "begun" in job.memory)


def test_it_begins_follows_the_frontiers_and_ends_with_the_swap(rig: JobRig) -> None:
    """Progress is in messages of the log."""
    job = begin(rig)
    assert rig.store.snapshot.rebuilds[T].into == INTO
    assert (job.state, job.progress.done, job.progress.total) == (State.WAITING, 0, 8)
    read_up_to(rig, 6)
    rig.wait(job.id, lambda job: job.progress.done == 6)
    read_up_to(rig, 20)
    job = rig.wait(job.id, lambda job: job.progress.done == 8)
    assert job.state is State.WAITING
    swap(rig)
    job = rig.ended(job.id)
    assert (job.state, job.progress.ratio) == (State.DONE, 1.0)


def test_a_job_whose_record_was_lost_in_a_crash_does_not_begin_again(rig: JobRig) -> None:
    """The edit was made, the job's record is the one of before."""
    begin(rig)
    rig.runner.stop(30)
    rig.files.save(new_job(WANTED, 0, "rebuild-7"))
    before = rig.store.snapshot
    rig.restart()
    rig.wait("rebuild-7", lambda job: "begun" in job.memory)
    assert rig.store.snapshot == before
    rig.runner.stop(30)
    rig.files.save(new_job(WANTED, 0, "rebuild-7"))
    swap(rig)
    rig.restart()
    assert rig.ended("rebuild-7").state is State.DONE
    assert not rig.store.snapshot.rebuilds


def test_an_edit_after_which_the_pipeline_does_not_run_is_followed_all_the_same(
    rig: JobRig,
) -> None:
    """The snapshot tells whether it was made."""
    rig.answers = [EditFailed("pipeline shop does not run")]
    job = rig.runner.add(WANTED, "rebuild-7").result(30)
    rig.wait(job.id, lambda job: "begun" in job.memory)
    assert list(rig.store.snapshot.rebuilds) == [T]


def test_a_cancelled_one_is_given_up_in_the_snapshot(rig: JobRig) -> None:
    """The old table gets what came meanwhile."""
    job = begin(rig)
    assert rig.runner.ask(job.id, "cancel").result(30) is None
    assert rig.ended(job.id).state is State.CANCELLED
    assert rig.store.snapshot.rebuilds[T].cancelled


def test_a_rebuild_that_has_ended_is_not_given_up(rig: JobRig) -> None:
    """Nothing is edited, whoever was first."""
    job = begin(rig)
    swap(rig)
    before = rig.store.snapshot
    rig.runner.ask(job.id, "cancel").result(30)
    assert rig.ended(job.id).state in (State.CANCELLED, State.DONE)
    assert rig.store.snapshot == before


def test_a_kill_behind_its_giving_up_makes_it_no_done_one(rig: JobRig) -> None:
    """The next start has removed the new table and the record: as after an exchange."""
    job = begin(rig)
    rig.next_start = lambda snapshot: ended(snapshot, T)
    rig.runner.ask(job.id, "cancel").result(30)
    found = rig.ended(job.id)
    assert not rig.store.snapshot.rebuilds
    assert (found.state, found.message[:11]) == (State.CANCELLED, "is given up")


def test_one_that_is_refused_for_good_stays_so_behind_a_kill(rig: JobRig) -> None:
    """Not: the new table has its name."""
    job = begin(rig)
    rig.next_start = lambda snapshot: ended(snapshot, T)
    rig.store.snapshot = refused(rig.store.snapshot, T, SwapRefused("it is a view"))
    found = rig.ended(job.id)
    assert (found.state, found.message) == (
        State.FAILED, "it is a view (is given up; what came meanwhile is read again)",
    )  # fmt: skip


def test_it_can_not_rest(rig: JobRig) -> None:
    """The pipeline would go on with it."""
    job = begin(rig)
    assert "can't be paused" in str(rig.runner.ask(job.id, "pause").result(30))


def test_a_log_without_its_beginning_is_refused(
    rig: JobRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the dry run and by the job, with the numbers; forced it is made."""
    FakeSource({rig.world.source: Watermarks(3, 20)}).opened(monkeypatch)
    plan = RebuildKind().plan(DaemonLook(rig.daemon), WANTED)
    assert "begins at offset 3, not at 0" in plan.refusals[0]
    job = rig.ended(rig.runner.add(WANTED, "rebuild-7").result(30).id)
    assert (job.state, job.message) == (State.FAILED, plan.refusals[0])
    forced = replace(WANTED, params={"force": True})
    assert not RebuildKind().plan(DaemonLook(rig.daemon), forced).refusals


def test_another_rebuild_of_the_table_is_not_taken_for_ones_own(rig: JobRig) -> None:
    """Its end would be told as this one's."""
    begin(rig)
    job = rig.ended(rig.runner.add(WANTED, "rebuild-8").result(30).id)
    assert job.state is State.FAILED
    assert "by another job" in job.message


def test_a_recorded_rebuild_without_a_job_gets_one(rig: JobRig) -> None:
    """Of an earlier version, or whose file is lost."""
    begin(rig)
    snapshot = rig.store.snapshot
    assert adopted(snapshot, {"rebuild-7": rig.runner.jobs[0]}, 5) == []
    (job,) = adopted(snapshot, {}, 5)
    assert (job.id, job.wanted.targets, job.created_ms) == ("rebuild-7", (T,), 5)
    assert job_of([job], T) == job
    assert job_of([replace(job, state=State.DONE)], T) is None
    load = new_job(JobRequest("load", "shop", (T, "lake.s.u")), 0, "load-1")
    assert adopted(snapshot, {"load-1": load}, 5) == []
    assert adopted(snapshot, {"load-1": replace(load, state=State.CANCELLED)}, 5) == [job]
    given_up = replace(snapshot.rebuilds[T], cancelled=True)
    assert adopted(replace(snapshot, rebuilds={T: given_up}), {}, 5) == []


def test_a_load_is_not_given_up_beside_its_job() -> None:
    """The job would say that the table is loaded. Once it is cancelled, or over, nothing is."""
    load = Load("load-1", {})
    snapshot = Snapshot("p", "g", rebuilds={T: Rebuild("lake.s.t__rebuild_1", {}, load=load)})
    job = new_job(JobRequest("load", "p", (T,)), 0, "load-1")
    with pytest.raises(EditRefused, match="jobs cancel load-1` comes first"):
        refuse_live_load(snapshot, T, [job])
    for other in (replace(job, wish="cancel"), replace(job, state=State.FAILED)):
        refuse_live_load(snapshot, T, [other])
    refuse_live_load(Snapshot("p", "g"), T, [job])
