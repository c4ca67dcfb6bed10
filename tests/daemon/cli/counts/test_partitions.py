"""Counts of logs of several partitions: transactions are joined by their names, in one source."""

from __future__ import annotations

import pytest

from daemon.cli.counts.report import reports
from daemon.cli.counts.scan import TooWide
from daemon.cli.counts.tally import MIXED, NO_END, NO_END_TIME
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot, TargetMark
from tests.daemon.cli.counts.debezium_log import DebeziumLog, cells, key, why

T, U, ENDS = (TopicPartition(name, 0) for name in ("shop.t", "shop.u", "shop.transaction"))


def spread() -> DebeziumLog:
    """As Debezium has it by default: a topic for each table, and one with the transactions."""
    log = DebeziumLog(T, U, ENDS).at(-1)
    whole(log, "before")
    return log


def whole(log: DebeziumLog, id_: str, lost: TopicPartition | None = None) -> int:
    log.begin(id_, ENDS)
    if lost != T:
        log.row(id_, 1, to=T)
    log.row(id_, 1, "shop.u", to=U)
    return log.end(id_, {"shop.t": 1, "shop.u": 1}, ENDS)


def test_transactions_over_several_topics_are_joined() -> None:
    """The END is in a third one."""
    log = spread()
    whole(log.at(0), "7")
    whole(log.at(30), "after")
    scanned = log.scan()
    assert scanned.found.cells.keys() == {key(0, at=T), key(0, "lake.shop.u", U)}
    assert all(bounds.passed for bounds in scanned.ranges)
    assert log.report().verdict == log.report("lake.shop.u").verdict == "agrees"


def test_what_one_topic_lacks_is_named() -> None:
    """By the END's place, in the minute of the transaction's other changes."""
    log = spread()
    end = whole(log.at(1), "7", lost=T)
    whole(log.at(30), "after")
    scanned = log.scan()
    (one,) = scanned.found.differences
    assert (one.table, one.source, one.end, one.found) == ("shop.t", ENDS, end, 0)
    assert scanned.found.cells[key(1, at=ENDS)].expected == 1
    assert log.report("lake.shop.u").verdict == "agrees"


def test_rows_that_are_written_after_their_end_are_joined() -> None:
    """Topics have no order among each other."""
    log = spread().at(0)
    log.begin("7", ENDS)
    log.end("7", {"shop.t": 1}, ENDS)
    log.at(0, 2).row("7", 1, to=T)
    whole(log.at(30), "after")
    assert log.report().verdict == "agrees"


def test_ends_in_a_topic_that_is_not_read_are_missed() -> None:
    """Expected is None, and that is said."""
    log = DebeziumLog(T, U).at(-1)
    log.row("before", 1, to=T)
    log.at(0).row("7", 1, to=T)
    log.at(30).row("after", 1, to=T)
    found = log.report()
    assert (found.verdict, found.expected, found.found.inserted) == ("not told", None, 1)
    assert found.why[0] == "nothing in this log says what should have come"


def test_a_partition_that_never_speaks_is_waited_for_where_it_matters() -> None:
    """By what is recorded of the target's partitions; where nothing is, in all."""
    log = spread()
    log.at(0).transaction("7", to=ENDS)
    log.begin("8", ENDS)
    log.row("8", 1, to=T)
    log.end("8", {"shop.t": 1}, ENDS)
    log.at(30).begin("after", ENDS)
    log.row("after", 1, to=T)
    log.end("after", {"shop.t": 1}, ENDS)
    scanned = log.scan()
    marks = {"lake.shop.t": TargetMark("1", {T: 0}), "lake.shop.u": TargetMark("1", {U: 0})}
    recorded = Snapshot("p", "g", {}, {}, marks)
    names = ["lake.shop.t", "lake.shop.u", "lake.shop.new"]
    found = reports("p", names, scanned, recorded)
    assert [each.verdict for each in found] == ["agrees", "not told", "not told"]
    assert "no change of after the range came in shop.u:0" in found[1].why[0]


def test_an_empty_partition_is_one_that_never_speaks() -> None:
    log = DebeziumLog(T, TopicPartition("shop.t", 1))
    log.at(-1).transaction("before", "I", to=T)
    log.at(30).transaction("after", "I", to=T)
    assert "came in shop.t:1:" in log.report().why[0]


def test_transactions_of_two_sources_are_not_mixed() -> None:
    """Both number from the same begin. Each is counted in its own partition."""
    log = DebeziumLog(T, U).at(-1)
    both(log, "0")
    both(log.at(0), "7", lost=U)
    both(log.at(30), "9")
    scanned = log.scan()
    (one,) = scanned.found.differences
    assert (one.transaction, one.source, one.table) == ("7", U, "shop.u")
    assert scanned.found.cells[key(0, at=T)].expected == 1
    assert scanned.found.repeated == {}


def both(log: DebeziumLog, id_: str, lost: TopicPartition | None = None) -> None:
    for place, table in ((T, "shop.t"), (U, "shop.u")):
        log.begin(id_, place)
        if place != lost:
            log.row(id_, 1, table, to=place, name=str(place))
        log.end(id_, {table: 1}, place)


def test_two_sources_in_one_partition_are_told() -> None:
    log = DebeziumLog()
    for name in ("one", "two"):
        for minute, id_ in ((-1, "0"), (0, "7"), (30, "9")):
            log.at(minute).begin(id_)
            log.row(id_, 1, name=name)
            log.end(id_, {"shop.t": 1})
    found = log.report()
    assert (found.verdict, found.expected) == ("not told", None)
    assert any(line.startswith(MIXED) for line in found.why)


def test_more_partitions_than_can_be_read_together_are_refused() -> None:
    log = DebeziumLog(*(TopicPartition("shop", number) for number in range(33)))
    with pytest.raises(TooWide, match=r"reads 33 partitions: .* at most 32"):
        log.scan()


def test_a_lost_end_in_its_own_topic_is_told() -> None:
    log = spread().at(0)
    log.begin("7", ENDS)
    log.row("7", 1, to=T)
    whole(log.at(30), "after")
    found = log.report()
    assert (found.verdict, found.why[0].partition(" at ")[0]) == ("not told", NO_END)
    assert list(cells(log.scan()).values()) == [(1, 0, 0, None)]


def test_a_transaction_without_a_time_whose_rows_are_all_lost_is_told() -> None:
    """Old readers' ENDs have no time. Where reading began amid a transaction its rows are before
    that, and nothing is said; nor of other tables."""
    log = DebeziumLog()
    log.clock.of_marks = False
    log.end("cut", {"shop.t": 1})
    log.framed().at(1)
    log.transaction("1", "I", "I")
    log.begin("2")
    log.end("2", {"other.t": 3})
    assert log.passed().report().verdict == "agrees"
    for begun in (True, False):
        log = DebeziumLog()
        log.clock.of_marks = False
        log.framed().at(1)
        if begun:
            log.begin("7")
        log.end("7", {"shop.t": 2})
        assert why(log.passed()) == ("not told", NO_END_TIME)


def test_what_came_into_the_log_hours_late_is_counted() -> None:
    """The source's reader stood from before the range on. Then it stands again."""
    log = DebeziumLog()
    log.clock.delay_ms = 5 * 3_600_000
    log.framed().at(0).transaction("1", "I", "I")
    assert log.report().why[0].startswith("no change of after the range came in shop:0")
    log.passed()
    assert (log.report().verdict, cells(log.scan())) == ("agrees", {0: (2, 0, 0, 2)})
