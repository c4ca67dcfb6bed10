"""Ends of transactions that are lost, scattered, or come far behind the rows."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time

import pytest

from actors.contract import messages as msg
from actors.fetcher.open_transactions import OpenTransactions
from changes.formats import FORMATS
from changes.model.model import FormatOptions
from offsets.position import TopicPartition
from tests.actors.fetcher.transactions_log import DATA, ENDS, T0, begin, end, event

DEBEZIUM = FORMATS["debezium-json"](FormatOptions())
P0, P1, P2 = DATA
Messages = Sequence[tuple[TopicPartition, bytes]]


class Log:
    """Messages that are handed out as they come."""

    def __init__(self) -> None:
        self.transactions = OpenTransactions(DEBEZIUM)
        self._behind: dict[TopicPartition, int] = {}

    def hand_out(self, messages: Messages) -> None:
        for source, value in messages:
            at = self._behind.get(source, 0)
            self._behind[source] = at + 1
            self.transactions.hand_out(msg.Fetched(source, [at], [value], at + 1))

    def hand_out_all(self, source: TopicPartition, values: list[bytes]) -> None:
        offsets = list(range(len(values)))
        self.transactions.hand_out(msg.Fetched(source, offsets, values, len(values)))


def counted_from_a_cut(*before: tuple[TopicPartition, bytes]) -> Log:
    """A log of which all is counted from here on."""
    log = Log()
    log.hand_out([(ENDS, begin("0")), (ENDS, end("0", 0)), *before])
    log.transactions.rest_by_time(T0)
    assert log.transactions.usable
    return log


def test_what_is_counted_is_between_two_transactions() -> None:
    """The control."""
    log = counted_from_a_cut()
    log.hand_out([(ENDS, begin("1")), (ENDS, end("1", 0)), (ENDS, begin("2")), (ENDS, end("2", 0))])
    assert log.transactions.usable
    assert log.transactions.whole


LOST_BEHIND_BEGIN = (
    (ENDS, begin("1")),
    (ENDS, begin("2")),
    (P0, event("2", 1)),
    (ENDS, end("2", 1)),
)
LOST_WITH_BEGIN = ((ENDS, begin("1")), (P0, event("2", 1)), (ENDS, end("2", 1)))


@pytest.mark.parametrize("messages", [LOST_BEHIND_BEGIN, LOST_WITH_BEGIN])
def test_a_lost_end_is_noticed_where_none_of_its_rows_has_come(messages: Messages) -> None:
    """They are in a partition that lags: a cut would be without them, and have later ones."""
    log = counted_from_a_cut()
    log.hand_out(messages)
    assert log.transactions.whole
    assert not log.transactions.usable
    assert log.transactions.rest_by_ends() == (None, "no end came of transaction 1")


@pytest.mark.parametrize("where", ["before the cut", "behind it"])
def test_what_began_twice_is_in_doubt_until_it_has_ended(where: str) -> None:
    """A reader that starts again amid a transaction numbers its rows anew, and counts only those
    that it wrote since. A cut by time between makes that no better."""
    twice = [(ENDS, begin("1")), (P0, event("1", 1)), (ENDS, begin("1"))]
    log = counted_from_a_cut(*twice) if where == "before the cut" else counted_from_a_cut()
    if where == "behind it":
        log.hand_out(twice)
    log.hand_out([(ENDS, end("1", 1))])  # of that in P1, which lags
    assert log.transactions.whole
    assert not log.transactions.usable
    assert log.transactions.rest_by_ends() == (None, "transaction 1 began twice before its end")
    log.transactions.rest_by_time(T0)
    log.hand_out([(ENDS, begin("2")), (P1, event("2", 1)), (ENDS, end("2", 1))])
    assert log.transactions.usable


@pytest.mark.parametrize("elsewhere", [TopicPartition("ends", 1), TopicPartition("of-another", 0)])
@pytest.mark.parametrize("mark", [begin("2"), end("2", 0)])
def test_ends_in_several_partitions_have_no_order(mark: bytes, elsewhere: TopicPartition) -> None:
    """As where Kafka made the transaction topic with several: an earlier end may lie in another
    one. Those of another connector may have the same names. No cut by time changes that, and no
    other assignment."""
    log = counted_from_a_cut()
    log.hand_out([(elsewhere, mark)])
    reason = f"ends of transactions are in ends:0 and in {elsewhere}, which have no common order"
    for _ in range(3):
        assert not log.transactions.usable
        assert log.transactions.rest_by_ends() == (None, reason)
        log.transactions.rest_by_time(T0 + 1)
    log.transactions.forget()
    log.hand_out([(ENDS, begin("3")), (ENDS, end("3", 0))])
    log.transactions.rest_by_time(T0 + 1)
    assert not log.transactions.usable


def test_counting_begins_behind_the_first_end_that_tells_its_time() -> None:
    """All that ended before it is older, also what has no time."""
    log = Log()
    log.hand_out([(ENDS, end("0", 0, None)), (ENDS, end("1", 0, T0))])
    log.transactions.rest_by_time(T0 - 1)
    assert not log.transactions.usable
    log.transactions.rest_by_time(T0)
    assert log.transactions.usable


def test_an_end_costs_the_same_however_many_transactions_lack_their_own() -> None:
    """Where the rows are read far ahead of the ends: 130 ms an end were hours of standstill."""
    number = 5_000
    rows = [event(f"x{each}", 1) for each in range(number)]
    ends = [end(f"x{each}", 1) for each in range(number)]
    log = counted_from_a_cut()
    began = thread_time()
    log.hand_out_all(P0, rows)
    of_rows = thread_time() - began
    began = thread_time()
    log.hand_out_all(ENDS, ends)
    assert log.transactions.whole
    assert log.transactions.usable
    assert thread_time() - began < 10 * of_rows
