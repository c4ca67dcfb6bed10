"""Positions move from one real Kafka to another: what is refused, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.record import JobRequest, new_job
from daemon.operations.engine.store import JobStore
from daemon.operations.move.move import LogMove
from daemon.state.edits import EditRefused
from daemon.state.signals import SignalsPlace, place_file
from demo.broker import DevBroker
from offsets.recovery import PositionError, Watermarks, check_topic_ids
from offsets.snapshot import MarkMoves, PartitionState, Snapshot, SpillMark, TargetMark
from sources.base.letter import LetterMaker
from sources.base.topics import UnfitTopic
from sources.kafka.admin import Admin as AdminQuestions
from sources.kafka.collector_topics import KafkaContinuedTopic
from sources.opening import open_source
from tests.daemon.operations.move.world import MESSAGES, World, in_use, make, produce
from tests.daemon.state.dead_letters.letters import Log, dead, format_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """In the place of the embedded broker."""
    with DevBroker(tmp_path_factory.mktemp("before")) as started:
        yield started


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """The other Kafka."""
    with DevBroker(tmp_path_factory.mktemp("after")) as started:
        in_use(started)
        yield started


@pytest.fixture
def world(before: DevBroker, after: DevBroker, tmp_path: Path) -> World:
    return World(tmp_path, before, after)


def test_a_topic_begins_where_the_old_one_ends(world: World) -> None:
    """Frontier and marks stay; of the log itself nothing is left. A second time does nothing, and
    the next message is at the next offset."""
    assert world.moves() == [f"topic {world.topic} goes on at 20", "pipeline p has moved"]
    recorded = world.recorded()
    assert recorded.partitions == {world.source: PartitionState(MESSAGES)}
    assert recorded.targets == world.snapshot.targets
    check_topic_ids(recorded, open_source(world.config(world.new), "p").topic_ids())
    with pytest.raises(PositionError, match="binlogd offsets move"):
        check_topic_ids(recorded, world.snapshot.topic_ids)
    assert world.log() == Watermarks(MESSAGES, MESSAGES)
    assert world.move().look().plan().nothing
    produce(world.new, world.topic, 1)
    assert world.log() == Watermarks(MESSAGES, MESSAGES + 1)
    assert world.move().look().plan().nothing


def test_marks_of_transactions_behind_the_frontier_are_nothing_to_apply(world: World) -> None:
    produce(world.old, world.topic, 3, then="abort")
    world.moves()
    assert world.recorded().partitions == {world.source: PartitionState(MESSAGES + 4)}
    assert world.log() == Watermarks(MESSAGES + 4, MESSAGES + 4)


def test_what_a_killed_writer_left_open_is_waited_for(world: World) -> None:
    """Its broker takes it back; only then nothing of it can come."""
    produce(world.old, world.topic, 3, then="kill")
    assert world.refusals() == []


def test_what_is_not_applied_is_refused_by_name(world: World) -> None:
    produce(world.old, world.topic, 1)
    (line,) = world.refusals()
    assert line.startswith(f"pipeline p: {world.source} has messages that are not applied, from 20")
    world.save(partitions={world.source: PartitionState(30)})
    (line,) = world.refusals()
    assert line.endswith("ends at 21, and 30 is recorded: the embedded broker has lost its end")
    world.save(partitions={})
    (line,) = world.refusals()
    assert "has messages that are not applied, from 0 on" in line


def test_what_is_not_settled_is_refused_by_name(world: World) -> None:
    """Each of it is named, with the command that leads out."""
    spill = SpillMark(9, {world.source: (3, 4)})
    moves = TargetMark("77", {}, MarkMoves({world.source: 3}))
    world.save(spills={"copy.s.t": spill}, targets={"copy.s.t": moves})
    JobStore(world.state).save(new_job(JobRequest("load", "p", ("copy.s.t",)), 1, "load-1"))
    said = "\n".join(world.refusals())
    assert "binlogd tables retry copy.s.t" in said
    assert "a reset is recorded and not carried out yet" in said
    assert "binlogd jobs cancel load-1" in said


def test_positions_that_are_not_in_the_file_alone_are_refused_by_name(world: World) -> None:
    for stores in (["kafka-topic"], ["file", "kafka-topic"]):
        world.section["offset_stores"] = stores
        assert any("positions move by the file alone" in line for line in world.refusals())


def test_signals_that_nobody_has_carried_out_are_refused_by_name(world: World) -> None:
    topic = f"signals-{world.topic}"
    world.signals = topic
    assert world.refusals() == []
    make(world.old, topic)
    produce(world.old, topic, 2)
    id_ = AdminQuestions({"bootstrap.servers": world.old}).ids([topic])[topic]
    place = place_file(world.state)
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(msgspec.json.encode(SignalsPlace(topic, id_, {0: 1})))
    (line,) = world.refusals()
    assert line.startswith(f"topic '{topic}' has signals that were not carried out")
    place.write_bytes(msgspec.json.encode(SignalsPlace(topic, id_, {0: 2})))
    assert world.refusals() == []


def test_open_dead_letters_in_a_topic_are_refused_by_name(world: World) -> None:
    """A topic that is not there has none."""
    letters = f"letters-{world.topic}"
    world.section |= {"on_bad_record": "dead-letter", "dead_letters": f"topic:{letters}"}
    assert world.refusals() == []
    pipeline = PipelineConfig(world.config(world.old), "p")
    stored = pipeline.topics().letters(letters).store("p", LetterMaker("p", format_of(), Log()))
    stored.keep(dead())
    (line,) = world.refusals()
    assert line.startswith(f"pipeline p: 1 dead letter is open in '{letters}'")


def test_a_topic_of_several_partitions_is_refused_by_name(world: World) -> None:
    make(world.old, f"{world.topic}-2", 2)
    world.section["topics"] = [world.topic, f"{world.topic}-2"]
    assert f"topic '{world.topic}-2' has several partitions" in world.refusals()


def test_what_somebody_else_has_in_the_new_kafka_is_refused_by_name(world: World) -> None:
    """A record among the first offsets, one beyond the end, several partitions."""
    make(world.new, world.topic)
    produce(world.new, world.topic, 3, None)
    assert world.refusals() == []
    produce(world.new, world.topic, 1)
    (line,) = world.refusals()
    assert "is there already, and 3 is a record of somebody else" in line
    produce(world.new, world.topic, MESSAGES)
    (line,) = world.refusals()
    assert "holds 0..24, beyond 20: somebody writes it" in line
    make(world.new, f"{world.topic}-2", 2)
    with pytest.raises(UnfitTopic, match="has 2 partitions there"):
        KafkaContinuedTopic({"bootstrap.servers": world.new}, f"{world.topic}-2").lacks(3)


def test_a_commit_of_the_group_beyond_the_end_is_refused(world: World) -> None:
    """A start would go on there, without the messages between."""
    make(world.new, world.topic)
    store = open_source(world.config(world.new), "p").group_commit()
    store.start()
    store.set(Snapshot("p", "binlogd-p", {}, {world.source: PartitionState(99)})).result(30)
    store.stop()
    with pytest.raises(EditRefused, match="has committed 99 of"):
        world.moves()
    assert world.recorded() == world.snapshot


def test_it_goes_on_where_it_was_cut_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Amid the empty records, before their removal, and before the record."""
    topic = KafkaContinuedTopic({"bootstrap.servers": world.new}, world.topic)
    make(world.new, world.topic)
    topic._fill(7, lambda _: None)
    assert world.move().look().short == {world.topic: 13}
    monkeypatch.setattr(KafkaContinuedTopic, "_cut", cut_short)
    with pytest.raises(KeyboardInterrupt):
        world.moves()
    monkeypatch.undo()
    assert world.log() == Watermarks(0, MESSAGES)
    monkeypatch.setattr(LogMove, "_record", cut_short)
    with pytest.raises(KeyboardInterrupt):
        world.moves()
    monkeypatch.undo()
    assert (world.log(), world.recorded()) == (Watermarks(MESSAGES, MESSAGES), world.snapshot)
    assert len(world.moves()) == 2


def cut_short(*_: object) -> None:
    raise KeyboardInterrupt


def test_somebody_who_writes_meanwhile_is_told(world: World) -> None:
    """The topic is not taken then."""
    topic = KafkaContinuedTopic({"bootstrap.servers": world.new}, world.topic)

    class Beside(KafkaContinuedTopic):
        def _fill(self, count: int, tell: Any) -> None:
            produce(world.new, world.topic, 1)
            super()._fill(count, tell)

    with pytest.raises(UnfitTopic, match="ends at 6, and not at 5: somebody writes it"):
        Beside({"bootstrap.servers": world.new}, world.topic).begin(5, {})
    with pytest.raises(UnfitTopic, match="beyond 5"):
        topic.begin(5, {})


def test_more_offsets_than_the_client_takes_at_once(world: World) -> None:
    count, told = 120_000, list[int]()
    KafkaContinuedTopic({"bootstrap.servers": world.new}, world.topic).begin(count, {}, told.append)
    assert (world.log(), told) == (Watermarks(count, count), [])
