"""Moves all pipelines and collectors from the embedded broker to the Kafka of the configuration.

Each topic there begins at the offset where the old one ends. So frontiers, marks, changelogs and
dead letters mean the same as before, and no target is touched. What is recorded of a topic changes
last: until then no daemon starts on the new Kafka, because its topics have other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from collector.topics import DATA
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Plan
from daemon.operations.move import at_rest
from daemon.operations.move.collectors import Carried, carried, carry, offsets_topic, partitions_of
from daemon.operations.reset.offset_reset import refuse_members
from daemon.state.edits import EditRefused, recorded_of
from daemon.state.offset_stores import make_stores
from offsets.position import TopicPartition
from offsets.recovery import PositionError, check_topic_ids
from offsets.snapshot import PartitionState, Snapshot
from settings.counted import counted
from sources.base.port import TopicMissing, committed
from sources.base.topics import UnfitTopic
from sources.opening import open_source, open_topics


@dataclass(slots=True)
class Look:
    """What was found. ``ends``: of the topics; ``left``: the pipelines that are still to move, with
    their records; ``ids``: of each pipeline's topics in the embedded broker; ``short``: how many
    offsets a new topic passes over."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    left: dict[str, Snapshot] = field(default_factory=dict)
    ids: dict[str, Mapping[str, str]] = field(default_factory=dict)
    short: dict[str, int] = field(default_factory=dict)
    collectors: list[Carried] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        """For people."""
        if not self.left and not self.refusals:
            return Plan(lines=("nothing to do: all pipelines have moved",), nothing=True)
        lines = [
            f"{source} goes on at {at} there"
            + (f", after {short} empty offsets" if (short := self.short.get(source.topic)) else "")
            for source, at in sorted(self.ends.items())
        ]
        lines += [
            f"collector {one.name} goes on at its position: {one.shown}" for one in self.collectors
        ]
        lines += [f"pipeline {name} keeps its positions" for name in sorted(self.left)]
        document = {
            "pipelines": sorted(self.left),
            "ends": {str(source): at for source, at in sorted(self.ends.items())},
            "collectors": [one.name for one in self.collectors],
        }
        return Plan((), tuple(lines), document, refusals=tuple(self.refusals))


