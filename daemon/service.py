"""The running process: signals in, actors joined, an exit status out. The main thread's code."""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

import pykka
import structlog

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.ports import NotKept, SinkUnavailable
from actors.dead_letters import WINDOW_S
from changes.formats.auto import AUTO, make_format
from changes.formats.recognise import TopicFormats
from changes.routing import Router
from daemon.commands.progress import Show
from daemon.config.pipelines import Config
from daemon.kafka.dead_letter_topic import TopicLetters
from daemon.kafka.dead_letter_topic_made import UnfitTopic
from daemon.letters.files import FileLetters
from daemon.letters.store import open_letters
from daemon.observe.admin_endpoint import Outlook, OutlookError
from daemon.observe.control import Answer
from daemon.observe.notify import Notifier
from daemon.observe.status import AskLife, LifeFigures
from daemon.operate.discard import ASK, DiscardAnswer
from daemon.operate.mark_moves import MarksNotMoved, has_moves, move_marks
from daemon.operate.offset_reset import move_group
from daemon.operate.rebuild_answer import RebuildAnswer
from daemon.operate.rebuilds import AT_START, WHILE_RUNNING, RebuildNotEnded, Rebuilds
from daemon.operate.running_resets import RunningResets
from daemon.positions.chain import StoreChain, make_stores
from daemon.positions.offset_file import StateDirBusy, lock_state_dir
from daemon.positions.state_id import state_id
from daemon.positions.topic_ids import check_topic_ids
from daemon.runtime.backoff import BackOff
from daemon.runtime.edits import (
    Change,
    Edited,
    EditFailed,
    EditRequested,
    Edits,
    recorded_of,
    store_edit,
)
from daemon.runtime.lifecycle import CLOSE_TIMEOUT_S, Exit, Finish, Held, Lifecycle, NameRemaining
from daemon.runtime.spark_tier import SinkTier
from daemon.runtime.stop_signals import StopSignals
from daemon.runtime.topology import PipelineParts, Topology, stand_ins
from daemon.source.opening import open_source
from daemon.source.port import BrokerUnreachable, NotAnswered, Start, TopicMissing
from daemon.spills.file import Found, SpillError, SpillFolder
from daemon.spills.spills import check_marks, open_spills, spills_at_start
from daemon.staging.collector import calm_collector
from daemon.staging.folder import StagingFolder, clean_staging
from daemon.staging.process import StageProcesses, formats
from offsets.recovery import PositionError
from offsets.snapshot import Snapshot, SpillMark, TargetMark
from offsets.store import StoreError
from sparkwriter.session.jars import JarsError
from sparkwriter.session.java import JavaMissing

SHOW_INTERVAL_S = 0.2
"""How often the progress line is drawn anew: smooth to the eye, nothing to the processor."""

STOP_RESERVE_S = CLOSE_TIMEOUT_S + 20.0
"""What an end may take besides the drain: the last commit, then the actors and the JVM."""


END_ACTORS_S = 60.0
"""For a pipeline's actors to end, and for a write that was cut off. A processor may be in the
middle of decoding a batch, a fetcher in a question to a broker that is away."""


EDIT_PATIENCE_S = 300.0
"""For a broker that is away while a pipeline is changed, or its rebuilt table takes its name. The
pipeline ends with it, and nobody starts it again by itself; longer, and whoever asked waits in
vain."""

T = TypeVar("T")


class Unusable(Exception):
    """The process can't start: one line that says what and where."""


class BrokerAway(Unusable):
    """No broker answers; one that is started will."""


