"""Where the fetcher brings a pipeline to rest for a cut, and what it holds meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.boundaries import OTHERS
from actors.fetcher.by_time import NO_END_S
from actors.fetcher.cutting import Cutting
from actors.fetcher.held import GoesOn
from actors.fetcher.reassembly import Reassembly
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.mailbox import Tick
from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.fetcher.cuts import P0, ROUTER, answered, asked_of, due, fetched, reading, take
from tests.changes.formats.debezium.messages import MYSQL, change

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
P1 = TopicPartition("t", 1)
NAMES = "maxwell-json", "debezium-json"
MAXWELL, DEBEZIUM = (FORMATS[name](FormatOptions()) for name in NAMES)


def row(xid: int, *, last: bool) -> bytes:
    """A row of a transaction as Maxwell writes it."""
    told: dict[str, Any] = {"database": "d", "table": "t", "type": "insert", "ts": 7, "xid": xid}
    told |= {"commit": True} if last else {"xoffset": 0}
    told["data"] = {"id": xid}
    value = json.dumps(told, separators=(",", ":")).encode()
    return pack(json.dumps({"database": "d", "table": "t", "pk.id": xid}).encode(), value)


def of_gtid(number: int) -> bytes:
    """A row as Debezium writes it without its topic of transactions."""
    source = {**MYSQL, "gtid": f"{UUID}:{number}", "ts_ms": 5000}
    return change("c", {"id": number}, source=source)


def idle(cutting: Cutting, epochs: dict[TopicPartition, int], now: float) -> msg.CutAsked | None:
    return asked_of(cutting.idle(reading(epochs), now))


def asked_for(out: list[Any]) -> list[msg.CutAsked]:
    """The cuts that the committer hears of."""
    told = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    return [each for each in told if isinstance(each, msg.CutAsked)]


def test_a_cut_is_behind_the_last_transaction_that_ends_in_a_batch() -> None:
    """What follows is held, and so is what comes after."""
    cutting = due(MAXWELL, row(1, last=True))
    values = [row(2, last=False), row(2, last=True), row(3, last=True), row(4, last=False)]
    head, asked = take(cutting, fetched(1, values), 1.0)
    assert asked == msg.CutAsked({P0: 1}, {P0: 4}, "transaction", 7000, "3")
    assert head is not None
    assert (head.offsets, head.next_offset) == ([1, 2, 3], 4)
    assert take(cutting, fetched(5, [row(4, last=True)]), 1.1) == (None, None)
    assert cutting.holds(P0)
    other = msg.CutAsked({P0: 1}, {P0: 9}, "time", None, None)
    assert cutting.hear(msg.CutOver(other), 2.0) is None
    goes_on = cutting.hear(msg.CutOver(asked), 2.0)
    assert goes_on is not None
    assert [each.offsets for each in goes_on.held] == [[4], [5]]
    assert not cutting.at_rest
    assert take(cutting, fetched(6, [row(5, last=True)]), 2.9)[1] is None
    assert take(cutting, fetched(7, [row(6, last=True)]), 3.0)[1] is not None


def test_where_the_gtid_changes_a_transaction_has_ended() -> None:
    """The last one of a batch may go on in the next."""
    cutting = Cutting("p", DEBEZIUM, Reassembly(DEBEZIUM, 1 << 20), 1.0)
    take(cutting, fetched(0, [of_gtid(1)]), 0.0)
    head, asked = take(cutting, fetched(1, [of_gtid(2), of_gtid(2), of_gtid(3)]), 1.0)
    assert asked == msg.CutAsked({P0: 1}, {P0: 3}, "transaction", 5000, f"{UUID}:2")
    assert head is not None
    assert head.offsets == [1, 2]


@pytest.mark.parametrize("schema", [True, False])
def test_debeziums_end_of_a_transaction_is_a_boundary(schema: bool) -> None:
    """Where its topic of transactions is led into the rows'. One that comes again is none less."""
    end: Any = {"status": "END", "id": "0-1-7", "event_count": 0, "data_collections": None}
    end |= {"ts_ms": 4000}
    if schema:
        name = "io.debezium.connector.common.TransactionMetadataValue"
        end = {"schema": {"type": "struct", "fields": [], "name": name}, "payload": end}
    records = [pack(b'{"id":"0-1-7"}', json.dumps(end).encode()), change("c", {"id": 1})]
    cutting = due(DEBEZIUM, of_gtid(1))
    asked = take(cutting, fetched(1, records), 1.0)[1]
    assert asked == msg.CutAsked({P0: 1}, {P0: 2}, "transaction", 4000, "0-1-7")
    begin = json.dumps({"status": "BEGIN", "id": "x", "event_count": None}).encode()
    assert DEBEZIUM.transaction_end(pack(b"{}", begin)) is None
    row = change("c", {"status": "END", "id": 7, "event_count": 1})
    assert DEBEZIUM.transaction_end(row) is None


