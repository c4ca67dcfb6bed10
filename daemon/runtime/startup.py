"""What stands before the actors run: the state directory, positions, logs, spills, sinks.

The same is made anew of one pipeline when it is changed while the process runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import structlog

from actors.contract.ports import NotKept, SinkUnavailable
from actors.dead_letters import WINDOW_S
from changes.formats.auto import AUTO, make_format
from changes.formats.recognise import TopicFormats
from changes.routing import Router
from daemon.config.pipelines import Config
from daemon.kafka.dead_letter_topic import TopicLetters
from daemon.kafka.dead_letter_topic_setup import UnfitTopic
from daemon.letters.files import FileLetters
from daemon.letters.store import open_letters
from daemon.operate.mark_moves import MarksNotMoved, has_moves, move_marks
from daemon.operate.offset_reset import move_group
from daemon.operate.rebuilds import AT_START, RebuildNotEnded, Rebuilds
from daemon.positions.chain import StoreChain, make_stores
from daemon.positions.offset_file import StateDirBusy, lock_state_dir
from daemon.positions.state_id import state_id
from daemon.positions.topic_ids import check_topic_ids
from daemon.runtime.edits import (
    recorded_of,
)
from daemon.runtime.topology import PipelineParts, stand_ins
from daemon.sinks.tier import SinkTier
from daemon.source.opening import open_source
from daemon.source.port import BrokerUnreachable, NotAnswered, Start, TopicMissing
from daemon.spills.file import Found, SpillError, SpillFolder
from daemon.spills.spills import check_marks, open_spills, spills_at_start
from daemon.staging.folder import clean_staging
from offsets.recovery import PositionError
from offsets.snapshot import Snapshot, SpillMark, TargetMark
from offsets.store import StoreError


class Unusable(Exception):
    """The process can't start: one line that says what and where."""


class BrokerAway(Unusable):
    """No broker answers; one that is started will."""


class StartUp:
    """Makes a pipeline's parts of what is configured and recorded.

    The main thread's, but for what says that any may call it: an edit's own thread.
    """

    def __init__(self, config: Config, tier: SinkTier, until_end: bool) -> None:
        self._config = config
        self._tier = tier
        self._until_end = until_end
        self._log = structlog.get_logger().bind(actor="supervisor")
        self.stores: dict[str, StoreChain] = {}

    @contextmanager
    def claimed_state_dir(self) -> Iterator[None]:
        """Hold the state directory: no other daemon may have it. Raises Unusable."""
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
    def open_stores(self) -> Iterator[None]:
        """Have every pipeline's positions open, as ``stores``. Raises Unusable."""
        stores = {name: make_stores(self._config, name) for name in self._config.pipeline}
        try:
            for name, store in stores.items():
                try:
                    store.start()
                except StoreError as error:
                    raise Unusable(f"pipeline.{name}: {error}") from error
            self.stores = stores
            yield
        finally:
            for store in stores.values():
                self.end(store.stop)

    def end(self, step: Callable[[], None]) -> None:
        """One step of the end. A JVM that died refuses its stop: the other steps are due still."""
        try:
            step()
        except Exception as error:
            self._log.error("end_step_failed", step=step.__qualname__, reason=str(error))

    def check_staging(self) -> None:
        """Remove what another run left staged. Raises Unusable."""
        folder = self._config.daemon.staging_folder
        try:
            clean_staging(folder)
        except OSError as error:
            raise Unusable(f"daemon.staging_dir {folder} can't be written: {error}") from error

    def recorded(self, name: str, store: StoreChain) -> Snapshot:
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

    def start_sinks(self) -> None:
        """Start what the sinks write with. Raises Unusable."""
        try:
            self._tier.start(self._config)
        except SinkUnavailable as error:
            raise Unusable(str(error)) from error

    def parts(self, name: str, recorded: Snapshot, store: StoreChain) -> PipelineParts:
        """What a pipeline's actors are made of. Any thread. Raises Unusable."""
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
        try:
            letters = open_letters(config, name, format_)
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

    def settled(self, part: PipelineParts, recorded: Snapshot) -> PipelineParts:
        """Carry out what was recorded while no daemon ran, or what a crash cut short."""
        try:
            # Not of the part's: that says already that a force was carried out, which is to be
            # noted with the frontier that it leads to.
            done = self.settle(part.name, recorded, AT_START)
        except (MarksNotMoved, RebuildNotEnded, StoreError) as error:
            raise Unusable(f"pipeline.{part.name}: {error}") from error
        if done is recorded:
            return part
        if done.rebuilds == recorded.rebuilds:
            return replace(part, recorded=replace(part.recorded, targets=done.targets))
        part.source.close()
        return self.parts(part.name, done, self.stores[part.name])

    def settle(self, name: str, recorded: Snapshot, attempts: int) -> Snapshot:
        """Do in the sinks what is recorded and not done, of a pipeline that does not run.

        Any thread. Raises MarksNotMoved, RebuildNotEnded, StoreError.
        """
        moved = self.move_marks(name, recorded)
        folder, store = SpillFolder(self._config.daemon.state_dir, name), self.stores[name]
        router = Router(self._config.routes(name))
        rebuilds = Rebuilds(
            self._tier.sinks, folder, lambda s: store.set(s).result(), router.reaches, attempts
        )
        return rebuilds.settle(moved)

    def move_marks(self, name: str, recorded: Snapshot) -> Snapshot:
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
        self.stores[name].set(done).result()
        return done
