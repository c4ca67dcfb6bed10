"""The life cycle of the process and its pipelines. Deterministic, so every ending has a test.

A pipeline runs, then drains (its processors write what they hold), then closes (last commit, the
consumer leaves), then has ended. A data error takes one pipeline through this; the process stays,
so that people see why, unless it is to exit then. A crash ends the process at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from offsets.position import TopicPartition
from settings.exit import Exit

Place = tuple[TopicPartition, int]
"""A record's."""

CLOSE_TIMEOUT_S = 15.0
"""The limit for the last save and commit. A broker that is away blocks a commit for far longer."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the process with that status."""

    status: Exit


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator wants a pipeline to stand still, whether it runs or has ended. ``PipelineHeld``
    follows. Only one request may hold a pipeline at a time."""

    pipeline: str


@dataclass(frozen=True, slots=True)
class PipelineHeld:
    """The pipeline's consumer has left the group, so its actors may be removed. ``late``: not all
    of what it had read was written in time; that is read again."""

    pipeline: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """The pipeline runs again with new actors, or (``ended``) it does not. ``failure`` says why;
    None if an end was requested meanwhile."""

    pipeline: str
    ended: bool = False
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class NameRemaining:
    """Ask the processors of a pipeline what they still hold, and log it."""

    processors: tuple[Address, ...]


LifeEffect = fx.Tell | fx.Log | Finish | PipelineHeld | NameRemaining
"""What the life cycle wants done."""


class Stage(Enum):
    """A pipeline's stage in its life."""

    RUNNING = "running"
    DRAINING = "draining"
    CLOSING = "closing"
    HELD = "held"
    """Its recorded positions are being changed; then it runs again."""
    ENDED = "ended"


@dataclass(slots=True)
class PipelineLife:
    """One pipeline's life."""

    name: str
    processors: int
    stage: Stage = Stage.RUNNING
    failure: str | None = None
    failed_at: Place | None = None
    late: bool = False
    deadline: float | None = None
    undrained: set[Address] = field(default_factory=set)
    held: bool = False
    """The pipeline is to be held, or is. When its actors end, it has not ended."""

    def at(self, role: str) -> Address:
        """The address of one of its actors."""
        return Address(self.name, role)


