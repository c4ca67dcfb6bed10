"""A runner of jobs over real files and threads, with a daemon of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from actors.contract.ports import ResettableSink
from daemon.config.config import Config
from daemon.config.file import load
from daemon.operations.engine.context import Daemon
from daemon.operations.engine.here import Lent
from daemon.operations.engine.port import JobKind
from daemon.operations.engine.record import Job
from daemon.operations.engine.runner import JobRunner
from daemon.operations.engine.store import JobStore
from daemon.state.edits import Change, EditFailed, EditRefused, Fate
from daemon.state.pauses import Pauses
from offsets.snapshot import Snapshot
from offsets.store import Loaded, OffsetStore
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import SessionFigures
from sparkwriter.sinks import NoSpark
from tests.daemon.admin.page.documents import status
from tests.daemon.state.test_offset_transfer import World

T = TypeVar("T")


class NoSinks:
    """A ``SinkTier`` without any."""

    def start(self, config: Config) -> None:
        """Nothing to start."""

    def sinks(self) -> Mapping[str, ResettableSink]:
        return {}

    def session(self) -> SessionFigures | None:
        return None

    def with_spark(self, act: Callable[[SparkJvm], T]) -> T:
        raise NoSpark("no Spark here")

    def prepare_stop(self) -> None:
        """Nothing runs."""

    def stop(self) -> None:
        """Nothing to stop."""


class OneSnapshot:
    """A store of one snapshot, which edits change."""

    name = "one"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def start(self) -> None:
        """It is open."""

    def get(self) -> Loaded:
        return Loaded(self.snapshot)

    def set(self, batch: Snapshot) -> Future[None]:
        self.snapshot = batch
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def stop(self) -> None:
        """It stays open."""


class JobRig:
    """``edit`` changes the snapshot at once, as an edit of the pipeline would; ``answers``: what it
    does instead, one for each. ``next_start``: what the pipeline's next start does behind the next
    edit, whose answer is lost as by a kill."""

    def __init__(self, folder: Path, *kinds: JobKind, keep: int = 50) -> None:
        world = World(folder)
        self.world = world
        self.config = load(folder / "config.toml")
        self.store = OneSnapshot(world.snapshot(8, 8, hwm=7))
        stores: Mapping[str, OffsetStore] = {"shop": self.store}
        pauses = Pauses(self.config.daemon.state_dir)
        self.daemon = Daemon(
            self.config, NoSinks(), lambda: stores, self.edit, pauses, lambda name: {}
        )
        self.answers: list[Exception | None] = []
        self.next_start: Change | None = None
        self.told: list[tuple[str, str]] = []
        self.files = JobStore(self.config.daemon.state_dir)
        self._kinds = {kind.name: kind for kind in kinds}
        self._keep = keep
        self.runner = self.made()

    def made(self) -> JobRunner:
        """A runner over the same files, not started."""
        return JobRunner(self.files, self._kinds, self.daemon, self.send, self._keep)

    def start(self) -> JobRunner:
        self.runner.open()
        self.runner.start()
        return self.runner

    def restart(self) -> JobRunner:
        """A next life, after an end or a crash."""
        self.runner = self.made()
        return self.start()

    def send(self, job: Job, type_: str, data: Mapping[str, str], unix_ms: int) -> None:
        self.told.append((job.id, type_))

    def lent(self, runner: JobRunner | None = None) -> Lent:
        """What operations get of this daemon, whose actors have not started yet."""
        pauses = Pauses(self.config.daemon.state_dir)
        return Lent(self.daemon, self.edit, runner or self.runner, pauses, lambda: status([]))

    def edit(self, pipeline: str, change: Change, fate: Fate = Fate.RUNS_AGAIN) -> Future[None]:
        done: Future[None] = Future()
        answer = self.answers.pop(0) if self.answers else None
        try:
            if answer is not None:
                raise answer
            self.store.snapshot = change(self.store.snapshot)
            if (start := self.next_start) is not None:
                self.next_start = None
                self.store.snapshot = start(self.store.snapshot)
                raise EditFailed("nobody heard of it")
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def wait(self, id_: str, until: Callable[[Job], bool]) -> Job:
        """The job once it is so; fails where it never is."""
        job = self.runner.watch(id_, until, 30.0)
        assert job is not None
        assert until(job), job
        return job

    def ended(self, id_: str) -> Job:
        return self.wait(id_, lambda job: job.state.is_final)


def refused(snapshot: Snapshot) -> Snapshot:
    raise EditRefused("no")
