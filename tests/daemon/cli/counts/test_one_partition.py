"""Counts of a log of one partition: what would make them silently wrong."""

from __future__ import annotations

import pytest

from daemon.cli.counts.bounds import RangeGone
from daemon.cli.counts.tally import NO_BEGIN, NO_END, TWICE
from daemon.cli.counts.transaction import RESTARTED
from offsets.position import TopicPartition
from tests.daemon.cli.counts.debezium_log import LOG, MINUTE, DebeziumLog, cells, why


def framed() -> DebeziumLog:
    return DebeziumLog().framed()


def test_what_is_whole_agrees_minute_by_minute() -> None:
    """Two tables in one transaction are counted apart."""
    log = framed()
    log.at(0).transaction("1", "I", "I", "U", "shop.u:D")
    log.at(2).transaction("2", "D")
    scanned = log.passed().scan()
    assert cells(scanned) == {0: (2, 1, 0, 3), 2: (0, 0, 1, 1)}
    assert cells(scanned, "lake.shop.u") == {0: (0, 0, 1, 1)}
    assert log.report().verdict == log.report("lake.shop.u").verdict == "agrees"


def test_a_missing_message_is_named_with_its_transaction() -> None:
    """The END says three of the table, two are there; the other table agrees."""
    log = framed().at(1)
    log.begin("7")
    log.row("7", 1)
    log.row("7", 3)
    log.row("7", 1, "shop.u")
    end = log.end("7", {"shop.t": 3, "shop.u": 1})
    scanned = log.passed().scan()
    (one,) = scanned.found.differences
    assert (one.transaction, one.source, one.end, one.minute) == ("7", LOG, end, MINUTE + 1)
    assert (one.table, one.targets, one.expected, one.found) == ("shop.t", ("lake.shop.t",), 3, 2)
    assert cells(scanned) == {1: (2, 0, 0, 3)}
    assert log.report().verdict == "differs"
    assert log.report("lake.shop.u").verdict == "agrees"


def test_a_transaction_of_which_all_rows_are_missing_differs() -> None:
    """Its minute is that of its END."""
    log = framed().at(1)
    log.begin("7")
    log.end("7", {"shop.t": 2})
    scanned = log.passed().scan()
    assert cells(scanned) == {1: (0, 0, 0, 2)}
    assert scanned.found.differences[0].found == 0


def test_a_repeated_message_counts_once_and_is_told() -> None:
    """The same number of the same transaction: at least once; also where all of it came again."""
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1)
    log.row("7", 2)
    log.row("7", 2)
    log.end("7", {"shop.t": 2})
    log.transaction("7", "I", "I")
    scanned = log.passed().scan()
    assert cells(scanned) == {0: (2, 0, 0, 2)}
    assert scanned.found.repeated == {LOG: 3}
    assert log.report().verdict == "agrees"


def test_a_boundary_that_comes_again_with_nothing_counts_nothing() -> None:
    """A reader that restarts behind a transaction begins and ends it again."""
    log = framed().at(0)
    log.transaction("7", "I", "I")
    log.begin("7")
    log.end("7", {})
    assert log.passed().report().verdict == "agrees"
    assert cells(log.scan()) == {0: (2, 0, 0, 2)}


def test_a_name_that_is_used_again_is_told() -> None:
    """The source numbers from its begin again: its changes would be taken for repeated ones."""
    log = framed().at(0)
    log.transaction("7", "I")
    log.at(1).transaction("7", "D")
    assert why(log.passed()) == ("not told", TWICE)


def test_an_end_behind_a_second_begin_is_not_trusted() -> None:
    """Debezium began to number anew: the END has fewer than there are, and numbers came twice."""
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1)
    log.row("7", 2)
    log.begin("7")
    log.row("7", 1, op="D")
    log.end("7", {"shop.t": 1})
    assert why(log.passed()) == ("not told", "its END says fewer than there are of shop.t")
    assert cells(log.scan()) == {0: (2, 0, 1, None)}
    assert log.scan().found.repeated == {}


