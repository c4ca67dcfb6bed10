"""``binlogd pause``, ``resume`` and ``drain``: of pipelines and targets of the running daemon.

A pipeline that a data error has stopped is started again by ``resume``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import structlog

from actors.contract.addresses import Address
from actors.contract.messages import PauseReading, PauseTarget
from daemon.config.pipeline_config import PipelineConfig, pipeline_of_target, pipelines_of
from daemon.operations.engine.here import Here, InDaemon
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.state.control import ControlError
from daemon.state.edits import EditRefused
from daemon.state.pauses import Pause
from settings.counted import counted
from settings.exit import Exit

LOOK_EVERY_S = 0.5
"""Between two looks. More than the time for which looks share their answers."""

NAME = Option("A pipeline, or a target such as lake.shop.orders.", argument=True, metavar="NAME")
REASON = Option("What others read in status, metrics and on the page.")
RUNNING = "a pause is recorded by the running daemon"


class PauseParams(Params):
    """What is paused, and why."""

    name: Annotated[str, NAME]
    reason: Annotated[str, REASON] = ""


class PauseOperation(Operation[PauseParams]):
    """Have a pipeline read nothing, or a target not be written, until binlogd resume.

    It outlasts restarts. What comes for a paused target is kept in its spill.
    """

    words, params, needs_daemon = "pause", PauseParams, RUNNING
    example, undone_by = 'shop --reason "the lake moves"', "resume"

    def plan(self, params: PauseParams, here: Here) -> Plan:
        """Whether it can be paused."""
        daemon = here.daemon
        name, pipeline = known(pipelines_of(daemon.config), params.name)
        if name == pipeline:
            text = f"pipeline {name} is paused: it reads nothing more, what it has read is written"
            return Plan(lines=(text,))
        if "file" not in daemon.config.pipeline[pipeline].offset_stores:
            why = "its spill is a file, so offset_stores must have file, which lists it"
            raise EditRefused(f"{name}: {why}")
        _refuse_in_job(daemon, name)
        return Plan(
            lines=(f"{name} is paused: nothing is written, what comes is kept in its spill",)
        )

    def step(self, params: PauseParams, here: Here) -> Done:
        """Record it, then have the actors follow: what a restart between the two would do."""
        plan, name, pauses = self.plan(params, here), params.name, here.daemon.lent.pauses
        with here.daemon.lent.lock:
            if name not in pauses.now():
                pause = Pause(time.time_ns() // 1_000_000, params.reason)
                record(here.daemon, name, pause, lambda: _refuse_in_job(here.daemon, name))
                _log().warning("paused", name=name, reason=params.reason)
            follow(here.daemon, name, paused=True)
        here.say(*plan.lines)
        return Done()


class ResumeParams(Params):
    """What goes on."""

    name: Annotated[str, NAME]


class ResumeOperation(Operation[ResumeParams]):
    """Have a pipeline that is paused or has stopped, or a paused target, go on where it was.

    A pipeline that stopped reads the same record again: resume it once the cause is gone.
    """

    words, params, needs_daemon = "resume", ResumeParams, RUNNING
    example, undone_by = "shop", "pause"

    def plan(self, params: ResumeParams, here: Here) -> Plan:
        """A target that no route leads to any more is only forgotten."""
        name, paused = params.name, here.daemon.lent.pauses.now()
        try:
            _, pipeline = known(pipelines_of(here.config), name)
        except EditRefused:
            if name not in paused:
                raise
            return Plan(lines=(f"{name} is not paused any more; no route leads to it",))
        what = f"pipeline {name}" if name == pipeline else name
        if _has_failed(here.daemon, name):
            return Plan(lines=(f"{what} starts again where it stopped",))
        if name not in paused:
            return Plan(lines=(f"{what} is not paused",), nothing=True)
        return Plan(lines=(f"{what} {'reads on' if name == pipeline else 'is written again'}",))

    def step(self, params: ResumeParams, here: Here) -> Done:
        """Forget it, then have the actors follow."""
        with here.daemon.lent.lock:
            plan = self.plan(params, here)
            failed = _has_failed(here.daemon, params.name)
            if not plan.nothing:
                record(here.daemon, params.name, None)
                _log().warning("resumed", name=params.name)
            if not plan.nothing and not failed:
                follow(here.daemon, params.name, paused=False)
        if failed:
            here.edit(params.name, lambda snapshot: snapshot)
        here.say(*plan.lines)
        return Done()


class DrainParams(Params):
    """Which pipeline, and how long to wait."""

    pipeline: Annotated[str, Option("The pipeline's name.", argument=True)]
    wait: Annotated[
        bool, Option("Until all that was read is written. Status 75: not.", flag="--wait")
    ] = False
    within: Annotated[float, Option("Seconds that --wait waits.")] = 600.0
    reason: Annotated[str, REASON] = ""

    def model_post_init(self, _: Any) -> None:
        """Refuse a target."""
        if "." in self.pipeline:
            raise EditRefused(f"{self.pipeline}: a pipeline is drained; a target is paused")


class DrainOperation(Operation[DrainParams]):
    """Have a pipeline write all that it has read, and then stay paused."""

    words, params, needs_daemon = "drain", DrainParams, RUNNING
    example, undone_by = "shop --wait", "resume"
    _pause = PauseOperation()

    def plan(self, params: DrainParams, here: Here) -> Plan:
        """As a pause."""
        return self._pause.plan(self._paused(params), here)

    def step(self, params: DrainParams, here: Here) -> Done:
        """Pause it, and wait where that was requested."""
        self._pause.step(self._paused(params), here)
        pipeline, end = params.pipeline, time.monotonic() + params.within
        while params.wait:
            # Answers of a moment ago may be shared: what was read since is not in them.
            if here.daemon.wait(LOOK_EVERY_S):
                raise ControlError(f"whether pipeline {pipeline} is drained is not known")
            left = list(undone(here.daemon.lent.status(), pipeline))
            if not left:
                here.say(f"pipeline {pipeline} is drained")
                break
            if time.monotonic() > end:
                here.note(f"pipeline {pipeline} is not drained within {params.within:g} s:", *left)
                return Done(status=Exit.DEADLINE)
        return Done()

    def _paused(self, params: DrainParams) -> PauseParams:
        return PauseParams(name=params.pipeline, reason=params.reason)


def known(pipelines: Mapping[str, PipelineConfig], name: str) -> tuple[str, str]:
    """What is meant, and its pipeline. Raises EditRefused."""
    pipeline = name if name in pipelines else pipeline_of_target(pipelines, name)
    if pipeline is None:
        have = ", ".join(sorted(pipelines))
        raise EditRefused(f"{name!r}: no target of any route, and no pipeline; have: {have}")
    return name, pipeline


def _has_failed(daemon: InDaemon, name: str) -> bool:
    """Whether it is a pipeline that a data error stopped."""
    pipelines = daemon.lent.status()["pipelines"]
    return any(p["pipeline"] == name and p["failure"] is not None for p in pipelines)


def _refuse_in_job(daemon: InDaemon, name: str) -> None:
    """Raises EditRefused where a job works on a target."""
    for job in daemon.jobs:
        if name in job.wanted.targets and not job.state.is_final:
            raise EditRefused(f"{name}: the job {job.id} works on it")


def record(
    daemon: InDaemon, name: str, pause: Pause | None, check: Callable[[], None] = lambda: None
) -> None:
    """Record that it is paused, or is not. ``check``: see ``Pauses.put``. Raises ControlError."""
    try:
        daemon.lent.pauses.put(name, pause, check)
    except OSError as error:
        raise ControlError(f"it can't be recorded, and nothing was changed: {error}") from error


def follow(daemon: InDaemon, name: str, paused: bool) -> None:
    """Have the actors do what is recorded; one that is about to start reads it. Raises
    ControlError."""
    pipelines = pipelines_of(daemon.config)
    pipeline = name if name in pipelines else pipeline_of_target(pipelines, name)
    if pipeline is None:
        return
    actors = [Address(pipeline, "fetcher")]
    if name != pipeline:
        numbers = range(daemon.config.daemon.processors)
        actors = [Address(pipeline, "processor", number) for number in numbers]
    message = PauseReading(paused) if name == pipeline else PauseTarget(name, paused)
    try:
        for _ in daemon.ask_actors(message, actors):
            pass  # an answer says that it follows
    except ControlError as error:
        raise ControlError(f"recorded, but {error}") from error


def undone(status: Mapping[str, Any], pipeline: str) -> Iterator[str]:
    """What a pipeline that reads nothing more has not written yet, a line each."""
    found = next((p for p in status["pipelines"] if p["pipeline"] == pipeline), None)
    if found is None:
        yield "it was removed"
        return
    if found["failure"] or found["stage"] != "running":
        yield f"it is {found['stage']}: {found['failure'] or 'for a moment'}"
    silent = [each["actor"] for each in status["silent"]]
    yield from (f"{actor} is busy" for actor in silent if actor.startswith(f"{pipeline}/"))
    for part in found["partitions"]:
        if left := part["unapplied_messages"]:
            yield f"{part['source']}: {counted(left, 'message is', 'messages are')} not written"
    for target in found["targets"]:
        if target["holds_frontier_of"]:
            why = target["last_error"]["reason"] if target["last_error"] else target["phase"]
            yield f"{target['target']}: {why}"


def _log() -> Any:
    return structlog.get_logger().bind(actor="pauses")
