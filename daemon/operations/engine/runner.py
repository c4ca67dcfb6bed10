"""Runs the jobs of a daemon: one thread decides, one thread for each active job carries out steps.

The rule is in ``rule.py``. A job that fails, or a disk that takes no record, never ends the flow.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, assert_never

import structlog

from actors.contract.effects import Log
from changes.model.printable import reason_of
from daemon.operations.engine.context import Daemon
from daemon.operations.engine.effects import (
    AddJob,
    Ask,
    AskJob,
    Broken,
    DoStep,
    Effect,
    Event,
    Notify,
    NotSaved,
    Now,
    ReleaseThread,
    Remove,
    Request,
    Save,
    StopJobs,
    Undo,
    id_of,
    limits_of,
)
from daemon.operations.engine.port import JobKind
from daemon.operations.engine.record import Job, JobRequest, new_job
from daemon.operations.engine.requested import check, written_by
from daemon.operations.engine.rule import JobsLogic, Out
from daemon.operations.engine.store import JobStore
from daemon.operations.engine.thread import Crew
from daemon.state.edits import EditRefused

Send = Callable[[Job, str, Mapping[str, str], int], None]
"""Sends a notification: the job, Debezium's type, further data, Unix milliseconds. On the jobs'
thread; returns soon, raises nothing."""


class JobsClosed(Exception):
    """The jobs do not run: one line."""


def now() -> Now:
    """The present."""
    return Now(time.monotonic(), time.time_ns() // 1_000_000)


class JobRunner:
    """The jobs of one daemon, which holds the state directory's lock. Any thread may call."""

    def __init__(
        self, store: JobStore, kinds: Mapping[str, JobKind], daemon: Daemon, send: Send, keep: int
    ) -> None:
        """``keep``: how many jobs that have ended stay listed."""
        self._store = store
        self.kinds = kinds
        self._send = send
        self._keep = keep
        self._pauses = daemon.pauses
        self._events: queue.SimpleQueue[Event | AddJob | AskJob | StopJobs] = queue.SimpleQueue()
        self._crew = Crew(kinds, daemon, self._events.put)
        self._shown: tuple[Job, ...] = ()
        self._closed: str | None = "the jobs have not started yet"
        self._stop_asked_s: float | None = None
        self._lock = threading.Lock()
        self._news = threading.Condition()
        self._log: Any = structlog.get_logger().bind(actor="jobs")
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._logic = JobsLogic({}, (), keep)

    def open(self) -> None:
        """Read what is recorded: shown from now on, carried out from ``start`` on. Main thread.

        Raises OSError.
        """
        found = self._store.load()
        for line in found.damage:
            self._log.error("job_file_damaged", problem=line)
        for job in found.jobs:
            if job.wanted.kind not in self.kinds and not job.state.is_final:
                self._log.error("job_of_unknown_kind", job=job.id, kind=job.wanted.kind)
        self._logic = JobsLogic(limits_of(self.kinds), found.jobs, self._keep, random.random)
        self._shown = found.jobs

    def start(self) -> None:
        """The pipelines run: carry out what is recorded. Main thread."""
        with self._lock:
            self._closed = None
            self._thread.start()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs as they are now, oldest first."""
        return self._shown

    def add(self, wanted: JobRequest, id_: str | None = None) -> Future[Job]:
        """Record a job, and begin it when its turn comes. The future is done once it is durable.

        ``id_``: a name that the caller chose, so that recording it again changes nothing. The
        future fails with JobsClosed, OSError, ValueError, EditRefused (a target is paused).
        """
        done: Future[Job] = Future()
        self._put(AddJob(wanted, id_, done), done)
        return done

    def ask(self, id_: str, request: Request) -> Future[str | None]:
        """Pause, resume or cancel a job. The future's result: why it is refused, or None.

        It is done once the request is durable. It fails with JobsClosed.
        """
        done: Future[str | None] = Future()
        self._put(AskJob(id_, request, done), done)
        return done

    def watch(self, id_: str, until: Callable[[Job], bool], within_s: float) -> Job | None:
        """Wait until a job is so, so long at most. Gives it as it is then; None: there is none."""

        def find() -> Job | None:
            return next((job for job in self._shown if job.id == id_), None)

        with self._news:
            self._news.wait_for(lambda: (job := find()) is None or until(job), within_s)
            return find()

    def prepare_stop(self) -> None:
        """A stop was requested: begin no step, and have those under way end. Returns at once."""
        if self._stop_asked_s is None:
            self._stop_asked_s = time.monotonic()
            self._events.put(StopJobs())

    def stop(self, within_s: float) -> None:
        """Wait for the steps under way, until so long after the stop was requested. One that takes
        longer is left behind, and the next start repeats it."""
        self.prepare_stop()
        assert self._stop_asked_s is not None
        deadline = self._stop_asked_s + within_s
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))
        for id_ in self._crew.end(deadline):
            self._log.warning("job_step_left", job=id_)

    def _put(self, message: AddJob | AskJob, done: Future[Any]) -> None:
        with self._lock:
            if self._closed is None:
                self._events.put(message)
            else:
                done.set_exception(JobsClosed(self._closed))

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:
            # Without its rule nothing more is done of jobs; the flow does not need them.
            self._log.exception("jobs_crashed")
            self._close(
                f"the jobs have ended ({type(error).__name__}: {error}): restart the daemon"
            )
        else:
            self._close("the daemon is stopping")
            if left := [job.id for job in self._logic.jobs if not job.state.is_final]:
                self._log.info("jobs_left", jobs=left)

    def _close(self, why: str) -> None:
        with self._lock:
            self._closed = why
        while True:
            try:
                left = self._events.get_nowait()
            except queue.Empty:
                return
            if isinstance(left, AddJob | AskJob):
                left.done.set_exception(JobsClosed(why))

    def _loop(self) -> None:
        stopping = False
        while not (stopping and not self._logic.busy):
            self._carry_out(self._logic.tick(now()))
            self._show()
            match self._next():
                case None:
                    continue
                case StopJobs():
                    stopping = True
                    self._carry_out(self._logic.stop())
                case AddJob() | AskJob() as message:
                    self._answer(message)
                case event:
                    self._handle(event)

    def _answer(self, message: AddJob | AskJob) -> None:
        """A fault of one request is its answer; the jobs go on."""
        try:
            found = self._added(message) if isinstance(message, AddJob) else self._ask(message)
        except (OSError, ValueError, EditRefused) as error:
            message.done.set_exception(error)
        except Exception as error:
            self._log.exception("job_request_failed")
            text = f"{type(error).__name__}: {reason_of(error)}"
            message.done.set_exception(JobsClosed(text))
        else:
            message.done.set_result(found)  # type: ignore[arg-type]  # each its own

    def _ask(self, asked: AskJob) -> str | None:
        refusal, out = self._logic.ask(asked.id, asked.request, now())
        self._carry_out(out)
        self._show()
        return refusal

    def _handle(self, event: Event) -> None:
        """A fault in what one job's event leads to is that job's end, not that of all."""
        try:
            self._carry_out(self._logic.handle(event, now()))
        except Exception as error:
            self._log.exception("job_event_failed", job=event.id)
            reason = f"{type(error).__name__}: {reason_of(error)}"
            self._carry_out(self._logic.handle(Broken(event.id, reason, False), now()))

    def _show(self) -> None:
        with self._news:
            self._shown = tuple(self._logic.jobs)
            self._news.notify_all()

    def _next(self) -> Event | AddJob | AskJob | StopJobs | None:
        deadline = self._logic.deadline(now())
        try:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            return self._events.get(timeout=wait)
        except queue.Empty:
            return None

    def _added(self, add: AddJob) -> Job:
        """Raises OSError, ValueError, EditRefused."""
        job = new_job(add.wanted, now().ms, add.id)
        if (kind := self.kinds.get(job.wanted.kind)) is not None:
            check(kind.name, kind.wrong(job.wanted))
        known = next((other for other in self._logic.jobs if other.id == job.id), None)
        if known is not None:
            return known
        with self._pauses.none_of(written_by(job.wanted)):
            self._store.save(job)
            self._logic.add(job)
            self._show()
        fields = {"pipeline": job.wanted.pipeline, "targets": list(job.wanted.targets)}
        self._log.info("job_recorded", job=job.id, origin=job.wanted.origin, **fields)
        return job

    def _carry_out(self, effects: Out) -> None:
        failed: set[str] = set()
        held: set[str] = set()
        for effect in effects:
            if isinstance(effect, Log):
                getattr(self._log, effect.level)(effect.event, **effect.fields)
            elif (id_ := id_of(effect)) in failed:
                held |= {id_} if isinstance(effect, DoStep | Undo) else set()
            else:
                try:
                    self._do(effect)
                except OSError as error:
                    failed.add(id_)
                    self._log.error("job_file_not_written", job=id_, reason=reason_of(error))
                except Exception:
                    # One job's fault: the others go on, and it is tried again as a full disk is.
                    failed.add(id_)
                    self._log.exception("job_effect_failed", job=id_)
        for id_ in failed:
            self._carry_out(self._logic.handle(NotSaved(id_, id_ in held), now()))

    def _do(self, effect: Effect) -> None:
        match effect:
            case Save(job):
                self._store.save(job)
            case Remove(id_):
                self._store.remove(id_)
            case Notify(job, type_, data):
                self._send(job, type_, data, now().ms)
            case DoStep() | Undo():
                self._crew.do(effect)
            case Ask(id_, asked):
                self._crew.ask(id_, asked)
            case ReleaseThread(id_):
                self._crew.release(id_)
            case _:
                assert_never(effect)
