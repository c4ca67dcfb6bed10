"""What the rule of jobs asks for, and what it hears. Values alone."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from daemon.config.pipeline_parts import Window
from daemon.operations.engine.port import JobKind, Outcome
from daemon.operations.engine.record import Job, JobProgress, JobRequest

Request = Literal["pause", "resume", "cancel"]

Asked = Literal["", "pause", "cancel", "stop"]


class Now(NamedTuple):
    """``s``: monotonic seconds; ``ms``: Unix milliseconds."""

    s: float
    ms: int


class Limits(NamedTuple):
    """A kind's: how many at once, the hours in which steps may begin, whether it can rest."""

    concurrent: int = 1
    window: Window | None = None
    can_pause: bool = True


def limits_of(kinds: Mapping[str, JobKind]) -> dict[str, Limits]:
    """What the rule knows of each kind."""
    return {n: Limits(kind.concurrent, kind.window, kind.can_pause) for n, kind in kinds.items()}


# --- effects; those of one job are carried out in order, and none after a Save that failed


@dataclass(frozen=True, slots=True)
class Save:
    """Make it durable. A failure is heard as ``NotSaved``."""

    job: Job


@dataclass(frozen=True, slots=True)
class DoStep:
    """Do the next step, on the job's own thread. Heard: Stepped, Broken or Left."""

    job: Job


@dataclass(frozen=True, slots=True)
class Undo:
    """Remove what it has begun, on its own thread. Heard: Undone, Broken or Left."""

    job: Job


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the step under way look up."""

    id: str
    asked: Asked


@dataclass(frozen=True, slots=True)
class ReleaseThread:
    """The job needs its thread and writers no more."""

    id: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Forget a job that has ended."""

    id: str


@dataclass(frozen=True, slots=True)
class Notify:
    """Send a notification; ``type`` is Debezium's word."""

    job: Job
    type: str
    data: Mapping[str, str] = field(default_factory=dict)


# --- events


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step has ended."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Broken:
    """A step, or the undoing, has failed. ``away``: repeating it may help."""

    id: str
    reason: str
    away: bool


@dataclass(frozen=True, slots=True)
class Undone:
    """What was begun is removed."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class Left:
    """A step was left because of a request to its job."""

    id: str


@dataclass(frozen=True, slots=True)
class Told:
    """How far a step under way is."""

    id: str
    progress: JobProgress
    message: str


@dataclass(frozen=True, slots=True)
class NotSaved:
    """A job could not be made durable. ``held``: its step, which came next, was not begun."""

    id: str
    held: bool


Effect = Save | DoStep | Undo | Ask | ReleaseThread | Remove | Notify
Event = Stepped | Broken | Undone | Left | Told | NotSaved

# --- requests of other threads


@dataclass(frozen=True, slots=True)
class AddJob:
    """Record a job; ``id`` None: the runner names it."""

    wanted: JobRequest
    id: str | None
    done: Future[Job]


@dataclass(frozen=True, slots=True)
class AskJob:
    """Pause, resume or cancel a job. ``done``: why it is refused, or None."""

    id: str
    request: Request
    done: Future[str | None]


@dataclass(frozen=True, slots=True)
class StopJobs:
    """Begin no further step."""


def id_of(effect: Effect) -> str:
    """The job that an effect is for."""
    return effect.job.id if isinstance(effect, Save | DoStep | Undo | Notify) else effect.id
