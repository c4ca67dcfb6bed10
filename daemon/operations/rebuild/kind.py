"""``tables rebuild`` as a job: begins the rebuild, shows how far it is, gives it up.

The snapshot's record stays what the flow obeys (``offsets/rebuild.py``): the swap of the names is
the pipeline's own, at one of its starts. So the job only looks, and a lost job loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipeline_parts import Window
from daemon.operations.engine.port import (
    Advanced,
    Control,
    Finished,
    JobFailed,
    Look,
    Outcome,
    Plan,
)
from daemon.operations.engine.record import Job, JobProgress, JobRequest, State, new_job
from daemon.operations.engine.requested import wrong_targets
from daemon.operations.rebuild.exchange import stays, wait_before_next_s, waits_for_name
from daemon.operations.rebuild.plan import RebuildRequest, new_table
from daemon.state.edits import EditRefused
from offsets.rebuild import Rebuild, SwapRefused
from offsets.snapshot import Snapshot
from settings.shell import quoted
from sparkwriter.sinks import left_behind, unreplaceable

KIND = "rebuild"

LOOK_EVERY_S = 5.0
"""Between two looks at the frontiers, which are stored as often by default."""

FLAGS = ("force", "keep_old")

GIVEN_UP = "given_up"
"""In a job's memory: its table had no name yet when it was given up, and why. Once that is carried
out, the snapshot looks as if the table had got it."""


UNDONE = "is given up; what came meanwhile is read again"


class RebuildKind:
    """See ``JobKind``."""

    name = KIND

    concurrent = 1000
    """The work is the pipelines', which bound it: a job here only looks."""

    can_pause = False

    window: Window | None = None

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        """Whether the log holds what the table held."""
        (target,) = wanted.targets
        request = request_of(new_job(wanted, 0), look)
        try:
            for why in unreplaceable(look.config, [TargetName.parse(target)]).values():
                raise EditRefused(f"{target}: {why}")
            request(look.snapshot(wanted.pipeline))
        except EditRefused as error:
            return Plan((wanted,), refusals=(str(error),))
        line = f"{target}: is read again from its log into a new table, which takes its name"
        left = left_behind(look.config, [TargetName.parse(target)])
        return Plan((wanted,), (line, *left), {"target": target})

    def wrong(self, wanted: JobRequest) -> Sequence[str]:
        """See ``JobKind``."""
        return list(wrong_targets(wanted, most=1))

    def step(self, job: Job, control: Control) -> Outcome:
        """Begin it, then look until the new table has its name."""
        snapshot, target = control.snapshot(job.wanted.pipeline), job.wanted.targets[0]
        rebuild = snapshot.rebuilding.get(target)
        if rebuild is None:
            if GIVEN_UP in job.memory:
                raise self._has_failed(job, control)
            if "begun" in job.memory or into_of(job) in snapshot.targets:
                return Finished({"target": target}, "the new table has its name", _all_of(job))
            for why in unreplaceable(control.config, [TargetName.parse(target)]).values():
                raise JobFailed(f"{target}: {why}")
            control.edit(job.wanted.pipeline, request_of(job, control))
            snapshot = control.snapshot(job.wanted.pipeline)
            if (rebuild := snapshot.rebuilding.get(target)) is None:
                return Advanced({"begun": {}}, None, "is read again")
        if rebuild.into != into_of(job):
            raise JobFailed(f"{target} is being rebuilt by another job, into {rebuild.into}")
        begun = job.memory.get("begun") or _frontiers(snapshot, rebuild)
        if rebuild.refused is not None:
            return self._refused(job, control, rebuild.refused, begun)
        spilled = rebuild.into in snapshot.spills
        waits = "waits until its spill is written: `binlogd tables list`" if spilled else ""
        done = _progress(snapshot, rebuild, begun)
        return Advanced({"begun": begun}, done, waits or "is read again", LOOK_EVERY_S)

    def _refused(
        self, job: Job, control: Control, why: SwapRefused, begun: Mapping[str, int]
    ) -> Outcome:
        """Give it up, or have the pipeline try again after a wait."""
        if why.for_good:
            if GIVEN_UP not in job.memory:
                return Advanced(given_up(job, why.reason), None, why.reason)
            raise self._has_failed(job, control)
        if job.memory.get("waited") != why.attempts:
            memory = {"begun": begun, "waited": why.attempts}
            return Advanced(memory, None, waits_for_name(why), wait_before_next_s(why))
        control.edit(job.wanted.pipeline, lambda snapshot: snapshot)
        return Advanced({"begun": begun}, None, "its name was tried again")

    def _has_failed(self, job: Job, control: Control) -> JobFailed:
        """It is given up, by itself or by an attempt that did not come to its end."""
        said = self.undo(job, control)
        return JobFailed(f"{job.memory[GIVEN_UP]} ({said if isinstance(said, str) else UNDONE})")

    def undo(self, job: Job, control: Control) -> str | Outcome:
        """Give it up: the old table stays."""
        target, pipeline = job.wanted.targets[0], job.wanted.pipeline
        rebuild = control.snapshot(pipeline).rebuilds.get(target)
        if rebuild is None or rebuild.into != into_of(job):
            had_name = rebuild is None or rebuild.cancelled
            if had_name and "begun" in job.memory and GIVEN_UP not in job.memory:
                said = "the new table had its name already"
                return Finished({"target": target}, said, _all_of(job))
            return UNDONE if GIVEN_UP in job.memory else "nothing of it is left"
        if GIVEN_UP not in job.memory:
            return Advanced(given_up(job), None, "is being given up")
        if not rebuild.cancelled:
            request = replace(request_of(job, control), cancel=True)
            control.edit(pipeline, request)
        return f"{UNDONE}{stays(control.snapshot(pipeline), (target,))}"


