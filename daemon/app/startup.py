"""Builds what the actors need: state directory, positions, logs, spills.

An edit of one pipeline in a running process builds that pipeline's part again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import structlog

from actors.contract.ports import NotKept
from actors.dead_letters import WINDOW_S
from actors.runtime.files import state_id
from changes.formats import AUTO, TopicFormats
from changes.routes.routing import Router
from daemon.app.topology import PipelineParts
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig, pipelines_of
from daemon.operations.rebuild.rebuilds import AT_START, RebuildNotEnded, Rebuilds, stand_ins
from daemon.operations.reset.mark_moves import MarksNotMoved, has_moves, move_marks
from daemon.operations.reset.offset_reset import move_group
from daemon.state.dead_letters.files import FileLetters
from daemon.state.dead_letters.open import OpenLetters
from daemon.state.dead_letters.store import open_letters
from daemon.state.edits import recorded_of
from daemon.state.offset_file import StateDirBusy, lock_state_dir
from daemon.state.offset_stores import StoreChain, make_stores
from daemon.state.room import StateRoom
from daemon.state.spills.file import Found, SpillError, SpillFolder
from daemon.state.spills.spills import check_marks, open_spills, spills_at_start
from offsets.recovery import PositionError, check_topic_ids, topics_begun
from offsets.snapshot import Snapshot, SpillMark, TargetMark
from offsets.store import StoreError
from sources.base.port import NotAnswered, Start, TopicMissing, committed
from sources.base.topics import LetterStore, UnfitTopic
from sources.opening import open_source
from sparkwriter.sinks import SinkTier, single_writer

SOME = 20
"""Topics that an event names."""


class Unusable(Exception):
    """The process can't start: one line that names the place and the reason."""


class BrokerAway(Unusable):
    """No broker answers. It may answer once it is started."""


def _not_answered(name: str, error: NotAnswered) -> Unusable:
    kind = BrokerAway if error.away else Unusable
    return kind(f"pipeline.{name}: {str(error).strip()}")