def test_a_second_begin_is_no_proof_whatever_the_numbers() -> None:
    """Sent again, numbered anew, or gone on, where something is lost: they look the same."""
    for numbers in ([1, 2], []), ([1, 2], [1, 2]), ([1], [2]), ([], [1, 2]):
        log = framed().at(0)
        for some in numbers:
            log.begin("7")
            for number in some:
                log.row("7", number)
        log.end("7", {"shop.t": 2})
        assert why(log.passed()) == ("not told", RESTARTED)


def test_ends_that_contradict_are_not_trusted() -> None:
    """Another sum than its tables'; two ENDs of one transaction that differ."""
    log = framed().at(0)
    log.row("7", 1)
    log.end("7", {"shop.t": 1}, count=2)
    said = "its END has no number for each table, or they do not add up"
    assert why(log.passed()) == ("not told", said)
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1)
    log.end("7", {"shop.t": 2})
    log.end("7", {"shop.t": 3})
    assert why(log.passed()) == ("not told", "it has two ENDs that differ")


def test_a_begin_alone_is_counted() -> None:
    """As a statement's, or of a transaction of which all else is lost."""
    log = framed().at(0)
    log.begin("7")
    log.transaction("8", "I")
    log.at(5).begin("9")
    scanned = log.passed().scan()
    assert (scanned.found.begun_only, log.report().verdict) == (1, "agrees")


def test_a_lost_end_is_told() -> None:
    """Whatever is there of its transaction, nobody says how much should be."""
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1)
    assert why(log.passed()) == ("not told", NO_END)
    assert cells(log.scan()) == {0: (1, 0, 0, None)}


def test_rows_behind_a_begin_that_was_not_read_are_no_difference() -> None:
    """Reading may have begun amid it."""
    log = framed().at(0)
    log.row("7", 2)
    log.end("7", {"shop.t": 2})
    assert why(log.passed()) == ("not told", NO_BEGIN)


def test_a_transaction_over_the_begin_of_the_range_is_read_whole() -> None:
    """Its changes of the range count there, and it agrees as a whole. The log is read from so far
    before that it has its BEGIN, though that was written an hour earlier."""
    log = DebeziumLog()
    log.at(-80).transaction("early", "I")
    log.at(-70).begin("7")
    for number in range(1, 4):
        log.at(-70 + number).row("7", number)
    log.at(0, 10).row("7", 4)
    log.end("7", {"shop.t": 4})
    scanned = log.passed().scan()
    assert cells(scanned) == {0: (1, 0, 0, 1)}
    assert scanned.ranges[0].begin == 0
    assert log.report().verdict == "agrees"


def test_a_transaction_over_the_end_of_the_range_is_read_whole() -> None:
    """Its END is behind another transaction's changes of after the range, and is waited for."""
    log = framed().at(2)
    log.begin("7")
    log.row("7", 1)
    log.at(20).row("8", 1)
    log.at(25).row("7", 2)
    log.end("7", {"shop.t": 2})
    assert log.report().verdict == "agrees"
    assert cells(log.scan()) == {2: (1, 0, 0, 1)}


def test_minutes_out_of_order_are_counted() -> None:
    """A statement's time is in the row, its commit's place in the log: up to ten minutes later."""
    log = framed()
    log.at(2).transaction("1", "I")
    log.at(4).transaction("2", "I")
    log.begin("3")
    log.at(0).row("3", 1)
    log.at(8).row("3", 2)
    log.end("3", {"shop.t": 2})
    assert cells(log.passed().scan()) == {2: (1, 0, 0, 1), 0: (1, 0, 0, 1)}


def test_an_empty_range_agrees_where_transactions_frame_it() -> None:
    """Nothing was expected, nothing found. Without a record behind it that is not known."""
    assert framed().passed().report().verdict == "agrees"
    said = "no change of after the range came in shop:0: an idle source needs a heartbeat"
    assert framed().report().why == (said,)


