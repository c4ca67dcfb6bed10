"""The port of jobs: what a kind of job implements, and what it may ask of the daemon.

A kind holds no state of its own. All that its next step needs is in the job's ``memory``, which is
durable before that step begins. So a step may be repeated, after a crash and after a failure: it
begins by looking at what is there already (a fenced write that is covered, a rebuild that is
recorded with the job's id).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from actors.contract.ports import ResettableSink
from daemon.config.config import Config
from daemon.config.pipeline_parts import Window
from daemon.operations.engine.record import Job, JobProgress, JobRequest
from daemon.state.edits import Change
from databases.base.log_end import ReaderPosition
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.base.port import Source

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm

T = TypeVar("T")


class JobAway(Exception):
    """Something that the step needs is away: one line. The step is repeated, with growing waits.

    ``SinkUnavailable``, ``DatabaseAway``, ``StoreError``, ``EditFailed``, a
    ``NotAnswered`` that is ``away`` and OSError count as this, too.
    """


class JobFailed(Exception):
    """The job can't go on: one line. What it has begun in targets and snapshots is undone by its
    kind before it raises, or stays as the line says.

    ``TargetRefused``, ``DatabaseRefused`` and ``EditRefused`` count as this, and any
    unforeseen exception, which is logged with its traceback.
    """


class JobStopped(Exception):
    """The daemon is being stopped: leave the step. The next start repeats it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A dry run. ``lines`` are for people, ``document`` is the same as JSON.

    ``wanted``: the request with everything open decided (patterns as targets), one for each job
    that would be recorded. ``refusals``: why it can't be done, one line each; nothing is recorded
    then. ``notes``: warnings. ``nothing``: there is nothing to do.
    ``status``: what a dry run ends with where nothing refuses it.
    """

    wanted: tuple[JobRequest, ...] = ()
    lines: tuple[str, ...] = ()
    document: Any = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nothing: bool = False
    status: Exit = Exit.OK


@dataclass(frozen=True, slots=True)
class Notice:
    """One event for the notifications' channels, beside those that the runner sends by itself
    (STARTED, IN_PROGRESS, PAUSED, RESUMED, ABORTED, COMPLETED). ``type`` is Debezium's word."""

    type: Literal["TABLE_SCAN_COMPLETED", "IN_PROGRESS"]
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Advanced:
    """A step is done and the next follows at once, or after ``wait_s`` with the state waiting.

    ``message`` says what comes next, or what it waits for. ``wait_s`` ends early on a request
    to the job. Without ``progress`` the last one stays.
    """

    memory: Mapping[str, Any]
    progress: JobProgress | None = None
    message: str = ""
    wait_s: float = 0.0
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The last step is done. ``message``: the outcome in one line."""

    result: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    progress: JobProgress | None = None
    notices: tuple[Notice, ...] = ()


Outcome = Advanced | Finished


class Look(Protocol):
    """What a plan may ask, in a command's process or in the daemon. One thread's."""

    @property
    def config(self) -> Config:
        """The configuration."""
        ...

    def snapshot(self, pipeline: str) -> Snapshot:
        """What is recorded of a pipeline last. Raises StoreError."""
        ...

    def source(self, pipeline: str) -> Source:
        """The pipeline's topics and group."""
        ...

    def reader_position(self, pipeline: str) -> ReaderPosition:
        """Where the pipeline's collector has its position now."""
        ...


class Control(Look, Protocol):
    """What a step may ask of the running daemon. One job's thread's."""

    @property
    def asked(self) -> Literal["", "pause", "cancel", "stop"]:
        """The open request to the job. A long step checks it between its parts, and returns
        ``Advanced`` with what it has; the runner then carries it out. ``stop`` allows seconds."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait, at most until a request to the job; returns whether there is one."""
        ...

    def tell(self, progress: JobProgress, message: str = "") -> None:
        """Show how far a long step is, in status and metrics alone. Cheap."""
        ...

    def sinks(self) -> Mapping[str, ResettableSink]:
        """The writers, by sink: this thread's own, made at the first call."""
        ...

    def spark(self, act: Callable[[SparkJvm], T]) -> T:
        """Call ``act`` with the living session, which is the sinks' own.

        Raises SinkUnavailable where there is none now, or where it ended meanwhile; JobFailed where
        no sink of the configuration uses Spark; and what ``act`` raises.
        """
        ...

    def edit(self, pipeline: str, change: Change) -> None:
        """Stop the pipeline, change its snapshot, start it again; return when it runs again.

        Raises EditRefused (nothing was changed), EditFailed, JobStopped. After JobStopped or a
        crash the change may have been made: the repeated step looks at the snapshot first.
        """
        ...


class JobKind(Protocol):
    """A kind of job. One instance serves all threads.

    Where it has source tables, its jobs name them in ``params["tables"]``, as ``database.table``:
    signals choose jobs by them, and notifications show them.
    """

    @property
    def name(self) -> str:
        """Lower-case letters; ids begin with it."""
        ...

    @property
    def concurrent(self) -> int:
        """How many of this kind may run at once, 1 or more."""
        ...

    @property
    def can_pause(self) -> bool:
        """Whether pausing it makes it rest; False where its work is the pipeline's own."""
        ...

    @property
    def window(self) -> Window | None:
        """The hours in which steps may begin; None: always."""
        ...

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        """The dry run. Changes nothing. Raises what ``Look`` and databases raise."""
        ...

    def wrong(self, wanted: JobRequest) -> Sequence[str]:
        """Why no step can carry out a request, one line each, without a query to anything. No job
        is recorded for such a request."""
        ...

    def step(self, job: Job, control: Control) -> Outcome:
        """Do the next step: one fenced write or edit, or one read. Repeatable.

        The first step of a new job has an empty ``memory``. Raises JobAway, JobFailed, JobStopped,
        and what counts as them.
        """
        ...

    def undo(self, job: Job, control: Control) -> str | Outcome:
        """The job is cancelled: remove what it has begun; one line that says what is left.

        ``Finished`` where it was done before it could be given up: it counts as done then.
        ``Advanced`` where something has to be remembered first: it is called again.
        Repeatable; also called where nothing was begun. Raises as ``step``.
        """
        ...