class StartUp:
    """Builds a pipeline's parts from its configuration and its snapshot.

    For the main thread, except the methods marked "any thread": an edit's thread calls them.
    """

    def __init__(self, config: Config, tier: SinkTier, until_end: bool) -> None:
        self._config = config
        self._tier = tier
        self._until_end = until_end
        self._log = structlog.get_logger().bind(actor="supervisor")
        self.stores: dict[str, StoreChain] = {}
        self.room = StateRoom(config.daemon.state_dir, config.daemon.state_max_bytes)

    @contextmanager
    def claimed_state_dir(self) -> Iterator[None]:
        """Lock the state directory against other daemons. Raises Unusable."""
        folder = self._config.daemon.state_dir
        with ExitStack() as held:
            try:
                held.enter_context(lock_state_dir(folder))
                state_id(folder)
                self.room.measure()
            except StateDirBusy as error:
                raise Unusable(str(error)) from error
            except OSError as error:
                raise Unusable(f"daemon.state_dir {folder} can't be used: {error}") from error
            yield

    @contextmanager
    def open_stores(self) -> Iterator[None]:
        """Open every pipeline's positions, as ``stores``. Raises Unusable."""
        for at, line in self._config.misplaced_options():
            self._log.warning("option_misplaced", at=at, reason=line)
        pipelines = pipelines_of(self._config)
        stores = {name: make_stores(pipeline) for name, pipeline in pipelines.items()}
        try:
            for name, store in stores.items():
                try:
                    store.start()
                except StoreError as error:
                    raise Unusable(f"pipeline.{name}: {error}") from error
            self.stores = stores
            yield
        finally:
            for store in list(stores.values()):
                self.end(store.stop)

    def open_store(self, name: str) -> None:
        """Open the positions of a pipeline that is new. Any thread. Raises Unusable."""
        store = make_stores(PipelineConfig(self._config, name))
        try:
            store.start()
        except StoreError as error:
            store.stop()
            raise Unusable(f"pipeline.{name}: {error}") from error
        self.stores[name] = store

    def close_store(self, name: str) -> None:
        """Close the positions of a pipeline that ends; what is stored stays. Any thread."""
        self.stores.pop(name).stop()

    def end(self, step: Callable[[], object]) -> None:
        """One step of the end. If it fails (a JVM that died refuses its stop), the others still
        run."""
        try:
            step()
        except Exception as error:
            self._log.error("end_step_failed", step=step.__qualname__, reason=str(error))

    def recorded(self, name: str, store: StoreChain) -> Snapshot:
        """The last run's snapshot of a pipeline, checked against the topics as they are now."""
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
            snapshot = recorded_of(PipelineConfig(config, name), loaded)
        except StoreError as error:
            raise Unusable(str(error)) from error
        try:
            opened = open_source(config, name)
            ids = opened.topic_ids()
            check_topic_ids(snapshot, ids)
            asks = bool(config.topics_of(name).patterns)  # for others it says nothing
            first = loaded.snapshot is None and not (asks and committed(opened))
        except NotAnswered as error:
            raise _not_answered(name, error) from error
        except (TopicMissing, PositionError, StoreError) as error:
            raise Unusable(f"pipeline.{name}: {error}") from error
        self._tell_unread(name, snapshot)
        begun = topics_begun(snapshot, ids, section.topics, first=first)
        formats = snapshot.formats if section.format == AUTO else {}
        return replace(snapshot, topic_ids=begun, formats=formats)

    def _tell_unread(self, name: str, snapshot: Snapshot) -> None:
        """Say which topics are recorded that the configuration does not take any more."""
        selection = self._config.topics_of(name)
        read = {source.topic for source in snapshot.partitions}
        if unread := sorted(topic for topic in read if not selection.reads(topic)):
            few, count = unread[:SOME], len(unread)
            self._log.warning("topics_not_read_any_more", pipeline=name, topics=few, count=count)

    def parts(self, name: str, recorded: Snapshot, store: StoreChain) -> PipelineParts:
        """The parts of a pipeline's actors. Any thread. Raises Unusable."""
        config = self._config
        section = config.pipeline[name]
        force = section.start.force
        apply_force = force is not None and force != recorded.forced
        opened = open_source(config, name)
        try:
            alone = single_writer(config, name)
            ends = opened.ends() if self._until_end else None
            source = opened.consume(Start(recorded, store.get, apply_force, alone, ends))
            group = opened.identity()
        except NotAnswered as error:
            raise _not_answered(name, error) from error
        letters, recent = self._letters(name)
        folder = SpillFolder(config.daemon.state_dir, name, self.room)
        found = self._spills(name, folder, recorded, apply_force)
        marks = {
            str(f.target): SpillMark(f.state.bytes, dict(f.state.lanes), f.away) for f in found
        }
        begun = replace(recorded, forced=force, spills=marks)
        if apply_force:
            # The operator chose the start, and so declares the targets right as they are.
            forgotten = {
                target: TargetMark(None, {}, rows_may_differ=mark.rows_may_differ)
                for target, mark in recorded.targets.items()
            }
            begun = replace(begun, targets=forgotten)
        return PipelineParts(
            name, source, store, begun, folder, found, letters, recent, ends, group,
            OpenLetters(PipelineConfig(self._config, name)),
        )  # fmt: skip

    def _letters(self, name: str) -> tuple[LetterStore | None, tuple[float, ...]]:
        """A pipeline's store of dead letters, and the ages of those of the last hour."""
        pipeline = PipelineConfig(self._config, name)
        section = pipeline.section
        if section.on_bad_record == "stop":
            return None, ()
        try:
            letters = open_letters(pipeline, pipeline.format(), self.room)
            if section.retention_s is not None and isinstance(letters, FileLetters):
                gone = letters.remove_done(section.retention_s)
                self._log.info("dead_letters_removed", pipeline=name, letters=gone)
            return letters, tuple(letters.recent(WINDOW_S))
        except NotKept as error:
            away = section.dead_letter_topic is not None and not isinstance(error, UnfitTopic)
            kind = BrokerAway if away else Unusable
            raise kind(f"pipeline.{name}.dead_letters: {error}") from error

    def _spills(
        self, name: str, folder: SpillFolder, recorded: Snapshot, forced: bool
    ) -> tuple[Found, ...]:
        """The spills of targets in quarantine or away, checked against the snapshot."""
        format_ = PipelineConfig(self._config, name).format(TopicFormats(recorded.formats))
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
            event = "away_since_before" if spill.away else "in_quarantine"
            self._log.warning(event, pipeline=name, reason=spill.reason, **fields)
        for target in set(unwanted) - recorded.rebuilds.keys():
            self._log.error("spill_without_route", pipeline=name, target=target)
        return found

    def settled(self, part: PipelineParts, recorded: Snapshot) -> PipelineParts:
        """Carry out what was recorded while no daemon ran, or what a crash interrupted."""
        try:
            # Not of the part's: that says already that a force was carried out, which is to be
            # noted with the frontier that it leads to.
            done = self.settle(part.name, recorded, AT_START)
        except (MarksNotMoved, RebuildNotEnded, StoreError) as error:
            raise Unusable(f"pipeline.{part.name}: {error}") from error
        if done is recorded:
            return part
        # Where tables were removed their spills are gone, too, which the part may have found.
        removes = any(each.cancelled or each.leftover for each in recorded.rebuilds.values())
        if done.rebuilds == recorded.rebuilds and not removes:
            return replace(part, recorded=replace(part.recorded, targets=done.targets))
        part.source.close()
        return self.parts(part.name, done, self.stores[part.name])

    def settle(self, name: str, recorded: Snapshot, attempts: int) -> Snapshot:
        """Carry out in the sinks what the snapshot of a stopped pipeline still records as to do.

        Any thread. Raises MarksNotMoved, RebuildNotEnded, StoreError.
        """
        moved = self.move_marks(name, recorded)
        folder, store = SpillFolder(self._config.daemon.state_dir, name), self.stores[name]
        router = Router(self._config.routes(name))
        rebuilds = Rebuilds(
            self._tier.sinks, folder, lambda s: store.set(s).result(), router.shown_in, attempts
        )
        return rebuilds.settle(moved)

    def move_marks(self, name: str, recorded: Snapshot) -> Snapshot:
        """Move the marks of a recorded reset, and record durably that it is done.

        Any thread, while no actor of the pipeline runs. Raises MarksNotMoved, StoreError.
        """
        if not has_moves(recorded):
            return recorded
        try:
            move_group(PipelineConfig(self._config, name), recorded)
        except StoreError as error:
            # As of a static member that has just left. The consumer does it when it has joined.
            self._log.warning("group_not_moved", pipeline=name, reason=str(error))
        done = move_marks(recorded, self._tier.sinks())
        self.stores[name].set(done).result()
        return done
