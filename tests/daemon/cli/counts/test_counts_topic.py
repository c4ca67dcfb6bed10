"""What the messages of a topic of counts say: what replaces, what adds up, what is not told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from daemon.cli.counts.counts_topic import TopicCounts
from daemon.cli.counts.expected import ExpectedCounts
from daemon.cli.counts.tally import TooMany
from offsets.counts import RowCounts
from offsets.position import TopicPartition
from sources.base.port import LogRecord
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE

AT = TopicPartition("counts", 0)
OTHER = TopicPartition("counts", 1)
CLOSED = {"table": "shop.t", "closed": RANGE.stop}


def count(at: int, operation: str, n: Any, **more: Any) -> dict[str, Any]:
    told = {"table": "shop.t", "minute": MINUTE + at, "operation": operation, "n": n}
    return told | more


class Topic:
    """A topic that a test writes; a message each second behind the range."""

    def __init__(self) -> None:
        self.counts, self.offset = TopicCounts("counts", RANGE), 0

    def send(self, *values: Any, to: TopicPartition = AT) -> Topic:
        for value in values:
            text = value if isinstance(value, bytes) else json.dumps(value).encode()
            at_ms = RANGE.stop * 60_000 + self.offset * 1000
            self.counts.take(to, LogRecord(self.offset, None, text, (), at_ms))
            self.offset += 1
        return self

    def expected(self) -> ExpectedCounts:
        return self.counts.expected()

    def why(self) -> str:
        found = self.expected()
        assert "shop.t" not in found.tables
        return found.why.get("shop.t", found.lacks)


def test_the_newest_of_a_part_counts_and_parts_add_up() -> None:
    """One that is delivered twice counts once."""
    topic = Topic().send(
        count(0, "insert", 5), count(0, "insert", 7), count(0, "insert", 7),
        count(0, "insert", 2, part="b"), [count(0, "delete", 1), count(2, "update", 4)], CLOSED,
    )  # fmt: skip
    assert topic.expected().tables == {
        "shop.t": {MINUTE: RowCounts(9, 0, 1), MINUTE + 2: RowCounts(0, 4, 0)}
    }


def test_what_comes_behind_the_closing_replaces_too() -> None:
    """A correction."""
    topic = Topic().send(count(0, "insert", 5), CLOSED, count(0, "insert", 6))
    assert topic.expected().tables == {"shop.t": {MINUTE: RowCounts(6, 0, 0)}}


def test_times_are_texts_with_a_zone_too() -> None:
    """They count by the minute that they are in."""
    topic = Topic().send(
        count(0, "insert", 1, minute="2025-02-19T21:20:30+00:00"),
        {"table": "shop.t", "closed": "2025-02-19T23:23:00+02:00"},
    )
    assert topic.expected().tables == {"shop.t": {MINUTE: RowCounts(1, 0, 0)}}


def test_without_a_closing_nothing_is_told() -> None:
    """More may come; a closing of before the range's end is none."""
    assert "shop.t is not closed through" in Topic().send(count(0, "insert", 1)).why()
    early = {"table": "shop.t", "closed": RANGE.stop - 1}
    assert "is not closed through" in Topic().send(early).why()
    assert Topic().send({"table": "shop.u", "closed": RANGE.stop}).why() == "no closing"