class LogMove:
    """Under the state directory's lock, while the embedded broker runs. One thread's."""

    def __init__(self, old: Config, new: Config, note: Callable[[str], None]) -> None:
        """``old``: the configuration with the embedded broker."""
        self._old, self._new, self._note = old, new, note
        self._topics = open_topics(new)

    def look(self) -> Look:
        """See what there is, and change nothing. Raises EditRefused, NotAnswered, LogUnreadable,
        NotKept, StoreError, OSError."""
        found = Look()
        for name in self._old.pipeline:
            recorded = self._recorded(name)
            try:
                found.ids[name] = open_source(self._old, name).topic_ids()
            except TopicMissing as error:
                raise EditRefused(f"pipeline {name}: in the embedded broker: {error}") from error
            if not self._has_moved(recorded, found.ids[name]):
                found.left[name] = recorded
        if found.left:
            self._look_at_logs(found)
            found.refusals += at_rest.jobs_under_way(self._old)
            found.refusals += at_rest.signals_open(self._old)
            found.collectors += carried(self._old, found.refusals)
            self._look_at_new(found)
        return found

    def _recorded(self, name: str) -> Snapshot:
        pipeline = PipelineConfig(self._new, name)
        store = make_stores(pipeline)
        store.start()
        try:
            loaded = store.get()
        finally:
            store.stop()
        if loaded.damage:
            raise EditRefused(*loaded.damage)
        return recorded_of(pipeline, loaded)

    def _has_moved(self, recorded: Snapshot, topics: Mapping[str, str]) -> bool:
        known = {topic: recorded.topic_ids.get(topic) for topic in topics}
        return bool(known) and all(id_ and id_ == self._id(topic) for topic, id_ in known.items())

    def _id(self, topic: str) -> str | None:
        """A topic's id in the new Kafka, None where it is not there."""
        try:
            return self._topics.log(topic).describe()[0]
        except TopicMissing:
            return None

    def _look_at_logs(self, found: Look) -> None:
        """Whether all is applied, in the embedded broker."""
        log = open_topics(self._old).log(offsets_topic(self._old))
        questions = log.questions()
        topics = {topic for mine in found.ids.values() for topic in mine}
        sources = questions.partitions(sorted(topics))
        several = sorted({source.topic for source in sources if source.partition})
        found.refusals += (f"topic {topic!r} has several partitions" for topic in several)
        begins = questions.begins(sources)
        found.ends = at_rest.ends(questions, [*sources, *partitions_of(log)])
        found.refusals += (
            f"{source} has a transaction that is open: end its writer, and try again"
            for source, end in sorted(found.ends.items())
            if end < 0
        )
        found.ends = {s: end for s, end in found.ends.items() if s in begins and end >= 0}
        for name, recorded in found.left.items():
            try:
                check_topic_ids(recorded, found.ids[name])
            except PositionError as error:
                raise EditRefused(f"pipeline {name}: {error}") from error
            pipeline = PipelineConfig(self._old, name)
            found.refusals += at_rest.not_kept(pipeline, recorded)
            mine = {
                s: (begins[s], end) for s, end in found.ends.items() if s.topic in found.ids[name]
            }
            found.refusals += at_rest.unread(name, recorded, log.reader(), mine)

    def _look_at_new(self, found: Look) -> None:
        """Whether the topics can go on there, and nobody else is at work."""
        for source, at in found.ends.items():
            try:
                found.short[source.topic] = self._topics.continued(source.topic).lacks(at)
            except UnfitTopic as error:
                found.refusals.append(str(error))
        for name in found.left:
            try:
                refuse_members(open_source(self._new, name), self._new.group(name))
            except EditRefused as error:
                found.refusals += error.lines
        group = self._new.connect.group
        if found.collectors and (workers := self._topics.of_collectors().workers(group)):
            found.refusals.append(
                f"the Connect group {group} has a member there already ({workers[0].client_id} at "
                f"{workers[0].host}): stop that worker, or set another [connect] group once all "
                "has moved"
            )

    def carry_out(self, found: Look) -> Iterator[str]:
        """Do it; yields what was done. It may be repeated after any of it. Raises EditRefused,
        UnfitTopic, NotSent, NotAnswered, LogUnreadable, StoreError, OSError."""
        ids: dict[str, str] = {}
        for source, at in sorted(found.ends.items()):
            topic, short = source.topic, found.short[source.topic]

            def tell(done: int, topic: str = topic, short: int = short) -> None:
                self._note(f"{topic}: {done} of {counted(short, 'offset')} passed over")

            ids[topic] = self._topics.continued(topic).begin(at, DATA, tell)
            yield f"topic {topic} goes on at {at}"
        for one in found.collectors:
            records = counted(carry(self._old, self._new, one), "record")
            yield f"collector {one.name}: its position is there, and {records} of history"
        for name in found.left:
            self._refuse_commits(name, found.ends)
        for name, recorded in found.left.items():
            mine = {topic: ids[topic] for topic in found.ids[name]}
            self._record(name, moved(recorded, mine, found.ends))
            yield f"pipeline {name} has moved"

    def _refuse_commits(self, name: str, ends: Mapping[TopicPartition, int]) -> None:
        """A start would go on at a commit that is ahead of what is recorded."""
        for source, at in committed(open_source(self._new, name)).items():
            if at > ends.get(source, at):
                raise EditRefused(
                    f"group {self._new.group(name)!r} has committed {at} of {source} there, beyond "
                    f"{ends[source]}: it is of another log. Remove that group there, or give the "
                    "pipeline of that other log another one"
                )

    def _record(self, name: str, snapshot: Snapshot) -> None:
        store = make_stores(PipelineConfig(self._new, name))
        store.start()
        try:
            store.set(snapshot).result()
        finally:
            store.stop()


def moved(
    recorded: Snapshot, ids: Mapping[str, str], ends: Mapping[TopicPartition, int]
) -> Snapshot:
    """What is recorded, with the topics' new ids. All below ``ends`` is applied; what is known of
    the former log itself goes. Pure."""
    states = {
        source: _at(state, ends[source])
        for source, state in recorded.partitions.items()
        if source.topic in ids
    }
    return replace(
        recorded,
        topic_ids={**recorded.topic_ids, **ids},
        partitions={**recorded.partitions, **states},
    )


def _at(state: PartitionState, end: int) -> PartitionState:
    """Between its frontier and the end are marks of transactions alone."""
    running = state.running
    if running is not None and running.at == state.frontier:
        running = replace(running, at=end)
    return replace(state, frontier=end, confirmed=None, log=None, running=running)
