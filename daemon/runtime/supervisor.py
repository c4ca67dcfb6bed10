"""The supervisor: the main thread's loop while the actors run.

It handles events, decides the end, and shows the progress.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

import pykka
import structlog

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from daemon.commands.progress import Show
from daemon.config.config import Config
from daemon.observe.notify import Notifier
from daemon.observe.status import AskLife, LifeFigures
from daemon.runtime.edits import Edited, EditRequested, Edits
from daemon.runtime.lifecycle import (
    CLOSE_TIMEOUT_S,
    Exit,
    Finish,
    Lifecycle,
    NameRemaining,
    PipelineHeld,
)
from daemon.runtime.lives import PipelineLives
from daemon.runtime.startup import StartUp
from daemon.runtime.topology import Topology

SHOW_INTERVAL_S = 0.2
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
    ) -> None:
        """``changed`` is called with the pipelines when others are there than before."""
        self._config = config
        self._redactor = config.redactor
        self._startup = startup
        self._prepare_stop = prepare_stop
        self._notifier = notifier
        self._show = show
        self._events = events
        self._run_id = run_id
        self._changed = changed
        self._log = structlog.get_logger().bind(actor="supervisor")

    def run(self, topology: Topology) -> Exit:
        """Handle events until the run is over. Returns how it ended."""
        config, begun = self._config, time.monotonic()
        processors = dict.fromkeys(config.pipeline, config.daemon.processors)
        lifecycle = Lifecycle(processors, config.daemon.drain_timeout_s)
        lives = PipelineLives(config, self._startup, topology, self._changed)
        edits = Edits(lifecycle, lives, self._events.tell)
        changes: dict[str, int] = {}
        stopping = False
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
                    self._show_end(lifecycle.failures())
                    return effect.status
                self._carry_out(effect, topology)

    def _handle(
        self, event: object, lifecycle: Lifecycle, edits: Edits, now: float
    ) -> list[object]:
        """Give an event to the edits or to the life cycle; None is a wait that is over."""
        if isinstance(event, msg.Rebuilt):
            event = self._swap_requested(event)
        if isinstance(event, EditRequested):
            return edits.begin(event, now)
        if isinstance(event, Edited):
            return edits.ended(event, now)
        return lifecycle.handle(event, now) if event is not None else []

    def _show_end(self, failures: Mapping[str, str]) -> None:
        self._show.close()
        for name, failure in failures.items():
            self._show.failure(name, self._redactor.text(failure))

    def _swap_requested(self, rebuilt: msg.Rebuilt) -> EditRequested:
        """The new table takes its name when the pipeline is started again.

        Where that can't be now, the next start does it.
        """
        self._log.info("rebuild_complete", pipeline=rebuilt.pipeline, target=rebuilt.target)
        return EditRequested(rebuilt.pipeline, lambda snapshot: snapshot, Future())

    def _wait(self, lifecycle: Lifecycle) -> float | None:
        waits = [SHOW_INTERVAL_S] if self._show.visible else []
        if lifecycle.deadline is not None:
            waits.append(max(0.0, lifecycle.deadline - time.monotonic()))
        return min(waits, default=None)

    def _log_caught_up(self, name: str, changes: Mapping[str, int], seconds: float) -> None:
        count = changes.get(name, 0)
        self._log.info(
            "caught_up",
            pipeline=name,
            changes=count,
            seconds=round(seconds, 3),
            rows_per_s=round(count / seconds),
        )

    def _carry_out(self, effect: object, topology: Topology) -> None:
        match effect:
            case fx.Tell(to, message):
                topology.directory.tell(to, message)
            case fx.Log(level, event, fields):
                getattr(self._log, level)(event, **fields)
            case NameRemaining(processors):
                for processor in processors:
                    self._name_remaining(topology, processor)
            case _:
                raise TypeError(f"not an effect of the supervisor: {effect!r}")

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