def test_a_closed_table_without_counts_had_no_change() -> None:
    assert Topic().send(CLOSED).expected().tables == {"shop.t": {}}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"{", "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"", "it is no JSON"),
        (7, "it is no object"),
        ([7], "it is no object"),
        (count(0, "insert", 1, table=None), "None is no table's name"),
        (count(0, "insert", 1, table=""), "'' is no table's name"),
        (count(0, "INSERT", 1), "'INSERT' is no operation: insert, update, delete"),
        (count(0, "insert", -1), "-1 is no number of changes"),
        (count(0, "insert", 1.5), "1.5 is no number of changes"),
        (count(0, "insert", True), "True is no number of changes"),
        (count(0, "insert", "1"), "'1' is no number of changes"),
        (count(0, "insert", 1, part=3), "part 3 is no text"),
        (count(0, "insert", 1, minute=None), "None is no minute since 1970"),
        (count(0, "insert", 1, minute="2025-02-20T05:20:00"), "needs a zone"),
        (count(0, "insert", 1, minute=MINUTE * 60), "is more than a day behind its message"),
        ({"table": "shop.t", "closed": MINUTE * 60_000}, "is more than a day behind its message"),
        ({"table": "shop.t", "closed": None}, "None is no minute since 1970"),
        (count(0, "insert", 1, Part="b"), "'Part' is no member of a count"),
        (count(0, "insert", 1) | CLOSED, "'minute' is no member of a closing"),
        ([count(0, "insert", 1), count(0, "insert", -1)], "-1 is no number of changes"),
    ],
)
def test_a_message_that_cannot_be_read_is_told_by_name(message: Any, why: str) -> None:
    """It may be a count of any table that is not closed yet. Never is it taken for nothing."""
    topic = Topic().send(message, CLOSED)
    assert topic.why().startswith("counts:0:0 can't be read: ")
    assert why in topic.why()
    assert "can't be read" in Topic().send(message).why()


def test_one_behind_the_closing_does_not_matter() -> None:
    """The closing says that all was sent before it."""
    assert Topic().send(CLOSED, b"{").expected().tables == {"shop.t": {}}


def test_a_table_in_two_partitions_is_not_told() -> None:
    """Which of them is newer can't be known. Of other ranges it does not matter."""
    topic = Topic().send(count(0, "insert", 1)).send(CLOSED, to=OTHER)
    assert topic.why() == "its messages are in counts:0 and in counts:1"
    topic = Topic().send(count(0, "insert", 1), CLOSED)
    topic.send(count(9, "insert", 1), {"table": "shop.t", "closed": RANGE.stop + 9}, to=OTHER)
    assert topic.expected().tables == {"shop.t": {MINUTE: RowCounts(1, 0, 0)}}


@pytest.mark.parametrize(("before", "now"), [(AT, OTHER), (OTHER, AT)])
def test_a_table_that_moves_between_two_ranges_is_told(
    before: TopicPartition, now: TopicPartition
) -> None:
    """As when the topic gets more partitions. Partitions are read in their order."""
    later = count(99, "insert", 1), {"table": "shop.t", "closed": RANGE.stop + 99}
    early = {"table": "shop.t", "closed": RANGE.start}
    mine = count(0, "insert", 1), CLOSED
    for sent in ({before: mine, now: later}, {before: (early,), now: mine}):
        topic = Topic()
        for place in (AT, OTHER):
            topic.send(*sent[place], to=place)
        assert topic.expected().tables == {"shop.t": {MINUTE: RowCounts(1, 0, 0)}}
    two = Topic().send(count(0, "insert", 1), CLOSED).send(count(1, "insert", 1), to=OTHER)
    assert two.why() == "its messages are in counts:0 and in counts:1"


def test_a_topic_that_begins_amid_the_range_does_not_tell_it() -> None:
    """What came before is gone, or nobody counted yet."""
    topic = Topic()
    topic.counts.begin(AT, LogRecord(40, None, b"", (), RANGE.start * 60_000))
    assert "counts:0 begins at 40, amid the range, at " in topic.send(CLOSED).why()
    topic = Topic()
    topic.counts.begin(AT, LogRecord(40, None, b"", (), RANGE.start * 60_000 - 1))
    assert topic.send(CLOSED).expected().tables == {"shop.t": {}}


def test_more_counts_than_are_kept_are_refused() -> None:
    topic = Topic()
    topic.counts = TopicCounts("counts", RANGE, most=2)
    topic.send(count(0, "insert", 1), count(0, "insert", 2), count(1, "insert", 1))
    with pytest.raises(TooMany, match="topic counts: more than 2 counts"):
        topic.send(count(2, "insert", 1))