class Lifecycle:
    """The supervisor's rule. One thread, the main one, calls ``handle`` and ``tick``."""

    def __init__(
        self, pipelines: dict[str, int], drain_timeout_s: float, *, stays: bool = False
    ) -> None:
        """``pipelines`` maps a name to its number of processors. ``stays``: the process goes on
        after the last pipeline has failed, until an end is requested."""
        self._stays = stays
        self._pipelines = {name: PipelineLife(name, count) for name, count in pipelines.items()}
        self._drain_timeout_s = drain_timeout_s
        self._stopping = False

    @property
    def deadline(self) -> float | None:
        """The next monotonic second at which ``tick`` has something to do."""
        deadlines = [p.deadline for p in self._pipelines.values() if p.deadline is not None]
        return min(deadlines, default=None)

    def handle(self, event: object, now: float) -> list[LifeEffect]:
        """Handle an event from the actors or the signals."""
        if self._is_gone(event):
            return []
        match event:
            case msg.ActorCrashed(sender, reason):
                fields = {"actor": str(sender), "reason": reason}
                return [fx.Log("critical", "crashed", fields), Finish(Exit.CRASHED)]
            case msg.StopRequested(signal):
                return self._stop_requested(signal, now)
            case msg.PipelineFailed(name):
                return self._failed(self._pipelines[name], event, now)
            case msg.CaughtUp(name):
                return self._drain(self._pipelines[name], now)
            case msg.Drained(sender):
                return self._drained(self._pipelines[sender.pipeline], sender, now)
            case msg.SourceClosed(name):
                return self._closed(self._pipelines[name])
            case Hold(name):
                return self._hold(self._pipelines[name], now)
            case Resumed():
                return self._resumed(message=event)
            case _:
                raise TypeError(f"the supervisor does not know {event!r}")

    def _is_gone(self, event: object) -> bool:
        """Whether it is a late word of a pipeline that nobody knows any more."""
        match event:
            case msg.PipelineFailed(name) | msg.CaughtUp(name) | msg.SourceClosed(name):
                return name not in self._pipelines
            case msg.Drained(sender):
                return sender.pipeline not in self._pipelines
            case _:
                return False

    def tick(self, now: float) -> list[LifeEffect]:
        """Enforce the deadlines."""
        out: list[LifeEffect] = []
        for pipeline in self._pipelines.values():
            if pipeline.deadline is None or now < pipeline.deadline:
                continue
            pipeline.late = True
            if pipeline.stage is Stage.DRAINING:
                out.append(NameRemaining(tuple(sorted(pipeline.undrained))))
                out += self._close(pipeline, now)
            else:
                fields = {"pipeline": pipeline.name}
                out.append(fx.Log("error", "close_deadline_passed", fields))
                out += self._ended(pipeline)
        return out

    def _stop_requested(self, signal: str, now: float) -> list[LifeEffect]:
        if self._stopping:
            return [fx.Log("warning", "stopping_now", {"signal": signal}), Finish(Exit.KILLED)]
        self._stopping = True
        out: list[LifeEffect] = [fx.Log("info", "draining", {"signal": signal})]
        for pipeline in self._pipelines.values():
            out += self._drain(pipeline, now)
            if pipeline.stage is Stage.HELD:  # the edit may end, in bounded time
                pipeline.deadline = now + self._drain_timeout_s
        return [*out, *self._finish()]

    def _failed(
        self, pipeline: PipelineLife, failed: msg.PipelineFailed, now: float
    ) -> list[LifeEffect]:
        fields = {"pipeline": pipeline.name, "reason": failed.reason}
        if pipeline.failure is None or _is_before(failed.at, pipeline.failed_at):
            pipeline.failure, pipeline.failed_at = failed.reason, failed.at
        return [fx.Log("error", "pipeline_failed", fields), *self._drain(pipeline, now)]

    def _drain(self, pipeline: PipelineLife, now: float) -> list[LifeEffect]:
        if pipeline.stage is not Stage.RUNNING:
            return []
        pipeline.stage = Stage.DRAINING
        pipeline.deadline = now + self._drain_timeout_s
        pipeline.undrained = {
            Address(pipeline.name, "processor", index) for index in range(pipeline.processors)
        }
        return [fx.Tell(pipeline.at("fetcher"), msg.StopFetching())]

    def _drained(self, pipeline: PipelineLife, sender: Address, now: float) -> list[LifeEffect]:
        pipeline.undrained.discard(sender)
        if pipeline.undrained or pipeline.stage is not Stage.DRAINING:
            return []
        return self._close(pipeline, now)

    def _close(self, pipeline: PipelineLife, now: float) -> list[LifeEffect]:
        pipeline.stage = Stage.CLOSING
        pipeline.deadline = now + CLOSE_TIMEOUT_S
        return [fx.Tell(pipeline.at("committer"), msg.SaveNow())]

    def _closed(self, pipeline: PipelineLife) -> list[LifeEffect]:
        """The consumer has left. If the pipeline is held already, it left after its deadline."""
        return [] if pipeline.stage is Stage.HELD else self._ended(pipeline)

    def _hold(self, pipeline: PipelineLife, now: float) -> list[LifeEffect]:
        pipeline.held = True
        if pipeline.stage is Stage.ENDED:
            pipeline.stage = Stage.HELD
            return [PipelineHeld(pipeline.name)]
        return self._drain(pipeline, now)

    def _resumed(self, message: Resumed) -> list[LifeEffect]:
        pipeline = self._pipelines[message.pipeline]
        if pipeline.stage is not Stage.HELD:
            return []  # the deadline of an end passed meanwhile
        pipeline.held = pipeline.late = False
        pipeline.failure, pipeline.failed_at = message.failure, None
        pipeline.deadline = None
        if message.ended:
            return self._ended(pipeline)
        pipeline.stage = Stage.RUNNING
        return [fx.Log("info", "pipeline_runs_again", {"pipeline": pipeline.name})]

    def _ended(self, pipeline: PipelineLife) -> list[LifeEffect]:
        if pipeline.stage is Stage.ENDED:
            return []
        if pipeline.held and pipeline.stage is not Stage.HELD:
            pipeline.stage, pipeline.deadline = Stage.HELD, None
            return [PipelineHeld(pipeline.name, pipeline.late)]
        pipeline.stage = Stage.ENDED
        pipeline.held, pipeline.deadline = False, None
        fields = {"pipeline": pipeline.name, "failure": pipeline.failure}
        return [fx.Log("info", "pipeline_ended", fields), *self._finish()]

    def _finish(self) -> list[LifeEffect]:
        ended = all(p.stage is Stage.ENDED for p in self._pipelines.values())
        return [Finish(self._status())] if ended and not self._waits else []

    @property
    def _waits(self) -> bool:
        """Whether a pipeline that failed keeps the process: somebody is to see why."""
        failed = any(p.failure is not None for p in self._pipelines.values())
        return self._stays and failed and not self._stopping

    def add(self, name: str, processors: int) -> None:
        """Know one more pipeline, that has not begun: an edit holds it, and then it runs."""
        self._pipelines[name] = PipelineLife(name, processors, Stage.ENDED)

    def forget(self, name: str) -> list[LifeEffect]:
        """Know a held pipeline no more."""
        del self._pipelines[name]
        return self._finish()

    def _status(self) -> Exit:
        lives = self._pipelines.values()
        if any(p.failure for p in lives):
            return Exit.PIPELINE_FAILED
        return Exit.DEADLINE if any(p.late for p in lives) else Exit.OK

    @property
    def stopping(self) -> bool:
        """Whether the end was requested, or no pipeline runs any more."""
        lives = self._pipelines.values()
        none_runs = not any(p.held or p.stage is Stage.RUNNING for p in lives)
        return self._stopping or (none_runs and not self._waits)

    def stages(self) -> dict[str, str]:
        """Each pipeline's stage."""
        return {pipeline.name: pipeline.stage.value for pipeline in self._pipelines.values()}

    def failures(self) -> dict[str, str]:
        """Why pipelines failed, by name."""
        return {p.name: p.failure for p in self._pipelines.values() if p.failure is not None}


def _is_before(at: Place | None, other: Place | None) -> bool:
    """A later record is often found sooner: the reader finds bad ones before a decoder does."""
    return at is not None and other is not None and at[0] == other[0] and at[1] < other[1]
