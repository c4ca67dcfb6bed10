"""The supervisor: the main thread's loop while the actors run.

It handles events, decides the end, and shows the progress.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import TypeVar, assert_never

import pykka
import structlog

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.backoff import BackOff
from daemon.admin.service_manager import Notifier
from daemon.admin.status.status import AskLife, LifeFigures
from daemon.app.edits import Edited, EditRequested, Edits
from daemon.app.lifecycle import (
    CLOSE_TIMEOUT_S,
    Finish,
    Lifecycle,
    LifeEffect,
    NameRemaining,
    PipelineHeld,
)
from daemon.app.progress import FailuresShown, Show
from daemon.app.startup import BrokerAway, StartUp, Unusable
from daemon.app.topology import PipelineParts, Topology
from daemon.config.config import Config
from daemon.operations.rebuild.rebuilds import WHILE_RUNNING, RebuildNotEnded
from daemon.operations.reset.mark_moves import MarksNotMoved
from daemon.state.edits import Change, EditFailed, store_edit
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.exit import Exit

# Ends the actors of a held pipeline, and builds those of its next life.

END_ACTORS_S = 60.0
"""The limit for a pipeline's actors to end, and for a write that was cut off. A processor may be
decoding a batch, a fetcher may be waiting for a broker that is away."""

EDIT_PATIENCE_S = 300.0
"""How long an edit, or the swap of a rebuilt table's name, waits for a broker that is away. After
that the pipeline ends, and nothing restarts it. Longer: the operator waits for nothing."""

T = TypeVar("T")


class PipelineLives:
    """See ``daemon.app.edits.Lives``."""

    def __init__(
        self,
        config: Config,
        startup: StartUp,
        topology: Topology,
        changed: Callable[[Collection[str]], None],
    ) -> None:
        """``changed`` is called on the main thread when other pipelines run than before."""
        self.processors = config.daemon.processors
        self._changed = changed
        self.start = topology.start_pipeline
        self._config = config
        self._startup = startup
        self._topology = topology
        self._log = structlog.get_logger().bind(actor="supervisor")

    def open(self, pipeline: str) -> None:
        """See ``Lives``."""
        try:
            self._startup.open_store(pipeline)
        except Unusable as error:
            raise EditFailed(str(error)) from error

    def change(self, pipeline: str, change: Change) -> Snapshot:
        """See ``Lives``."""
        longest_s = max(sink.write_timeout_s for sink in self._config.sink.values())
        problem = self._topology.end_pipeline(pipeline, END_ACTORS_S, longest_s + END_ACTORS_S)
        if problem is not None:
            raise EditFailed(f"pipeline {pipeline} is not changed: {problem}")
        startup = self._startup
        store = startup.stores[pipeline]
        try:
            # Finish an earlier reset first: a change starts from what is recorded as done.
            last = self._patiently(lambda: startup.recorded(pipeline, store))
            before = startup.move_marks(pipeline, last)
            return startup.settle(pipeline, store_edit(store, before, change), WHILE_RUNNING)
        except (Unusable, StoreError, MarksNotMoved, RebuildNotEnded) as error:
            raise EditFailed(f"pipeline {pipeline} does not run: {error}") from error

    def parts(self, pipeline: str, recorded: Snapshot) -> PipelineParts:
        """See ``Lives``."""
        startup = self._startup
        store = startup.stores[pipeline]
        try:
            return self._patiently(lambda: startup.parts(pipeline, recorded, store))
        except (Unusable, StoreError) as error:
            raise EditFailed(f"pipeline {pipeline} does not run: {error}") from error

    def end(self, pipeline: str) -> None:
        """See ``Lives``."""
        self._startup.close_store(pipeline)

    def changed(self, pipelines: Collection[str]) -> None:
        """See ``Lives``."""
        self._topology.keep(pipelines)
        self._changed(pipelines)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Retry for a while: a broker that is away comes back, and need not end the pipeline."""

        def log_failure(error: Exception, attempt: int) -> None:
            self._log.warning("broker_away", reason=str(error), attempt=attempt)

        return BackOff(EDIT_PATIENCE_S).call(ask, (BrokerAway,), log_failure)


SHOW_INTERVAL_S = 0.2
# A signal that comes just as the main thread begins to wait interrupts nothing: Python's handler
# runs when it goes on.
HEARD_S = 1.0
"""How often the progress line is redrawn: smooth to the eye, negligible for the processor."""

STOP_RESERVE_S = CLOSE_TIMEOUT_S + 20.0
"""What an end may take besides the drain: the last commit, then the actors and the JVM."""

LONGEST_WAIT_S = 1.0
"""A signal that comes while a wait is about to begin does not end it: its handler runs only when
the main thread goes on. An idle daemon would else hear of it with the next event, whenever that
is."""