def given_up(job: Job, why: str = "") -> dict[str, Any]:
    """A job's memory of it, which is durable before the snapshot is changed."""
    return {**job.memory, GIVEN_UP: why}


def request_of(job: Job, look: Look) -> RebuildRequest:
    """The edit that begins it."""
    wanted = job.wanted
    flags = {name: wanted.params.get(name) is True for name in FLAGS}
    pipeline = PipelineConfig(look.config, wanted.pipeline)
    return RebuildRequest(pipeline, wanted.targets[0], number_of(job), **flags)


def number_of(job: Job) -> str:
    """What makes the new table's name unique."""
    return job.id.rpartition("-")[2]


def into_of(job: Job) -> str:
    """The new table's name while it is filled, as a target's."""
    return str(new_table(TargetName.parse(job.wanted.targets[0]), number_of(job)))


def job_of(jobs: Iterable[Job], target: str) -> Job | None:
    """The job that rebuilds a target now, or will."""
    open_ = (job for job in jobs if job.wanted.kind == KIND and not job.state.is_final)
    return next((job for job in open_ if job.wanted.targets == (target,)), None)


def refuse_live_load(snapshot: Snapshot, target: str, jobs: Iterable[Job]) -> None:
    """Raise EditRefused where a job loads the target and goes on: it would take a load that was
    given up beside it for one whose table has its name."""
    rebuild = snapshot.rebuilds.get(target)
    load = None if rebuild is None else rebuild.load
    for job in jobs:
        goes_on = not job.state.is_final and job.wish != "cancel"
        if goes_on and load is not None and job.id == load.job:
            raise EditRefused(f"{target}: `binlogd jobs cancel {quoted(job.id)}` comes first")


def rebuild_job(wanted: JobRequest, number: str, now_ms: int) -> Job:
    """A job for a rebuild that is recorded in the snapshot already, into the table of a number."""
    job = new_job(wanted, now_ms, f"{KIND}-{number}")
    return replace(job, state=State.RUNNING, started_ms=now_ms, memory={"begun": {}})


def adopted(snapshot: Snapshot, jobs: Mapping[str, Job], now_ms: int) -> list[Job]:
    """Jobs for recorded rebuilds that have none: of an earlier version, or whose file is lost.

    One that belongs to a job of another kind, as a load does, has its job.
    """
    found = []
    open_ = [job for job in jobs.values() if not job.state.is_final]
    owned = {target for job in open_ for target in job.wanted.targets}
    for target, rebuild in sorted(snapshot.rebuilds.items()):
        number = rebuild.into.rpartition("_")[2]
        if f"{KIND}-{number}" not in jobs and target not in owned and not rebuild.cancelled:
            params: dict[str, Any] = {"keep_old": rebuild.keep_old}
            wanted = JobRequest(KIND, snapshot.pipeline, (target,), params, "recorded")
            found.append(rebuild_job(wanted, number, now_ms))
    return found


def without_job(snapshot: Snapshot, jobs: Mapping[str, Job]) -> dict[str, str]:
    """By target the job of a recorded load that is not there, or has ended without it."""
    loads = {name: each.load.job for name, each in snapshot.rebuilds.items() if each.load}
    open_ = {id_ for id_, job in jobs.items() if not job.state.is_final}
    return {name: job for name, job in loads.items() if job not in open_}


def _frontiers(snapshot: Snapshot, rebuild: Rebuild) -> dict[str, int]:
    """Where reading begins, by lane."""
    states = snapshot.partitions
    return {str(s): states[s].frontier if s in states else 0 for s in rebuild.until}


def _progress(snapshot: Snapshot, rebuild: Rebuild, begun: Mapping[str, int]) -> JobProgress:
    done = total = 0
    for source, last in rebuild.until.items():
        state = snapshot.partitions.get(source)
        first = begun.get(str(source), 0)
        whole = max(0, last + 1 - first)
        total += whole
        done += min(whole, max(0, (0 if state is None else state.frontier) - first))
    return JobProgress(done, total, "messages")


def _all_of(job: Job) -> JobProgress | None:
    total = job.progress.total
    return None if total is None else replace(job.progress, done=total)
