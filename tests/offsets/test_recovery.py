"""Each rule of the start position, one test each."""

from __future__ import annotations

import pytest

from offsets.position import TopicPartition
from offsets.recovery import (
    NO_FILE,
    PositionError,
    Start,
    StartAt,
    Watermarks,
    check_mark,
    start_position,
    topics_begun,
)
from offsets.snapshot import PartitionState, Snapshot

SOURCE = TopicPartition("binlog", 0)
LOG = Watermarks(100, 1000)


def start(
    recorded: PartitionState | None = None,
    committed: int | None = None,
    configured: StartAt = StartAt.EARLIEST,
    configured_offset: int | None = None,
    forced: bool = False,
    log: Watermarks = LOG,
    topic_is_read: bool = False,
    topic_is_new: bool = False,
) -> Start:
    return start_position(
        SOURCE,
        recorded=recorded,
        committed=committed,
        log=log,
        configured=configured,
        configured_offset=configured_offset,
        forced=forced,
        topic_is_read=topic_is_read,
        topic_is_new=topic_is_new,
    )


@pytest.mark.parametrize("committed", [400, 450, 500])
def test_the_file_wins_while_the_broker_is_between_confirmed_and_frontier(committed: int) -> None:
    """A commit may land though its reply was lost: the broker is then above ``confirmed``."""
    assert start(PartitionState(500, 400), committed).offset == 500


def test_the_file_wins_when_the_broker_has_no_commit() -> None:
    """Broker commits expire; the file doesn't."""
    assert start(PartitionState(500, 400)).offset == 500


def test_the_file_wins_over_an_older_commit_while_nothing_was_confirmed() -> None:
    """The first commit of a group may be on its way when the process dies."""
    assert start(PartitionState(500, None), 300).offset == 500


def test_a_broker_ahead_of_the_file_is_followed_and_told() -> None:
    """Another member or an operator moved on."""
    decided = start(PartitionState(500, 400), 600)
    assert decided.offset == 600
    assert decided.remark is not None
    assert "ahead of the file's 500" in decided.remark


def test_a_broker_below_the_confirmed_frontier_is_refused_with_the_hint() -> None:
    """A rewound group alone would be skipped by the targets' marks."""
    with pytest.raises(PositionError, match=r"rewound.*399.*400.*`binlogd offsets reset --"):
        start(PartitionState(500, 400), 399)


@pytest.mark.parametrize("committed", [None, 399, 500, 900])
def test_a_reset_frontier_is_taken_whatever_the_broker_says(committed: int | None) -> None:
    """A crash came before the group was moved: its commit is of before the reset."""
    decided = start(PartitionState(500, None, reset=True), committed)
    assert (decided.offset, decided.origin) == (500, "file")
    with pytest.raises(PositionError, match="outside the log"):
        start(PartitionState(50, None, reset=True), committed)


def test_no_file_takes_the_brokers_commit() -> None:
    """The group's commit is the second word."""
    assert start(None, 321) == Start(321, "broker", NO_FILE)


@pytest.mark.parametrize(
    ("configured", "offset", "expected"),
    [
        (StartAt.EARLIEST, None, 100),
        (StartAt.LATEST, None, 1000),
        (StartAt.TIMESTAMP, 640, 640),
        (StartAt.TIMESTAMP, None, 1000),
        (StartAt.OFFSET, 123, 123),
    ],
)
def test_neither_takes_the_configured_start(
    configured: StartAt, offset: int | None, expected: int
) -> None:
    """The configuration speaks only where nothing is recorded."""
    assert start(configured=configured, configured_offset=offset).offset == expected


@pytest.mark.parametrize(
    ("configured", "offset"),
    [(StartAt.EARLIEST, None), (StartAt.LATEST, None), (StartAt.TIMESTAMP, 640)],
)
def test_a_new_partition_of_a_topic_that_is_read_begins_at_its_earliest(
    configured: StartAt, offset: int | None
) -> None:
    """What it holds came after the configured start, and nobody has seen it."""
    decided = start(configured=configured, configured_offset=offset, topic_is_read=True)
    assert (decided.offset, decided.origin) == (100, "new partition")
    assert decided.remark is not None


def test_an_offset_that_names_the_new_partition_counts() -> None:
    """It is the operator's word for this very partition; one that is not named is new."""
    named = start(configured=StartAt.OFFSET, configured_offset=123, topic_is_read=True)
    assert (named.offset, named.origin) == (123, "configured: offset")
    assert start(configured=StartAt.OFFSET, topic_is_read=True).offset == 100


