"""``binlogd tables rebuild``: checked and recorded, by the running daemon or for the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated
from uuid import uuid4

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.here import Here, InDaemon, Offline
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.paused import pauses_of
from daemon.operations.engine.port import JobKind, Plan
from daemon.operations.engine.record import Job, JobRequest, State
from daemon.operations.engine.runner import now
from daemon.operations.rebuild.kind import (
    FLAGS,
    KIND,
    RebuildKind,
    given_up,
    job_of,
    rebuild_job,
    refuse_live_load,
)
from daemon.operations.rebuild.plan import RebuildRequest, pipeline_of
from daemon.operations.targets.retry import TARGET
from daemon.state.control import ControlError
from daemon.state.edits import EditRefused
from offsets.snapshot import Snapshot
from settings.shell import quoted
from sparkwriter.sinks import left_behind, unreplaceable

BEGUN_WITHIN_S = 3.0
"""A pipeline with long running writes stops later than that; the job goes on by itself."""


class RebuildParams(Params):
    """Which target, and how."""

    target: Annotated[str, TARGET]
    force: Annotated[
        bool, Option("Even if the log has lost its beginning; the old table stays.")
    ] = False
    keep_old: Annotated[bool, Option("Keep the old table as TARGET__before_NUMBER.")] = False
    cancel: Annotated[bool, Option("Give up a rebuild that is under way.")] = False


class RebuildOperation(Operation[RebuildParams]):
    """Read a table again from its log's start into a new one, which takes its name."""

    words, params, example = "tables rebuild", RebuildParams, "lake.shop.orders --keep-old"
    undone_by = "tables rebuild --cancel"

    def kind(self, load: LoadSection | None) -> JobKind:
        """Its job looks until the new table has its name."""
        return RebuildKind()

    def plan(self, params: RebuildParams, here: Here) -> Plan:
        """Whether the log holds what the table held."""
        self._request(params, here)
        target = TargetName.parse(params.target)
        left = () if params.cancel else left_behind(here.config, [target])
        return Plan(lines=(_said(params.target, params.cancel), *left))

    def step(self, params: RebuildParams, here: Here) -> Done:
        """Have the job begin it or give it up; while no daemon runs, do that here."""
        if isinstance(here, InDaemon):
            with here.lent.lock:
                follow = self._in_daemon(params, here)
            here.say(follow())
        else:
            assert isinstance(here, Offline)
            here.say(self._offline(params, here))
        return Done()

    def _request(self, params: RebuildParams, here: Here) -> tuple[RebuildRequest, Snapshot]:
        """Refused at once if the present snapshot refuses it."""
        target, flags = params.target, params.model_dump(exclude={"target"})
        snapshot = pipeline_of((here.snapshot(name) for name in here.config.pipeline), target)
        pipeline = PipelineConfig(here.config, snapshot.pipeline)
        wanted = RebuildRequest(pipeline, target, uuid4().hex[:8], **flags)
        refuse_live_load(snapshot, target, here.jobs)
        if not params.cancel:
            with pauses_of(here).none_of([target]):  # the job's record is looked at once more
                pass
            for why in unreplaceable(here.config, [TargetName.parse(target)]).values():
                raise EditRefused(f"{target}: {why}")
        replace(wanted, own=1 if here.running else 0)(snapshot)
        return wanted, snapshot

    def _in_daemon(self, params: RebuildParams, here: InDaemon) -> Callable[[], str]:
        """What waits for it, and gives the line about it."""
        wanted, _ = self._request(params, here)
        job = job_of(here.jobs, params.target)
        if not params.cancel:
            if job is not None:
                raise EditRefused(f"{params.target} is being rebuilt already, by the job {job.id}")
            begun = here.add_job(_job_wanted(wanted), f"{KIND}-{wanted.number}")
            return lambda: _followed(here, begun, lambda now: "begun" in now.memory)
        if job is None:  # older than the jobs: the snapshot alone knows it
            here.edit(wanted.pipeline.name, wanted)
            return lambda: _said(params.target, True)
        here.ask_job(job.id, "cancel")
        return lambda: _followed(here, job, lambda now: False)

    def _offline(self, params: RebuildParams, here: Offline) -> str:
        wanted, snapshot = self._request(params, here)
        job = job_of(here.jobs, params.target)
        if params.cancel and params.target in snapshot.rebuilds and job and not job.wish:
            # Before the edit: the next start would take a rebuild that is gone for a done one.
            here.record(replace(job, wish="cancel", memory=given_up(job), changed_ms=now().ms))
        here.edit(wanted.pipeline.name, wanted)
        if not params.cancel:
            try:
                here.record(rebuild_job(_job_wanted(wanted), wanted.number, now().ms))
            except ControlError as error:  # the edit is durable
                here.note(f"its job is recorded by the next start: {error}")
        return f"{_said(params.target, params.cancel)}, from the next start on"


def _job_wanted(wanted: RebuildRequest) -> JobRequest:
    flags = {name: getattr(wanted, name) for name in FLAGS}
    return JobRequest(KIND, wanted.pipeline.name, (wanted.target,), flags)


def _followed(here: InDaemon, job: Job, is_begun: Callable[[Job], bool]) -> str:
    def until(now: Job) -> bool:
        return now.state.is_final or is_begun(now)

    target = job.wanted.targets[0]
    now = here.lent.runner.watch(job.id, until, BEGUN_WITHIN_S)
    if now is None or now.state is State.FAILED:
        raise EditRefused(job.message if now is None else now.message)
    if not until(now):
        stops = f"{target}: pipeline {job.wanted.pipeline} is being stopped for it"
        return f"{stops}; `binlogd jobs show {quoted(job.id)}`"
    return f"{_said(target, now.state is State.CANCELLED)} (job {job.id})"


def _said(target: str, cancel: bool) -> str:
    if cancel:
        return f"{target}: the rebuild is given up; what came meanwhile is read again"
    return f"{target}: is read again into a new table, which takes its name when it has caught up"