def test_where_nothing_ends_for_long_the_cut_says_that_it_is_by_time() -> None:
    """One transaction may be larger than a batch; some messages tell of none."""
    cutting, open_ = due(MAXWELL, row(1, last=True)), [row(2, last=False)]
    assert take(cutting, fetched(1, open_), 1.0)[1] is None
    assert take(cutting, fetched(2, open_), 1.0 + NO_END_S - 0.1)[1] is None
    asked = take(cutting, fetched(3, open_), 1.0 + NO_END_S)[1]
    assert asked == msg.CutAsked({P0: 1}, {P0: 4}, "time", 9000, None)


def test_a_log_that_tells_ends_is_waited_for_longer() -> None:
    """Its last cut was behind one: a transaction may take its time. Once none came, no more."""
    cutting, open_ = due(MAXWELL, row(1, last=True)), [row(3, last=False)]
    asked = take(cutting, fetched(1, [row(2, last=True)]), 1.0)[1]
    assert asked is not None
    cutting.hear(msg.CutOver(asked), 1.0)
    assert take(cutting, fetched(2, open_), 2.0)[1] is None
    assert take(cutting, fetched(3, open_), 2.0 + NO_END_S)[1] is None
    assert take(cutting, fetched(4, open_), 11.9)[1] is None
    asked = take(cutting, fetched(5, open_), 12.0)[1]
    assert asked == msg.CutAsked({P0: 1}, {P0: 6}, "time", 9000, None)
    cutting.hear(msg.CutOver(asked), 13.0)
    assert take(cutting, fetched(6, open_), 14.0)[1] is None
    assert take(cutting, fetched(7, open_), 14.0 + NO_END_S)[1] is not None


def test_a_quiet_log_is_cut_behind_its_last_message_again_and_again() -> None:
    """A cut there may have failed. In the middle of a transaction it waits for more."""
    cutting = due(MAXWELL, row(1, last=True))
    assert idle(cutting, {P0: 1}, 0.9) is None
    asked = idle(cutting, {P0: 1}, 1.0)
    assert asked == msg.CutAsked({P0: 1}, {P0: 1}, "transaction", 7000, "1")
    assert idle(cutting, {P0: 1}, 1.1) is None
    cutting.hear(msg.CutOver(asked), 1.2)
    assert idle(cutting, {P0: 1}, 2.2) == asked
    cutting.hear(msg.CutOver(asked), 2.3)
    take(cutting, fetched(1, [row(2, last=False)]), 3.0)
    assert idle(cutting, {P0: 1}, 3.4) is None
    found = idle(cutting, {P0: 1}, 3.0 + NO_END_S)
    assert found is not None
    assert found.boundary == "time"


@pytest.mark.parametrize("frontier", [True, False])
def test_a_log_that_is_quiet_from_the_start_is_cut_where_reading_began(frontier: bool) -> None:
    """The last run may have ended between a write and the cut that was due. Not where nobody knows
    what is applied below."""
    logic = FetcherLogic("p", MAXWELL, ROUTER, 1, FetcherSettings(cut_every_s=1.0))
    known = frozenset({P0} if frontier else ())
    logic.handle(msg.Assigned({P0: 7}, {P0: Watermarks(0, 99)}, at_frontier=known), 0.0)
    assert asked_for(answered(logic, msg.Polled((), {P0: 7}), NO_END_S - 0.1)) == []
    answered(logic, msg.Polled((), {P0: 7}), NO_END_S)
    asked = asked_for(answered(logic, msg.Polled((), {P0: 7}), NO_END_S + 1.0))
    assert asked == ([msg.CutAsked({P0: 1}, {P0: 7}, "time", None, None)] if frontier else [])


def test_while_reading_is_paused_no_cut_goes_through_a_transaction() -> None:
    """Its end may be in the log already; the seconds count from where reading goes on."""
    logic = fetcher()
    open_ = msg.Polled((fetched(0, [row(1, last=False)]),), {P0: 1})
    (offer,) = [each for each in logic.handle(open_, 0.0) if isinstance(each, fx.Offer)]
    logic.handle(msg.Offered(offer.to, offer.batch, False), 0.0)
    nothing = msg.Polled((), {P0: 1})
    for now in (1.0, 2 * NO_END_S, 4 * NO_END_S):
        assert any(isinstance(each, fx.Consume) for each in logic.handle(Tick(), now))
        assert asked_for(answered(logic, nothing, now)) == []
    now = 4 * NO_END_S
    answered(logic, msg.RoomAvailable(offer.to), now)
    assert asked_for(answered(logic, nothing, now + NO_END_S - 0.1)) == []
    (asked,) = asked_for(answered(logic, nothing, now + NO_END_S))
    assert asked.boundary == "time"