class EventQueue:
    """What the supervisor hears, from any thread; read by the main thread."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[object] = queue.SimpleQueue()

    def tell(self, message: object) -> None:
        """Leave an event."""
        self._events.put(message)

    def get(self, timeout_s: float | None) -> object | None:
        """The next event, or None when the time is over."""
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Service:
    """One run of the daemon, from its configuration to its exit status."""

    def __init__(
        self,
        config: Config,
        until_end: bool,
        show: Show,
        tier: SinkTier,
        notifier: Notifier | None = None,
    ) -> None:
        self._config = config
        self._redactor = config.redactor
        self._notifier = notifier or Notifier(None)
        self._tier = tier
        self._until_end = until_end
        self._show = show
        self._events = EventQueue()
        self._stores: dict[str, StoreChain] = {}
        self._log = structlog.get_logger().bind(actor="supervisor")
        self._run_id = f"run-{uuid.uuid4().hex[:12]}"

    def run(self) -> Exit:
        """Start everything, wait for the end, say how it ended. Raises Unusable."""
        config = self._config
        calm_collector()
        signals = StopSignals(self._events.tell)
        with signals.handled(), self._claimed_state_dir(), self._open_stores() as stores:
            self._stores = stores
            self._check_staging()
            recorded = {name: self._recorded(name, store) for name, store in stores.items()}
            parts = [self._parts(name, recorded[name], store) for name, store in stores.items()]
            outlook = self._outlook()
            folder = StagingFolder(config.daemon.staging_dir, self._run_id)
            stagers = StageProcesses(formats(config), folder, config.daemon.processors)
            status: Exit | None = None
            topology = Topology(config, self._run_id, stagers, self._events)
            try:
                self._start_sinks()
                topology.start_writers(self._tier.sinks)
                for part in parts:
                    topology.start_pipeline(self._settled(part, recorded[part.name]))
                outlook.watch(topology.directory, topology.asked, self._events)
                with signals.listening():
                    status = self._supervise(topology)
            finally:
                if status is not Exit.KILLED:  # whoever asks twice does not wait for a clean end
                    steps = topology.stop, outlook.close, self._tier.stop
                    for step in (*steps, stagers.close, folder.close):
                        self._end(step)
                else:
                    stores.clear()  # nor for a set that is under way
            return status

    def stop(self, reason: str) -> None:
        """Ask the run to end as a signal would; a second time: at once. From any thread."""
        self._events.tell(msg.StopRequested(reason))

    def edit(self, pipeline: str, change: Change) -> Future[None]:
        """Stop a pipeline, change what is recorded of it, start it again. From any thread.

        The future is done when it runs again; it fails with EditRefused (nothing was changed, the
        pipeline goes on as it was) or EditFailed. A pipeline that has failed before runs again.
        """
        done: Future[None] = Future()
        self._events.tell(EditRequested(pipeline, change, done))
        return done

    # --- before the actors

    @contextmanager
    def _claimed_state_dir(self) -> Iterator[None]:
        folder = self._config.daemon.state_dir
        with ExitStack() as held:
            try:
                held.enter_context(lock_state_dir(folder))
                state_id(folder)
            except StateDirBusy as error:
                raise Unusable(str(error)) from error
            except OSError as error:
                raise Unusable(f"daemon.state_dir {folder} can't be written: {error}") from error
            yield

    @contextmanager
    def _open_stores(self) -> Iterator[dict[str, StoreChain]]:
        stores = {name: make_stores(self._config, name) for name in self._config.pipeline}
        try:
            for name, store in stores.items():
                try:
                    store.start()
                except StoreError as error:
                    raise Unusable(f"pipeline.{name}: {error}") from error
            yield stores
        finally:
            for store in stores.values():
                self._end(store.stop)

    def _end(self, step: Callable[[], None]) -> None:
        """One step of the end. A JVM that died refuses its stop: the other steps are due still."""
        try:
            step()
        except Exception as error:
            self._log.error("end_step_failed", step=step.__qualname__, reason=str(error))

    def _check_staging(self) -> None:
        folder = self._config.daemon.staging_dir
        try:
            clean_staging(folder)
        except OSError as error:
            raise Unusable(f"daemon.staging_dir {folder} can't be written: {error}") from error

    def _outlook(self) -> Outlook:
        answers: dict[str, Answer] = {
            **RunningResets(self._config, self.edit).answers,
            ASK: DiscardAnswer(self._config, self.edit),
            "tables-rebuild": RebuildAnswer(self._config, lambda: self._stores, self.edit),
        }
        outlook = Outlook(self._config, self._run_id, self._notifier, self._tier.session, answers)
        try:
            outlook.open()
        except OutlookError as error:
            raise Unusable(str(error)) from error
        return outlook

    def _recorded(self, name: str, store: StoreChain) -> Snapshot:
        """The last run's snapshot of a pipeline, checked against the topics as they are."""
        config = self._config
        section = config.pipeline[name]
        try:
            loaded = store.get()
        except StoreError as error:
            raise Unusable(f"pipeline.{name}: {error}") from error
        for damage in loaded.damage:
            self._log.error("offset_file_damaged", pipeline=name, problem=damage)
        if loaded.damage:
            taken = "what is whole" if loaded.snapshot else "Kafka's commit and the targets"
            self._log.error("recovering", pipeline=name, taken=taken)
        try:
            snapshot = recorded_of(config, name, loaded)
        except StoreError as error:
            raise Unusable(str(error)) from error
        try:
            ids = open_source(config, name).topic_ids()
            check_topic_ids(snapshot, ids)
        except BrokerUnreachable as error:
            raise BrokerAway(f"pipeline.{name}: {error}") from error
        except (TopicMissing, PositionError) as error:
            raise Unusable(f"pipeline.{name}: {error}") from error
        formats = snapshot.formats if section.format == AUTO else {}
        return replace(snapshot, topic_ids=ids, formats=formats)

    def _start_sinks(self) -> None:
        try:
            self._tier.start(self._config)
        except (SinkUnavailable, JarsError, JavaMissing) as error:
            raise Unusable(str(error)) from error

    def _parts(self, name: str, recorded: Snapshot, store: StoreChain) -> PipelineParts:
        config = self._config
        section = config.pipeline[name]
        force = section.start.force
        apply_force = force is not None and force != recorded.forced
        opened = open_source(config, name)
        try:
            source = opened.consume(Start(recorded, store.get, apply_force))
            group = opened.identity()
            ends = opened.ends() if self._until_end else None
        except NotAnswered as error:
            raise Unusable(f"pipeline.{name}: kafka: {str(error).strip()}") from error
        except BrokerUnreachable as error:
            raise BrokerAway(f"pipeline.{name}: {error}") from error
        letters, recent = self._letters(name)
        folder = SpillFolder(config.daemon.state_dir, name)
        found = self._spills(name, folder, recorded, apply_force)
        marks = {str(f.target): SpillMark(f.state.bytes, dict(f.state.lanes)) for f in found}
        begun = replace(recorded, forced=force, spills=marks)
        if apply_force:
            # The operator says where to begin, and with it that the targets are right as they are.
            forgotten = {
                target: TargetMark(None, {}, rows_may_differ=mark.rows_may_differ)
                for target, mark in recorded.targets.items()
            }
            begun = replace(begun, targets=forgotten)
        return PipelineParts(
            name, source, store, begun, folder, found, letters, recent, ends, group
        )

    def _letters(self, name: str) -> tuple[FileLetters | TopicLetters | None, tuple[float, ...]]:
        """Where a pipeline's bad records go, and the ages of those of the last hour."""
        config = self._config
        section = config.pipeline[name]
        if section.on_bad_record == "stop":
            return None, ()
        format_ = make_format(section.format, section.format_options())
        settings = config.kafka_of(name)
        folder = config.daemon.state_dir
        try:
            letters = open_letters(section.dead_letter_topic, folder, name, settings, format_)
            return letters, tuple(letters.recent(WINDOW_S))
        except NotKept as error:
            away = section.dead_letter_topic is not None and not isinstance(error, UnfitTopic)
            kind = BrokerAway if away else Unusable
            raise kind(f"pipeline.{name}.dead_letters: {error}") from error

    def _spills(
        self, name: str, folder: SpillFolder, recorded: Snapshot, forced: bool
    ) -> tuple[Found, ...]:
        """What targets in quarantine left, checked against what is recorded of it."""
        section = self._config.pipeline[name]
        topics = TopicFormats(recorded.formats)
        format_ = make_format(section.format, section.format_options(), topics)
        try:
            found, missing = spills_at_start(folder, recorded.spills, forced)
            check_marks(found, format_)
        except (SpillError, OSError) as error:
            raise Unusable(f"pipeline.{name}: {error}") from error
        if missing is not None:
            self._log.warning("spill_given_up", pipeline=name, reason=missing)
        router = Router(self._config.routes(name), stand_ins(recorded))
        _, unwanted = open_spills(found, format_, router)
        for spill in found:
            fields = {"target": str(spill.target), "messages": spill.state.messages}
            self._log.warning("in_quarantine", pipeline=name, reason=spill.reason, **fields)
        for target in set(unwanted) - recorded.rebuilds.keys():
            self._log.error("spill_without_route", pipeline=name, target=target)
        return found

    def _settled(self, part: PipelineParts, recorded: Snapshot) -> PipelineParts:
        """Carry out what was recorded while no daemon ran, or what a crash cut short."""
        try:
            # Not of the part's: that says already that a force was carried out, which is to be
            # noted with the frontier that it leads to.
            done = self._settle(part.name, recorded, AT_START)
        except (MarksNotMoved, RebuildNotEnded, StoreError) as error:
            raise Unusable(f"pipeline.{part.name}: {error}") from error
        if done is recorded:
            return part
        if done.rebuilds == recorded.rebuilds:
            return replace(part, recorded=replace(part.recorded, targets=done.targets))
        part.source.close()
        return self._parts(part.name, done, self._stores[part.name])

    def _settle(self, name: str, recorded: Snapshot, attempts: int) -> Snapshot:
        """Do in the sinks what is recorded and not done, of a pipeline that does not run.

        Any thread. Raises MarksNotMoved, RebuildNotEnded, StoreError.
        """
        moved = self._move_marks(name, recorded)
        folder, store = SpillFolder(self._config.daemon.state_dir, name), self._stores[name]
        router = Router(self._config.routes(name))
        rebuilds = Rebuilds(
            self._tier.sinks, folder, lambda s: store.set(s).result(), router.reaches, attempts
        )
        return rebuilds.settle(moved)

    def _move_marks(self, name: str, recorded: Snapshot) -> Snapshot:
        """Move the marks of a recorded reset, and note durably that it is done.

        Any thread, while nothing of the pipeline runs. Raises MarksNotMoved, StoreError.
        """
        if not has_moves(recorded):
            return recorded
        try:
            move_group(self._config, name, recorded)
        except StoreError as error:
            # As of a static member that has just left. The consumer does it when it has joined.
            self._log.warning("group_not_moved", pipeline=name, reason=str(error))
        done = move_marks(recorded, self._tier.sinks())
        self._stores[name].set(done).result()
        return done

    # --- while the actors run

    def _supervise(self, topology: Topology) -> Exit:
        config = self._config
        processors = dict.fromkeys(config.pipeline, config.daemon.processors)
        lifecycle = Lifecycle(processors, config.daemon.drain_timeout_s)
        begun = time.monotonic()
        edits = self._edits(lifecycle, topology)
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
                stages, failures = lifecycle.stages(), lifecycle.failures()
                event.answer.set(LifeFigures(stages, failures, lifecycle.stopping))
                continue
            if isinstance(event, msg.CaughtUp):
                self._log_caught_up(event.pipeline, changes, now - begun)
            if isinstance(event, msg.ActorCrashed):
                reason = self._redactor.text(event.reason)
                self._show.failure(f"crashed: {event.sender}", reason)
            if isinstance(event, msg.Rebuilt):
                event = self._swap_requested(event)
            if isinstance(event, EditRequested):
                out = edits.begin(event, now)
            elif isinstance(event, Edited):
                out = edits.ended(event, now)
            else:
                out = lifecycle.handle(event, now) if event is not None else []
            if lifecycle.stopping and not stopping:
                stopping = True
                self._tier.hurry()
                self._notifier.stopping(config.daemon.drain_timeout_s + STOP_RESERVE_S)
            for effect in [*out, *lifecycle.tick(now)]:
                if isinstance(effect, Held):
                    edits.held(effect)
                    continue
                if isinstance(effect, Finish):
                    edits.close()
                    self._show.close()
                    for name, failure in lifecycle.failures().items():
                        self._show.failure(name, self._redactor.text(failure))
                    return effect.status
                self._carry_out(effect, topology)

    def _edits(self, lifecycle: Lifecycle, topology: Topology) -> Edits:
        """What an edit does to a held pipeline, on a thread of its own, and then on this one."""

        def make(name: str, change: Change) -> PipelineParts:
            longest_s = max(sink.write_timeout_s for sink in self._config.sink.values())
            problem = topology.end_pipeline(name, END_ACTORS_S, longest_s + END_ACTORS_S)
            if problem is not None:
                raise EditFailed(f"pipeline {name} is not changed: {problem}")
            store = self._stores[name]
            try:
                # Of an earlier reset first: a change is made of what is so.
                last = self._patiently(lambda: self._recorded(name, store))
                before = self._move_marks(name, last)
                recorded = self._settle(name, store_edit(store, before, change), WHILE_RUNNING)
                return self._patiently(lambda: self._parts(name, recorded, store))
            except (Unusable, StoreError, MarksNotMoved, RebuildNotEnded) as error:
                raise EditFailed(f"pipeline {name} does not run: {error}") from error

        return Edits(lifecycle, make, topology.start_pipeline, self._events.tell)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """While the process runs a broker that is away ends no pipeline: it comes back."""

        def told(error: Exception, attempt: int) -> None:
            self._log.warning("broker_away", reason=str(error), attempt=attempt)

        return BackOff(EDIT_PATIENCE_S).call(ask, (BrokerAway,), told)

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

    def _name_remaining(self, topology: Topology, processor: msg.Address) -> None:
        try:
            lines = topology.directory.ask(processor, msg.Remaining(), timeout_s=2.0)
        except (pykka.Timeout, pykka.ActorDeadError) as error:
            lines = (f"{processor} does not answer: {error}",)
        for line in lines:
            self._log.error("drain_deadline_passed", remaining=line)
            self._show.failure("not written in time", self._redactor.text(line))