def test_a_log_without_ends_tells_nothing() -> None:
    log = DebeziumLog().at(-1)
    log.row(None, 0)
    log.at(0).row(None, 0)
    log.at(30).row(None, 0)
    found = log.report()
    assert (found.verdict, found.found.inserted, found.expected) == ("not told", 1, None)
    assert found.why == ("nothing in this log says what should have come",)


def test_a_log_that_begins_amid_the_range_is_refused() -> None:
    """What was removed may have been of the range."""
    log = DebeziumLog(low=5)
    log.at(0).transaction("7", "I")
    with pytest.raises(RangeGone, match=r"shop:0 begins at 5"):
        log.passed().scan()


def test_a_removed_range_before_a_heartbeat_is_refused() -> None:
    """A message of the source's that is no change tells the time, and that the log begins late."""
    log = DebeziumLog(low=5).at(30)
    told = {"ts_ms": log.clock.now_ms, "snapshot": None, "name": "one"}
    log.put({"op": "m", "source": told, "message": {"prefix": "x"}})
    with pytest.raises(RangeGone):
        log.scan()


def test_a_statement_that_sets_a_later_time_proves_nothing() -> None:
    """Neither that the range is over, nor that nothing more of it comes."""
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1, ts_ms=(MINUTE + 9000) * 60_000)
    log.end("7", {"shop.t": 1})
    log.at(1).transaction("8", "I")
    assert log.report().why[0].startswith("no change of after the range came")
    for number in range(300):
        log.at(2).transaction(f"x{number}", "I")
    assert cells(log.passed().scan()) == {1: (1, 0, 0, 1), 2: (300, 0, 0, 300)}


def test_a_clock_that_is_ahead_has_the_log_read_from_earlier() -> None:
    """Records were written five minutes before the times that they tell."""
    log = DebeziumLog()
    log.clock.delay_ms = -300_000
    log.framed().at(0).transaction("7", "I")
    log.at(1).transaction("8", "I")
    assert cells(log.passed().scan()) == {0: (1, 0, 0, 1), 1: (1, 0, 0, 1)}


def test_several_targets_and_several_tables_into_one() -> None:
    """Each target of a table has its changes; a target of shards has the sum of its tables'."""
    log = framed().at(0)
    log.transaction("7", "shop.s1:I", "shop.s2:I", "shop.s2:U")
    routes = {"shop.s1": ["lake.s", "lake.one"], "shop.s2": ["lake.s"]}
    scanned = log.passed().scan(routes)
    assert cells(scanned, "lake.s") == {0: (2, 1, 0, 3)}
    assert cells(scanned, "lake.one") == {0: (1, 0, 0, 1)}


def test_tables_that_no_route_takes_make_no_difference() -> None:
    """The END counts them, too."""
    log = framed().at(0)
    log.transaction("7", "I", "other.x:I", "shop.u:I")
    log.begin("8")
    log.end("8", {"other.x": 3})
    scanned = log.passed().scan({"shop.t": ["lake.t"]})
    assert cells(scanned, "lake.t") == {0: (1, 0, 0, 1)}
    assert scanned.found.differences == ()


def test_a_reader_that_lags_is_read_on_by_the_sources_clock() -> None:
    """Records came two hours after their changes."""
    log = DebeziumLog()
    log.clock.delay_ms = 7_200_000
    log.framed().at(0).transaction("7", "I")
    log.at(4).transaction("8", "I")
    log.begin("9")
    log.at(1).row("9", 1)
    log.end("9", {"shop.t": 1})
    assert cells(log.passed().scan()) == {0: (1, 0, 0, 1), 1: (1, 0, 0, 1)}


def test_reading_ends_behind_the_range() -> None:
    """Not at the log's end."""
    log = framed().at(0)
    log.transaction("7", "I")
    for number in range(400):
        log.at(4 + number).transaction(f"x{number}", "I")
    (bounds,) = log.scan().ranges
    assert bounds.read_to < log.source.logs[LOG].high
    assert bounds.source == TopicPartition("shop", 0)