def test_a_partition_that_goes_away_is_waited_for_no_more() -> None:
    """It is read again, maybe by another member."""
    cutting = due(MAXWELL, row(1, last=True))
    asked = take(cutting, fetched(1, [row(2, last=True), row(3, last=False)]), 1.0)[1]
    cutting.keep({P1: None})
    assert not cutting.at_rest
    assert cutting.hear(msg.CutOver(asked), 2.0) is None
    assert idle(cutting, {P1: 2}, 9.0) is None


def test_where_others_read_partitions_of_the_log_none_is_cut_and_that_is_said_once() -> None:
    """By the count of its partitions."""
    cutting = due(MAXWELL, row(1, last=True))
    cutting.counted({"t": 2})
    assert take(cutting, fetched(1, [row(2, last=True)]), 9.0)[1] is None
    what = OTHERS.format(1, 2)
    assert cutting.lapsed(9.0) == GoesOn((), (fx.Log("warning", "cuts_not_made", {"what": what}),))
    assert cutting.uncut == what
    cutting.counted({})
    assert take(cutting, fetched(2, [row(3, last=True)]), 9.1)[1] is None
    assert cutting.lapsed(9.1) is None
    cutting.counted({"t": 1})
    assert take(cutting, fetched(3, [row(4, last=True)]), 9.2)[1] is not None
    assert cutting.uncut is None


def test_who_reads_nothing_does_not_say_that_others_do() -> None:
    """The broker may be away, or the group not have given anything yet."""
    cutting = due(MAXWELL, row(1, last=True))
    cutting.counted({"t": 1})
    cutting.keep({})
    assert cutting.idle({}, 9.0) == []
    assert cutting.lapsed(9.0) in (None, GoesOn(()))
    assert cutting.uncut is None


def fetcher() -> FetcherLogic:
    logic = FetcherLogic("p", MAXWELL, ROUTER, 1, FetcherSettings(cut_every_s=1.0))
    logic.handle(msg.Assigned({P0: 0}, {P0: Watermarks(0, 99)}), 0.0)
    return logic


def test_the_fetcher_rests_has_all_written_and_goes_on_when_it_hears_so() -> None:
    """The committer hears of the messages before it hears of the cut."""
    logic = fetcher()
    answered(logic, msg.Polled((fetched(0, [row(1, last=True)]),), {P0: 1}), 0.0)
    batch = fetched(1, [row(2, last=True), row(3, last=False)])
    out = answered(logic, msg.Polled((batch,), {P0: 3}), 1.0)
    told: list[Any] = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    kinds = [type(each).__name__ for each in told]
    assert kinds == ["Dispatched", "CutAsked", "Flush"]
    assert told[0].next_offset == told[1].positions[P0] == 2
    assert told[2] == msg.Flush(2)
    out = answered(logic, msg.CutOver(told[1]), 1.2)
    assert [type(e.message).__name__ for e in out if isinstance(e, fx.Tell)] == ["Dispatched"]
    assert [e.batch.shares[0].messages.first for e in out if isinstance(e, fx.Offer)] == [2]


@pytest.mark.parametrize("every", [None, 1.0])
def test_positions_are_not_reported_past_what_is_held(every: float | None) -> None:
    """Else the frontier would pass messages that were never sent on."""
    settings = FetcherSettings(cut_every_s=every)
    logic = FetcherLogic("p", MAXWELL, ROUTER, 1, settings)
    logic.handle(msg.Assigned({P0: 0}, {P0: Watermarks(0, 99)}), 0.0)
    answered(logic, msg.Polled((fetched(0, [row(1, last=True)]),), {P0: 1}), 0.0)
    batch = fetched(1, [row(2, last=True), row(3, last=False)])
    out = answered(logic, msg.Polled((batch,), {P0: 9}), 1.0)
    ends = [
        effect.message.next_offset
        for effect in out
        if isinstance(effect, fx.Tell) and isinstance(effect.message, msg.Dispatched)
    ]
    assert ends == ([2] if every else [3, 9])


def test_without_cuts_nothing_is_flushed_however_long_nothing_is_read() -> None:
    """Else each poll would have all targets write, be it one row."""
    cutting = Cutting("p", DEBEZIUM, Reassembly(DEBEZIUM, 1 << 20), None)
    assert cutting.idle({}, 0.0) == []
    assert not any(cutting.flush(now) for now in (0.0, 20.0, 20.1))
