"""Numbers that are said beside the log: when a table agrees, differs, or can't be told."""

from __future__ import annotations

from typing import Any

from daemon.cli.counts.against import LackingMinute
from daemon.cli.counts.expected import ExpectedCounts
from daemon.cli.counts.report import (
    NOTHING_TELLS,
    document,
    reports,
    status_of,
    targets_in,
    why_not,
)  # fmt: skip
from offsets.counts import RowCounts
from offsets.snapshot import Snapshot
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog, cells


def said(*minutes: tuple[int, RowCounts], table: str = "shop.t", **more: Any) -> ExpectedCounts:
    """Of one table."""
    tables = {table: {MINUTE + minute: n for minute, n in minutes}}
    return ExpectedCounts("topic counts", tables, lacks="no closing", **more)


def busy(*ops: str) -> DebeziumLog:
    """A log without transactions, such as Maxwell's: these changes in the first minute."""
    log = DebeziumLog().at(-1)
    log.row(None, 0)
    log.at(0, 10)
    for op in ops:
        log.row(None, 0, op=op)
    return log


def behind(log: DebeziumLog, minute: int = 30) -> DebeziumLog:
    log.at(minute).row(None, 0)
    return log


def test_a_log_that_has_what_is_said_agrees() -> None:
    """Without it nothing tells."""
    log = behind(busy("I", "I", "U", "D"))
    assert log.report().why == (NOTHING_TELLS,)
    found = log.report(expected=said((0, RowCounts(2, 1, 1))))
    assert (found.verdict, found.expected, found.said_by) == ("agrees", 4, "topic counts")
    assert cells(log.scan(expected=said((0, RowCounts(2, 1, 1))))) == {0: (2, 1, 1, 4)}


def test_a_change_that_is_missing_is_named_by_its_minute_and_operation() -> None:
    """Also where another operation has as many more; and in a minute without any change."""
    log = behind(busy("I", "D", "D"))
    scanned = log.scan(expected=said((0, RowCounts(2, 0, 2)), (1, RowCounts(0, 3, 0))))
    (found,) = reports("p", ["lake.shop.t"], scanned, Snapshot("p", "g"))
    assert (found.verdict, found.expected) == ("differs", 7)
    assert found.says is not None
    assert found.says.lacking == (
        LackingMinute("shop.t", MINUTE, "insert", 2, 1),
        LackingMinute("shop.t", MINUTE + 1, "update", 3, 0),
    )
    why = why_not(found, scanned) or ""
    assert why.endswith("Z: shop.t has 1 of 2 inserts in the log, by topic counts")
    assert cells(scanned) == {0: (1, 0, 2, 4)}
    told = document(RANGE, {"p": scanned}, [found])["tables"]["lake.shop.t"]
    assert (told["said_by"], told["lacking_minutes"][1]) == (
        "topic counts",
        {"source_table": "shop.t", "minute": MINUTE + 1, "operation": "update",
         "expected": 3, "found": 0},
    )  # fmt: skip
    assert status_of([found]) == 1


def test_more_changes_than_are_said_cannot_be_told() -> None:
    """A message that came again may stand for one that is lost."""
    found = behind(busy("I", "I", "I")).report(expected=said((0, RowCounts(2, 0, 0))))
    assert (found.verdict, found.expected) == ("not told", None)
    assert "shop.t has 3 inserts where 2 are said: messages came again" in found.why[0]


def test_what_may_still_come_is_no_difference() -> None:
    """The log is read for two hours while something is missing; one that ends soon may go on."""
    early = behind(busy("I"), minute=4).report(expected=said((0, RowCounts(2, 0, 0))))
    assert (early.verdict, early.expected) == ("not told", None)
    assert "the log does not go far behind that yet" in early.why[0]
    log = behind(busy("I"))
    late = ((MINUTE * 60) + 5) * 1000
    log.at(40).row(None, 0, ts_ms=late)
    log.at(41).row(None, 0)
    assert log.report(expected=said((0, RowCounts(2, 0, 0)))).verdict == "agrees"


