"""The threads of jobs, one each: they carry out the steps, and say how these end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.printable import reason_of
from daemon.operations.engine.context import Daemon, StepContext
from daemon.operations.engine.effects import (
    Asked,
    Broken,
    DoStep,
    Event,
    Left,
    Stepped,
    Told,
    Undo,
    Undone,
)
from daemon.operations.engine.port import JobAway, JobFailed, JobKind, JobStopped
from daemon.operations.engine.record import Job
from daemon.state.edits import EditFailed, EditRefused
from databases.base.errors import DatabaseAway, DatabaseRefused
from offsets.store import StoreError
from sources.base.port import LogUnreadable, NotAnswered

AWAY = (
    JobAway,
    SinkUnavailable,
    DatabaseAway,
    StoreError,
    LogUnreadable,
    EditFailed,
    OSError,
)
"""What may pass: the step is repeated."""

REFUSED = (JobFailed, TargetRefused, DatabaseRefused, EditRefused)
"""What ends a job, with the reason as it is."""


class JobThread:
    """Started at the first step, ended when the job needs it no more. The runner's thread calls."""

    def __init__(
        self, id_: str, kind: JobKind, hands: StepContext, tell: Callable[[Event], None]
    ) -> None:
        self._kind = kind
        self._hands = hands
        self._tell = tell
        self._todo: queue.SimpleQueue[DoStep | Undo | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"job-{id_}", daemon=True)
        self._thread.start()

    def do(self, effect: DoStep | Undo) -> None:
        """Have a step done next. Only one at a time is requested."""
        self._hands.ask("")
        self._todo.put(effect)

    def ask(self, asked: Asked) -> None:
        """Have the step under way look up."""
        self._hands.ask(asked)

    def release(self) -> None:
        """End once nothing is to be done."""
        self._todo.put(None)

    def join(self, within_s: float) -> bool:
        """Wait for the end; tells whether it came."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (effect := self._todo.get()) is not None:
            self._tell(self._done(effect))

    def _done(self, effect: DoStep | Undo) -> Event:
        job = effect.job
        try:
            return self._carried_out(effect, job)
        except JobStopped:
            return Left(job.id)
        except NotAnswered as error:
            return Broken(job.id, reason_of(error), error.away)
        except AWAY as error:
            return Broken(job.id, reason_of(error), True)
        except REFUSED as error:
            return Broken(job.id, reason_of(error), False)
        except Exception as error:
            # A job's fault must never end the flow: it is logged whole, and the job has failed.
            log: Any = structlog.get_logger().bind(actor="jobs")
            log.exception("job_crashed", job=job.id)
            return Broken(job.id, f"{type(error).__name__}: {reason_of(error)}", False)

    def _carried_out(self, effect: DoStep | Undo, job: Job) -> Event:
        pipeline = job.wanted.pipeline
        if pipeline not in self._hands.config.pipeline:
            raise JobAway(f"the configuration has no pipeline {pipeline!r}")
        if isinstance(effect, Undo):
            said = self._kind.undo(job, self._hands)
            return Undone(job.id, said) if isinstance(said, str) else Stepped(job.id, said)
        return Stepped(job.id, self._kind.step(job, self._hands))


class Crew:
    """The threads of all active jobs. The runner's thread calls, ``end`` the main one."""

    def __init__(
        self, kinds: Mapping[str, JobKind], daemon: Daemon, tell: Callable[[Event], None]
    ) -> None:
        self._kinds = kinds
        self._daemon = daemon
        self._tell = tell
        self._threads: dict[str, JobThread] = {}

    def do(self, effect: DoStep | Undo) -> None:
        """Have a step done on its job's thread, which begins with its first one."""
        job = effect.job
        if job.id not in self._threads:
            tell = self._tell
            hands = StepContext(self._daemon, lambda p, message: tell(Told(job.id, p, message)))
            kind = self._kinds[job.wanted.kind]
            self._threads[job.id] = JobThread(job.id, kind, hands, tell)
        self._threads[job.id].do(effect)

    def ask(self, id_: str, asked: Asked) -> None:
        """Have a job's step look up."""
        if (thread := self._threads.get(id_)) is not None:
            thread.ask(asked)

    def release(self, id_: str) -> None:
        """A job needs its thread no more."""
        if (thread := self._threads.pop(id_, None)) is not None:
            thread.release()

    def end(self, deadline_s: float) -> list[str]:
        """End all threads until that monotonic second; gives the jobs whose step goes on."""
        threads = dict(self._threads)
        for thread in threads.values():
            thread.release()
        now = time.monotonic
        return [id_ for id_, t in threads.items() if not t.join(max(0.0, deadline_s - now()))]