@pytest.mark.parametrize(
    ("configured", "offset"),
    [(StartAt.EARLIEST, None), (StartAt.LATEST, None), (StartAt.TIMESTAMP, 640)],
)
def test_a_topic_that_came_after_the_start_begins_at_its_earliest(
    configured: StartAt, offset: int | None
) -> None:
    """Nobody has seen what it holds; that its first messages are gone already is told."""
    decided = start(configured=configured, configured_offset=offset, topic_is_new=True)
    assert (decided.offset, decided.origin) == (100, "new topic")
    assert (
        decided.remark == "the topic is new, and what it held below 100 is gone from Kafka already"
    )
    whole = start(configured=configured, topic_is_new=True, log=Watermarks(0, 9))
    assert (whole.offset, whole.remark) == (0, None)


def test_what_is_known_of_a_new_topic_counts_more() -> None:
    """Another member, or this one, has read it; or the operator has named an offset of it."""
    assert start(committed=200, topic_is_new=True).offset == 200
    named = start(configured=StartAt.OFFSET, configured_offset=123, topic_is_new=True)
    assert (named.offset, named.origin) == (123, "configured: offset")


def test_the_configured_start_is_for_the_topics_of_the_first_start() -> None:
    """A topic that a pattern takes since counts as begun when it is read, and not before: a crash
    in between would have its messages skipped."""
    ids = {"named": "1", "a": "2", "b": "3"}
    nothing = Snapshot("p", "g")
    assert topics_begun(nothing, ids, ["named"], first=True) == ids
    before = Snapshot("p", "g", {"a": "2", "gone": "4"})
    begun = topics_begun(before, ids, ["named"], first=False)
    assert begun == {"named": "1", "a": "2", "gone": "4"}


def test_what_a_configured_start_passes_over_is_told() -> None:
    """Where both stores of positions were lost, ``latest`` began at the end without a word."""
    skipping = start(configured=StartAt.LATEST)
    assert skipping.remark is not None
    assert "what the log holds from 100 on is passed over" in skipping.remark
    assert start(configured=StartAt.EARLIEST).remark is None
    assert start(configured=StartAt.LATEST, log=Watermarks(7, 7)).remark is None


def test_a_forced_start_overrules_that_the_topic_is_read() -> None:
    """Force is the operator's word for every partition."""
    decided = start(None, None, StartAt.LATEST, forced=True, topic_is_read=True)
    assert decided.offset == 1000


def test_a_forced_start_overrules_file_and_broker() -> None:
    """Force is the operator's word, and says so in the log."""
    decided = start(PartitionState(500, 400), 450, StartAt.OFFSET, 200, forced=True)
    assert decided.offset == 200
    assert decided.remark == "forced by the configuration, this once"


def test_a_start_at_an_offset_that_is_not_configured_is_refused() -> None:
    """No guess for a partition that the operator forgot."""
    with pytest.raises(PositionError, match="no offset is configured"):
        start(configured=StartAt.OFFSET)


def test_a_position_below_the_log_names_both() -> None:
    """Retention overtook the reader: never a silent reset."""
    with pytest.raises(PositionError, match=r"position 50 \(file\).*100\.\.1000.*gone"):
        start(PartitionState(50, 50), 50)


def test_a_position_above_the_log_names_both() -> None:
    """The topic was cut: reading on would miss what is written below."""
    with pytest.raises(
        PositionError, match=r"position 1001 \(file\).*100\.\.1000.*recreated.*exclude_topics"
    ):
        start(PartitionState(1001, None))


def test_the_logs_end_is_a_position() -> None:
    """At the tail of a quiet topic nothing is wrong."""
    assert start(PartitionState(1000, 1000), 1000).offset == 1000


def test_a_mark_beyond_the_logs_end_is_refused() -> None:
    """Otherwise new changes below the mark would be dropped as replays."""
    with pytest.raises(PositionError, match=r"lake\.s\.a holds changes up to 1000.*ends at 1000"):
        check_mark(SOURCE, "lake.s.a", 1000, LOG)


def test_a_mark_at_the_last_offset_is_fine() -> None:
    """Everything applied is no error."""
    check_mark(SOURCE, "lake.s.a", 999, LOG)
