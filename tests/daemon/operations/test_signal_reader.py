"""The signals' topic: each record once, none left out, over restarts and failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.operations.signal_reader import SignalReader
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.port import LogRecord, NotAnswered, TopicMissing
from tests.sources.fake_source import FakeSource

TOPIC = "signals"
LANE = TopicPartition(TOPIC, 0)


@dataclass
class FakeLog:
    """One partition; ``id_`` None: there is no such topic."""

    topic: str = TOPIC
    id_: str | None = "one"
    logs: FakeSource = field(default_factory=lambda: FakeSource({LANE: Watermarks(0, 0)}))

    def describe(self) -> tuple[str, list[TopicPartition]]:
        if self.id_ is None:
            raise TopicMissing("it is not there")
        return self.id_, list(self.logs.logs)

    def questions(self) -> FakeSource:
        return self.logs.questions()

    def reader(self) -> FakeSource:
        return self.logs.reader()


class World:
    """A reader over a fake log, and what it carried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = FakeLog()
        self.seen: list[tuple[int, bytes | None]] = []
        self.not_now: set[int] = set()
        self.start()

    def start(self) -> None:
        """A next life."""
        self.reader = SignalReader(self.log, self.folder, self.carry_out)
        self.reader._place = self.reader._load()

    def carry_out(self, source: TopicPartition, record: LogRecord, topic_id: str) -> bool:
        if record.offset in self.not_now:
            return False
        self.seen.append((record.offset, record.value))
        return True

    def produce(self, *values: bytes) -> None:
        self.log.logs.produce(*values)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    return World(tmp_path)


def test_the_first_start_begins_at_the_end(world: World) -> None:
    """What was sent before was meant for others."""
    world.produce(b"old")
    world.reader.look()
    world.produce(b"new")
    world.reader.look()
    world.reader.look()
    assert world.seen == [(1, b"new")]


def test_what_came_while_no_daemon_ran_is_read(world: World) -> None:
    """Once."""
    world.reader.look()
    world.produce(b"a")
    world.reader.look()
    world.produce(b"b", b"c")
    world.start()
    world.reader.look()
    world.start()
    world.reader.look()
    assert world.seen == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_what_can_not_be_done_now_is_read_again(world: World) -> None:
    """Also by the next daemon; those behind it wait."""
    world.reader.look()
    world.produce(b"a", b"b", b"c")
    world.not_now = {1}
    world.reader.look()
    world.start()
    world.reader.look()
    assert world.seen == [(0, b"a")]
    world.not_now.clear()
    world.reader.look()
    assert world.seen == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_topic_that_comes_later_is_read_from_its_beginning(world: World) -> None:
    """Its first record may have made it."""
    world.log.id_ = None
    with pytest.raises(TopicMissing):
        world.reader.look()
    world.start()
    with pytest.raises(TopicMissing):
        world.reader.look()
    world.log.id_ = "one"
    world.produce(b"first")
    with capture_logs() as said:
        world.reader.look()
    assert world.seen == [(0, b"first")]
    assert not said


def test_a_topic_that_was_made_again_is_read_from_its_beginning(world: World) -> None:
    """Its offsets mean other records, and the log says so."""
    world.reader.look()
    world.produce(b"a", b"b")
    world.reader.look()
    world.log.id_ = "two"
    world.log.logs = FakeSource({LANE: Watermarks(0, 0)})
    world.reader._questions = None
    world.produce(b"c", b"d", b"e")
    with capture_logs() as said:
        world.reader.look()
    assert [value for _, value in world.seen] == [b"a", b"b", b"c", b"d", b"e"]
    assert [event["event"] for event in said] == ["signals_topic_made_again"]


def test_a_new_partition_is_read_from_its_beginning(world: World) -> None:
    """All in it came since."""
    world.reader.look()
    other = TopicPartition(TOPIC, 1)
    world.log.logs.logs[other] = Watermarks(0, 1)
    world.log.logs.records[other] = [LogRecord(0, None, b"x", (), 0)]
    world.reader.look()
    assert world.seen == [(0, b"x")]


def test_signals_that_the_topic_has_lost_are_told(world: World) -> None:
    """By their numbers; what is left is carried out."""
    world.reader.look()
    world.produce(b"a", b"b", b"c")
    world.log.logs.logs[LANE] = Watermarks(2, 3)
    with capture_logs() as said:
        world.reader.look()
    assert world.seen == [(2, b"c")]
    (lost,) = [event for event in said if event["event"] == "signals_lost"]
    assert (lost["first"], lost["last"]) == (0, 1)


def test_marks_of_transactions_are_passed(world: World) -> None:
    """Offsets without a record are not asked for again and again."""
    world.reader.look()
    world.log.logs.logs[LANE] = Watermarks(0, 2)
    world.reader.look()
    world.produce(b"a")
    world.reader.look()
    assert world.seen == [(2, b"a")]


def test_another_topic_begins_at_its_end(world: World) -> None:
    """The configuration names another one: the place of the first says nothing of it."""
    world.reader.look()
    other = TopicPartition("others", 0)
    world.log.topic = "others"
    world.log.logs.logs = {other: Watermarks(0, 1)}
    world.log.logs.records = {other: [LogRecord(0, None, b"old", (), 0)]}
    world.start()
    world.reader.look()
    assert world.seen == []


def test_a_broker_that_is_away_is_asked_again(world: World) -> None:
    """Nothing is left out for it."""
    world.reader.look()
    world.log.logs.away = True
    world.reader._questions = None
    with pytest.raises(NotAnswered):
        world.reader.look()
    world.log.logs.away = False
    world.produce(b"a")
    world.reader.look()
    assert world.seen == [(0, b"a")]


def test_a_damaged_place_is_told(world: World) -> None:
    """It begins at the end, as the first time: a signal twice may be a load twice."""
    world.reader.look()
    world.produce(b"a")
    (world.folder / "jobs" / "signals.offsets").write_text("{")
    with capture_logs() as said:
        world.start()
    assert [event["event"] for event in said] == ["signals_place_lost"]
    world.reader.look()
    world.produce(b"b")
    world.reader.look()
    assert world.seen == [(1, b"b")]