class EventQueue:
    """Events for the supervisor, from any thread. The main thread reads them."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[object] = queue.SimpleQueue()

    def tell(self, message: object) -> None:
        """Queue an event."""
        self._events.put(message)

    def get(self, timeout_s: float | None) -> object | None:
        """The next event, or None after ``timeout_s`` seconds, or after LONGEST_WAIT_S."""
        try:
            longest = LONGEST_WAIT_S if timeout_s is None else min(timeout_s, LONGEST_WAIT_S)
            return self._events.get(timeout=longest)
        except queue.Empty:
            return None


class Supervisor:
    """Supervises one run, from its first event to its exit status."""

    def __init__(
        self,
        config: Config,
        startup: StartUp,
        prepare_stop: Callable[[], None],
        notifier: Notifier,
        show: Show,
        events: EventQueue,
        run_id: str,
        changed: Callable[[Collection[str]], None],
        stays: bool,
    ) -> None:
        """``changed`` is called with the pipelines when others are there than before. ``stays``:
        see ``Lifecycle``."""
        self._stays = stays
        self._config = config
        self._redactor = config.redactor
        self._startup = startup
        self._prepare_stop = prepare_stop
        self._notifier = notifier
        self._show = show
        self._failures = FailuresShown(show, config.redactor.text, at_once=stays)
        self._events = events
        self._run_id = run_id
        self._changed = changed
        self._log = structlog.get_logger().bind(actor="supervisor")

    def run(self, topology: Topology) -> Exit:
        """Handle events until the run is over. Returns how it ended."""
        config, begun = self._config, time.monotonic()
        processors = dict.fromkeys(config.pipeline, config.daemon.processors)
        lifecycle = Lifecycle(processors, config.daemon.drain_timeout_s, stays=self._stays)
        lives = PipelineLives(config, self._startup, topology, self._changed)
        edits = Edits(lifecycle, lives, self._events.tell)
        changes, stopping = dict[str, int](), False
        self._log.info("running", pipelines=sorted(processors), run=self._run_id)
        while True:
            self._show.draw(time.monotonic() - begun)
            event = self._events.get(self._wait(lifecycle))
            now = time.monotonic()
            if isinstance(event, msg.Progress):
                changes[event.pipeline] = event.changes
                self._show.progress(event)
                continue
            if isinstance(event, AskLife):
                event.answer.set(_life(lifecycle))
                continue
            if isinstance(event, msg.CaughtUp):
                self._log_caught_up(event.pipeline, changes, now - begun)
            if isinstance(event, msg.ActorCrashed):
                reason = self._redactor.text(event.reason)
                self._show.failure(f"crashed: {event.sender}", reason)
            out = self._handle(event, lifecycle, edits, now)
            if lifecycle.stopping and not stopping:
                stopping = True
                self._prepare_stop()
                self._notifier.stopping(config.daemon.drain_timeout_s + STOP_RESERVE_S)
            for effect in [*out, *lifecycle.tick(now)]:
                if isinstance(effect, PipelineHeld):
                    edits.held(effect)
                    continue
                if isinstance(effect, Finish):
                    edits.close()
                    self._failures.end(lifecycle.failures())
                    return effect.status
                self._carry_out(effect, topology)
            self._failures.stopped(lifecycle.failures(), lifecycle.stages())

    def _handle(
        self, event: object, lifecycle: Lifecycle, edits: Edits, now: float
    ) -> list[LifeEffect]:
        """Give an event to the edits or to the life cycle; None is a wait that is over."""
        if isinstance(event, msg.Rebuilt):
            event = self._swap_requested(event)
        if isinstance(event, EditRequested):
            return edits.begin(event, now)
        if isinstance(event, Edited):
            return edits.ended(event, now)
        return lifecycle.handle(event, now) if event is not None else []

    def _swap_requested(self, rebuilt: msg.Rebuilt) -> EditRequested:
        """The new table takes its name when the pipeline is started again.

        Where that can't be now, the next start does it.
        """
        self._log.info("rebuild_complete", pipeline=rebuilt.pipeline, target=rebuilt.target)
        return EditRequested(rebuilt.pipeline, lambda snapshot: snapshot, Future())

    def _wait(self, lifecycle: Lifecycle) -> float:
        waits = [SHOW_INTERVAL_S if self._show.visible else HEARD_S]
        if lifecycle.deadline is not None:
            waits.append(max(0.0, lifecycle.deadline - time.monotonic()))
        return min(waits)

    def _log_caught_up(self, name: str, changes: Mapping[str, int], seconds: float) -> None:
        count = changes.get(name, 0)
        self._log.info(
            "caught_up",
            pipeline=name,
            changes=count,
            seconds=round(seconds, 3),
            rows_per_s=round(count / seconds),
        )

    def _carry_out(self, effect: fx.Tell | fx.Log | NameRemaining, topology: Topology) -> None:
        match effect:
            case fx.Tell(to, message):
                topology.directory.tell(to, message)
            case fx.Log(level, event, fields):
                getattr(self._log, level)(event, **fields)
            case NameRemaining(processors):
                for processor in processors:
                    self._name_remaining(topology, processor)
            case _:
                assert_never(effect)

    def _name_remaining(self, topology: Topology, processor: Address) -> None:
        try:
            lines = topology.directory.ask(processor, msg.Remaining(), timeout_s=2.0)
        except (pykka.Timeout, pykka.ActorDeadError) as error:
            lines = (f"{processor} does not answer: {error}",)
        for line in lines:
            self._log.error("drain_deadline_passed", remaining=line)
            self._show.failure("not written in time", self._redactor.text(line))


def _life(lifecycle: Lifecycle) -> LifeFigures:
    return LifeFigures(lifecycle.stages(), lifecycle.failures(), lifecycle.stopping)
