"""Where an operation is carried out: in the running daemon, or in a command's process."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pykka

from actors.contract.addresses import Address
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.context import Daemon, DaemonLook
from daemon.operations.engine.effects import Request, Save, limits_of
from daemon.operations.engine.port import JobKind, Look
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.rule import JobsLogic
from daemon.operations.engine.runner import JobRunner, now
from daemon.operations.engine.store import JobStore
from daemon.state.control import ControlError, NotRunning
from daemon.state.edits import Change, EditRefused, Fate, claimed, edit_offline, recorded_of
from daemon.state.offset_stores import make_stores
from daemon.state.pauses import Pauses
from databases.base.log_end import ReaderPosition
from offsets.snapshot import Snapshot
from sources.base.port import Source
from sources.opening import open_source

if TYPE_CHECKING:
    from actors.runtime.shell import Directory
    from collector.collectors import Collectors
    from daemon.config.log_level import LogLevels

T = TypeVar("T")

Tell = Callable[[bool, str], None]
"""Takes a line as it comes; True: it is of what was done, False: a warning, a reason, progress."""

ANSWER_WITHIN_S = 4.0
"""The limit for all actors together, which may be in a poll or decode a batch; and for the jobs,
whose requests are durable in milliseconds."""


class Here(Look, ABC):
    """What an operation may use, wherever it is carried out. One thread's."""

    running = False
    """Whether this is the running daemon."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def say(self, *lines: str) -> None:
        """Lines about what was done, or would be."""
        for line in lines:
            self._tell(True, line)

    def note(self, *lines: str) -> None:
        """Warnings, reasons and progress."""
        for line in lines:
            self._tell(False, line)

    @property
    @abstractmethod
    def daemon(self) -> InDaemon:
        """The running daemon. Raises NotRunning."""

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, JobKind]:
        """The kinds of jobs, by name."""

    @property
    @abstractmethod
    def jobs(self) -> tuple[Job, ...]:
        """All jobs as they are now."""

    @abstractmethod
    def edit(self, pipeline: str, change: Change) -> None:
        """Change a pipeline's snapshot; return when it is durable, and the pipeline runs again.

        Raises EditRefused (nothing was changed), EditFailed, StoreError.
        """

    @abstractmethod
    def hold(self, pipeline: str, act: Callable[[], T]) -> T:
        """Do something to a pipeline's files while it stands still; its snapshot stays.

        It goes on whatever ``act`` raises, and one that had ended stays so. Raises as ``act``, and
        EditRefused (nothing was done), EditFailed.
        """

    @abstractmethod
    def ask_job(self, id_: str, request: Request) -> None:
        """Pause, resume or cancel a job; a daemon that starts later follows then. Raises
        EditRefused, ControlError."""


class Edit(Protocol):
    """``daemon.app.service.Service.edit``."""

    def __call__(
        self, pipeline: str, change: Change, fate: Fate = Fate.RUNS_AGAIN
    ) -> Future[None]: ...


@dataclass
class Lent:
    """What the running daemon lends to its operations. ``lock``: for what must not overlap, such as
    a pause and a resume. ``directory`` and ``processors`` are there once the actors run."""

    daemon: Daemon
    edit: Edit
    runner: JobRunner
    pauses: Pauses
    status: Callable[[], Mapping[str, Any]]
    levels: LogLevels | None = None
    collectors: Collectors | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    directory: Directory | None = None
    processors: tuple[Address, ...] = ()

    def watch(self, directory: Directory, addresses: Iterable[Address]) -> None:
        """Ask these actors from now on. The main thread calls it."""
        self.processors = tuple(a for a in addresses if a.role == "processor")
        self.directory = directory


class InDaemon(DaemonLook, Here):
    """The running daemon, for the thread of one operation."""

    running = True

    def __init__(self, lent: Lent, tell: Tell, wait: Callable[[float], bool]) -> None:
        """``wait``: so many seconds; tells whether nobody waits for the operation any more."""
        DaemonLook.__init__(self, lent.daemon)
        Here.__init__(self, tell)
        self.lent = lent
        self.wait = wait

    @property
    def daemon(self) -> InDaemon:
        """See ``Here``."""
        return self

    @property
    def kinds(self) -> Mapping[str, JobKind]:
        """See ``Here``."""
        return self.lent.runner.kinds

    @property
    def jobs(self) -> tuple[Job, ...]:
        """See ``Here``."""
        return self.lent.runner.jobs

    def edit(self, pipeline: str, change: Change) -> None:
        """See ``Here``."""
        self.lent.edit(pipeline, change).result()

    def hold(self, pipeline: str, act: Callable[[], T]) -> T:
        """See ``Here``."""
        done: Future[T] = Future()

        def unchanged(snapshot: Snapshot) -> Snapshot:
            try:
                done.set_result(act())
            except Exception as error:
                done.set_exception(error)
            return snapshot

        self.lent.edit(pipeline, unchanged, Fate.AS_IT_WAS).result()
        return done.result()

    def ask_job(self, id_: str, request: Request) -> None:
        """See ``Here``."""
        refusal = in_time(self.lent.runner.ask(id_, request))
        if refusal is not None:
            raise EditRefused(refusal)

    def add_job(self, wanted: JobRequest, id_: str | None = None) -> Job:
        """Record a job, durably. Raises ControlError, JobsClosed, OSError, EditRefused."""
        return in_time(self.lent.runner.add(wanted, id_))

    def ask_actors(self, question: object, actors: Iterable[Address]) -> Iterator[Any]:
        """What these actors answer. For one that ends meanwhile, its replacement is queried.
        Raises ControlError at the end where one has not answered in time."""
        directory, deadline = self.lent.directory, time.monotonic() + ANSWER_WITHIN_S
        if directory is None:
            return
        # All at once: they answer beside each other.
        left = [(a, directory.question(a, question)) for a in actors if directory.has(a)]
        silent: Address | None = None
        while left:
            actor, future = left.pop(0)
            try:
                yield future.get(timeout=max(0.0, deadline - time.monotonic()))
            except pykka.Timeout:
                silent = actor
            except pykka.ActorDeadError:
                if directory.ref(actor).is_alive():
                    left.append((actor, directory.question(actor, question)))
        if silent is not None:
            within = f"within {ANSWER_WITHIN_S:g} s"
            raise ControlError(f"{silent} has not answered {within}; try again")


class Offline(Here):
    """A command's process, while no daemon runs: files, under the state directory's lock."""

    def __init__(self, config: Config, tell: Tell, kinds: Mapping[str, JobKind]) -> None:
        super().__init__(tell)
        self._config, self._kinds = config, kinds
        self._sources: dict[str, Source] = {}

    @property
    def config(self) -> Config:
        """See ``Look``."""
        return self._config

    @property
    def daemon(self) -> InDaemon:
        """See ``Here``."""
        raise NotRunning(f"no daemon runs on {self._config.daemon.state_dir}")

    @property
    def kinds(self) -> Mapping[str, JobKind]:
        """See ``Here``."""
        return self._kinds

    @property
    def jobs(self) -> tuple[Job, ...]:
        """See ``Here``."""
        return JobStore(self._config.daemon.state_dir).load().jobs

    def snapshot(self, pipeline: str) -> Snapshot:
        """See ``Look``. Damage is noted."""
        settings = PipelineConfig(self._config, pipeline)
        store = make_stores(settings)
        store.start()
        try:
            loaded = store.get()
        finally:
            store.stop()
        self.note(*loaded.damage)
        return recorded_of(settings, loaded)

    def source(self, pipeline: str) -> Source:
        """See ``Look``."""
        return self._sources.setdefault(pipeline, open_source(self._config, pipeline))

    def reader_position(self, pipeline: str) -> ReaderPosition:
        """See ``Look``: its worker is the running daemon's."""
        return {}

    def edit(self, pipeline: str, change: Change) -> None:
        """See ``Here``."""
        edit_offline(PipelineConfig(self._config, pipeline), change)

    def hold(self, pipeline: str, act: Callable[[], T]) -> T:
        """See ``Here``."""
        with claimed(self._config.daemon.state_dir):
            return act()

    def ask_job(self, id_: str, request: Request) -> None:
        """See ``Here``."""
        with self._held() as store:
            logic = JobsLogic(limits_of(self._kinds), store.load().jobs, keep=1000)
            refusal, effects = logic.ask(id_, request, now())
            for effect in effects:
                if isinstance(effect, Save):
                    store.save(effect.job)
        if refusal is not None:
            raise EditRefused(refusal)

    def record(self, job: Job) -> None:
        """Record a job for the next start. Raises ControlError."""
        with self._held() as store:
            store.save(job)

    @contextmanager
    def _held(self) -> Iterator[JobStore]:
        try:
            with claimed(self._config.daemon.state_dir):
                yield JobStore(self._config.daemon.state_dir)
        except OSError as error:
            raise ControlError(f"the jobs' files can't be used: {error}") from error


def in_time(done: Future[T]) -> T:
    """The jobs' answer. Raises ControlError, JobsClosed, OSError, ValueError."""
    try:
        return done.result(ANSWER_WITHIN_S)
    except TimeoutError:
        raise ControlError(f"the jobs did not answer within {ANSWER_WITHIN_S:g} s") from None
