"""The bounds of what counting keeps, and its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import TableName
from changes.model.row_events import RowEvent, TransactionMark
from daemon.cli.counts.names import TableNames
from daemon.cli.counts.notes import Notes
from daemon.cli.counts.report import reports, targets_in, why_not
from daemon.cli.counts.tally import MOST_SHOWN, NO_END, LogTally, TooMany
from daemon.cli.counts.transaction import Numbers
from offsets.snapshot import Snapshot
from tests.daemon.cli.counts.debezium_log import LOG, MINUTE, RANGE, DebeziumLog

T = TableName("shop", "t")
TIME = MINUTE * 60_000


def row(id_: str, order: int = 1) -> RowEvent:
    return RowEvent(T, "I", TIME, False, id_, order, "one")


def mark(id_: str, ends: bool = True, number: int = 1) -> TransactionMark:
    return TransactionMark(id_, ends, TIME, {"shop.t": number} if ends else None)


@given(st.lists(st.integers(1, 30)))
def test_numbers_are_a_set(numbers: list[int]) -> None:
    """In whatever order they come."""
    found, known = Numbers(), set[int]()
    for number in numbers:
        assert found.add(number) == (number not in known)
        known.add(number)
        assert found.are_within(30)
        assert found.are_within(max(known) - 1) == (not known)


def test_numbers_in_order_need_no_memory() -> None:
    found = Numbers()
    assert all(found.add(number) for number in range(1, 100_001))
    assert found.add(0)
    assert not found.are_within(100_000)
    assert len(found._firsts) == 1  # its whole memory


def test_the_oldest_open_transaction_is_given_up_and_told() -> None:
    """Without an END; with one that misses a row it differs. What is open stays bounded."""
    tally = LogTally(RANGE, lambda table: ("lake.shop.t",), most_open=2)
    for offset, told in enumerate((
        mark("a", ends=False), row("a"), mark("b", ends=False), row("b"), mark("b", number=2),
        row("c"), row("d"), row("e"),
    )):  # fmt: skip
        tally.take(LOG, offset, told)
    found = tally.found()
    assert [each.transaction for each in found.differences] == ["b"]
    (untold,) = found.untold
    assert (untold.why, untold.count, untold.offset, untold.transaction) == (NO_END, 4, 1, "a")


def test_more_transactions_than_are_remembered_are_refused() -> None:
    """Else one that comes again would count twice."""
    tally = LogTally(RANGE, lambda table: ("lake.shop.t",), most_closed=1)
    for id_ in "ab":
        tally.take(LOG, 0, mark(id_, ends=False))
        tally.take(LOG, 0, row(id_))
        if id_ == "a":
            tally.take(LOG, 0, mark(id_))
    with pytest.raises(TooMany, match="more than 1 transactions: ask for less time"):
        tally.take(LOG, 0, mark("b"))


def test_a_name_of_the_source_finds_its_table() -> None:
    """With a catalog before it; with dots in it; of rows that came before any other."""
    asked = {TableName("s", "t"), TableName("a.b", "c"), TableName("a", "b.c")}
    names = TableNames(lambda table: ("x",) if table in asked else ())
    assert names.expected({"s.t": 1, "other.t": 2}) == {TableName("s", "t"): 1}
    assert names.expected({"catalog.s.t": 1}) == {TableName("s", "t"): 1}
    assert names.expected({"a.b.c": 1}) is None
    names.seen(TableName("a", "b.c"))
    assert names.expected({"a.b.c": 1}) == {TableName("a", "b.c"): 1}


def test_reasons_are_bounded() -> None:
    notes = Notes()
    for number in range(1500):
        notes.add(number, f"why {number}", LOG, number)
    assert len(notes.all()) == 1001
    assert notes.all()[-1].count == 500


def test_a_table_differs_also_where_its_transactions_are_left_out() -> None:
    """The first thousand are listed; another table's may all be behind them."""
    log = DebeziumLog().framed().at(0)
    for number in range(MOST_SHOWN + 1):
        log.begin(f"{number}")
        log.end(f"{number}", {"shop.t" if number < MOST_SHOWN else "shop.u": 1})
    scanned, recorded = log.passed().scan(), Snapshot("p", "g")
    (found,) = reports("p", ["lake.shop.u"], scanned, recorded)
    assert (found.verdict, found.expected) == ("differs", 1)
    assert why_not(found, scanned) == "events are missing of 1 transaction"
    assert targets_in(scanned, recorded) == ["lake.shop.t", "lake.shop.u"]