def test_a_log_that_did_not_pass_the_range_is_not_told() -> None:
    """Whatever is said; and what it lacks is no difference yet."""
    for number in (1, 2):
        found = busy("I").report(expected=said((0, RowCounts(number, 0, 0))))
        assert found.verdict == "not told"
        assert any("no change of after the range" in why for why in found.why)


def test_a_table_that_nothing_is_said_of_is_not_told() -> None:
    """Also one of several that lead to a target."""
    log = behind(busy("I"))
    log.at(0).row(None, 0, table="shop.u")
    behind(log, 31)
    expected = said((0, RowCounts(1, 0, 0)))
    assert log.report("lake.shop.t", expected=expected).verdict == "agrees"
    alone = log.report("lake.shop.u", expected=expected)
    assert (alone.verdict, alone.why) == (
        "not told", ("topic counts: it has no closing of shop.u",),
    )  # fmt: skip
    both = {"shop.t": ["lake.all"], "shop.u": ["lake.all"]}
    assert log.report("lake.all", routes=both, expected=expected).verdict == "not told"
    nobody = log.report("lake.shop.v", expected=expected)
    assert (nobody.verdict, nobody.why) == ("not told", ("topic counts has no closing of it",))


def test_a_table_that_the_log_has_nothing_of_differs() -> None:
    """All of its changes are lost: what is said names it."""
    log = behind(busy())
    scanned = log.scan(expected=said((1, RowCounts(1, 0, 0)), table="shop.lost"))
    recorded = Snapshot("p", "g")
    assert "lake.shop.lost" in targets_in(scanned, recorded)
    (found,) = reports("p", ["lake.shop.lost"], scanned, recorded)
    assert (found.verdict, found.expected) == ("differs", 1)


def test_a_quiet_table_agrees_where_that_is_said() -> None:
    """No change in any minute."""
    found = behind(busy()).report(expected=said())
    assert (found.verdict, found.expected) == ("agrees", 0)


def test_reasons_are_told_by_name() -> None:
    """Of a table, of all of them."""
    log = behind(busy("I"))
    of_one = ExpectedCounts("topic counts", {}, {"shop.t": "x:0:7 can't be read: it is no JSON"})
    found = log.report(expected=of_one)
    assert found.why == ("topic counts: x:0:7 can't be read: it is no JSON",)
    of_all = said((0, RowCounts(1, 0, 0)), why_all="topic counts is compacted")
    assert log.report(expected=of_all).why == ("topic counts is compacted",)


def test_a_record_that_cannot_be_read_keeps_all_from_being_told() -> None:
    """Whoever says how many there are: it may be a change."""
    log = busy("I")
    log.put(b"{")
    found = behind(log).report(expected=said((0, RowCounts(1, 0, 0))))
    assert (found.verdict, "a record can't be read" in found.why[0]) == ("not told", True)


def test_ends_of_transactions_differ_beside_what_is_said() -> None:
    """A transaction that lacks a row is named, and what ENDs can't tell is no reason."""
    log = DebeziumLog().framed().at(0)
    log.begin("7")
    log.row("7", 2)
    log.end("7", {"shop.t": 2})
    log.passed()
    assert log.report(expected=said((0, RowCounts(1, 0, 0)))).verdict == "differs"
    log = DebeziumLog().framed().at(0)
    log.begin("7")
    log.row("7", 1)
    assert log.passed().report().verdict == "not told"
    assert log.report(expected=said((0, RowCounts(1, 0, 0)))).verdict == "agrees"


def test_a_name_of_several_tables_is_not_told() -> None:
    """Rows of the one that is meant decide; two names of one table are none."""
    routes = {"a.b.c": ["lake.x"], "a.b": ["lake.y"]}
    log = behind(busy())
    routes |= {"shop.t": ["lake.t"]}
    found = log.report("lake.x", routes=routes, expected=said(table="a.b.c"))
    assert found.why == ("topic counts: a.b.c may be of several tables",)
    twice = ExpectedCounts("topic counts", {"shop.t": {}, "def.shop.t": {}})
    assert log.report("lake.t", routes=routes, expected=twice).verdict == "not told"
