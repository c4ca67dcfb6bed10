"""The fetcher's rule for messages that come in parts, and for those of several entries."""

from __future__ import annotations

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats import FORMATS
from changes.formats.engine.format import Format, pack
from changes.model.model import FormatOptions, Kind, Mode, TableName
from changes.routes.routing import Route, Router
from offsets.ledger import LaneLedger
from offsets.parts import Running
from offsets.position import Lane, Run, TopicPartition
from offsets.recovery import Watermarks
from tests.changes.formats import protobuf_records as wire

SOURCE = TopicPartition("binlog", 0)
LANE = Lane(SOURCE, "lake.s.t")
DTS = FORMATS["tencent-dts"](FormatOptions())
CANAL = FORMATS["canal-protobuf"](FormatOptions())


def started(
    format_: Format = DTS,
    start: int = 0,
    *,
    at_frontier: bool = False,
    part_bytes: int = 1 << 20,
    target: str = "lake.{database}.{table}",
) -> FetcherLogic:
    routes = [Route(("*",), (), target, Mode.UPSERT, None)]
    settings = FetcherSettings(part_bytes=part_bytes, dead_letters=True)
    logic = FetcherLogic("p", format_, Router(routes), 1, settings)
    frontiers = frozenset([SOURCE]) if at_frontier else frozenset()
    logs = {SOURCE: Watermarks(0, 100)}
    logic.handle(msg.Assigned({SOURCE: start}, logs, at_frontier=frontiers), 0.0)
    return logic


def entry(number: int, table: str = "t") -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    return wire.dts_rows(0, columns, [wire.dts_row((), [wire.dts_number(3, str(number))])], table)


def packed(value: bytes, shard: str = "") -> bytes:
    return pack(None, value, [("ShardId", shard.encode())] if shard else [])


def parts(number: int, shard: str = "") -> list[bytes]:
    """A message in four parts."""
    size = len(wire.fields({1: [entry(number)]})) // 4 + 1
    return [packed(value, shard) for value in wire.dts_parts(size, entry(number))]


def whole(number: int, shard: str = "", table: str = "t") -> bytes:
    return packed(wire.dts_message(entry(number, table)), shard)


def polled(*values: bytes, first: int = 0) -> msg.Polled:
    offsets = list(range(first, first + len(values)))
    return msg.Polled((msg.Fetched(SOURCE, offsets, list(values), first + len(values)),))


def heard(out: list[object]) -> list[msg.Dispatched]:
    told = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    return [message for message in told if isinstance(message, msg.Dispatched)]


def failure(out: list[object]) -> str | None:
    told = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    return next((each.reason for each in told if isinstance(each, msg.PipelineFailed)), None)


def shares(logic: FetcherLogic, out: list[object]) -> list[msg.Share]:
    """What is offered, at once and as each offer is taken."""
    found: list[msg.Share] = []
    while offer := next((each for each in out if isinstance(each, fx.Offer)), None):
        found += offer.batch.shares
        out = logic.handle(msg.Offered(offer.to, offer.batch, True), 0.0)
    return found


def ids(found: list[msg.Share], format_: Format = DTS) -> list[int]:
    decoder = format_.table_decoder(Mode.UPSERT, None)
    made = [
        decoder.decode(0, share.messages.offsets, share.messages.values)
        for share in found
        if not share.ddl
    ]
    return [number for each in made if each for number in each.table["id"].to_pylist()]


def registered(out: list[object], ledger: LaneLedger) -> int:
    """Tell the ledger what the committer hears of it; give the frontier."""
    for sent in heard(out):
        ledger.dispatched(sent.source, sent.next_offset, sent.lanes, sent.runs, sent.fragments)
    return ledger.frontier(SOURCE)


def test_shards_interleave_and_each_message_stands_at_its_last_part() -> None:
    """Parts of two messages in one another: the shard's header tells whose each is."""
    logic, one, two = started(), parts(1, "a"), parts(2, "b")
    assert len(one) == len(two) == 4
    mixed = [each for pair in zip(one, two, strict=True) for each in pair]
    out = logic.handle(polled(*mixed), 0.0)
    assert [sent.runs for sent in heard(out) if sent.runs] == [
        {"lake.s.t": (Run(0, 6),)},
        {"lake.s.t": (Run(1, 7),)},
    ]
    found = shares(logic, out)
    assert [share.messages.offsets for share in found] == [[6], [7]]
    assert ids(found) == [1, 2]


def test_an_open_message_holds_the_frontier_where_it_began() -> None:
    """A crash before its last part must find the first one again."""
    logic, ledger = started(), LaneLedger()
    ledger.assign(SOURCE, 0)
    cut = parts(2, "a")
    assert registered(logic.handle(polled(whole(1), *cut[:2]), 0.0), ledger) == 0
    ledger.done(LANE, 0)
    assert ledger.frontier(SOURCE) == 1
    # What comes meanwhile, of another shard, of nobody, lifts nothing.
    later = polled(whole(3, "b"), first=3)
    registered(logic.handle(later, 0.0), ledger)
    ledger.done(LANE, 3)
    registered(logic.handle(msg.Polled((), {SOURCE: 9}), 0.0), ledger)
    assert ledger.frontier(SOURCE) == 1
    assert registered(logic.handle(polled(*cut[2:], first=9), 0.0), ledger) == 1
    ledger.done(LANE, 10)
    assert ledger.frontier(SOURCE) == 11


def test_parts_that_come_again_make_one_message() -> None:
    """A producer that went back begins with the first part: nothing is appended to the half."""
    logic, cut = started(), parts(1)
    out = logic.handle(polled(*cut[:3], *cut), 0.0)
    assert ids(shares(logic, out)) == [1]
    assert [sent.runs for sent in heard(out) if sent.runs] == [{"lake.s.t": (Run(3, 6),)}]


def test_a_missing_part_stops_the_pipeline() -> None:
    """What came before it goes on; nothing behind it is sent."""
    logic, cut = started(), parts(2)
    out = logic.handle(polled(whole(1), cut[0], cut[2], whole(3)), 0.0)
    reason = failure(out)
    assert reason is not None
    assert "binlog-0 offset 2" in reason or "offset 2" in reason
    assert "part 2 of 4" in reason
    assert heard(out)[-1].next_offset == 2
    assert ids(shares(logic, out)) == [1]


def test_a_tail_is_dropped_at_a_recorded_frontier_only() -> None:
    """Its head was applied before; from any other start on it would be a loss."""
    cut = parts(2)
    logic = started(start=5, at_frontier=True)
    out = logic.handle(polled(*cut[2:], whole(3), first=5), 0.0)
    assert failure(out) is None
    assert ids(shares(logic, out)) == [3]
    assert failure(started(start=5).handle(polled(*cut[2:], first=5), 0.0)) is not None


def test_parts_in_hand_are_bounded() -> None:
    """A producer that never ends a message can't fill the memory."""
    logic = started(part_bytes=440)
    out = logic.handle(polled(*parts(1, "a")[:2], *parts(2, "b")[:2]), 0.0)
    assert "more than 440" in (failure(out) or "")


def test_parts_without_data_are_bounded_too() -> None:
    """A million of them would take memory all the same."""
    logic = started(part_bytes=10_000)
    empty = [packed(wire.dts_envelope(b"", 1_000_000, index)) for index in range(200)]
    assert "more than 10000" in (failure(logic.handle(polled(*empty), 0.0)) or "")


def test_a_partition_that_comes_back_has_no_open_messages() -> None:
    """They are read again, from the frontier on."""
    logic, cut = started(), parts(1)
    logic.handle(polled(*cut[:2]), 0.0)
    logic.handle(msg.Revoked((SOURCE,)), 0.0)
    logs = {SOURCE: Watermarks(0, 100)}
    logic.handle(msg.Assigned({SOURCE: 0}, logs, at_frontier=frozenset([SOURCE])), 0.0)
    out = logic.handle(polled(*cut), 0.0)
    assert ids(shares(logic, out)) == [1]
    assert heard(out)[-1].fragments == {}


def test_a_whole_message_that_is_bad_is_a_dead_letter_of_all_its_parts() -> None:
    """Its first part holds the frontier until the letter is stored."""
    cut = wire.dts_parts(6, wire.dts_entry(9, b""))
    logic = started()
    out = logic.handle(polled(*(packed(each) for each in cut)), 0.0)
    last = len(cut) - 1
    assert heard(out)[-1].runs == {msg.DEAD_LETTERS: (Run(0, last),)}
    (letter,) = [
        each.message
        for each in out
        if isinstance(each, fx.Tell) and isinstance(each.message, msg.DeadLetter)
    ]
    assert "unknown type 9" in letter.reason


def canal(*entries: bytes) -> bytes:
    return wire.canal_packet(*entries)


def canal_rows(number: int, table: str) -> bytes:
    column = wire.canal_column("id", str(number), "int(11)", key=True)
    return wire.canal_rows("INSERT", [wire.canal_row((), [column])], table)


def test_each_target_gets_its_own_entries_of_a_message() -> None:
    """At the message's one offset, in their order."""
    logic = started(CANAL)
    value = canal(canal_rows(1, "a"), canal_rows(2, "b"), canal_rows(3, "a"))
    out = logic.handle(polled(value, canal(canal_rows(4, "b"))), 0.0)
    assert heard(out)[0].lanes == {"lake.s.a": (0, 0), "lake.s.b": (0, 1)}
    found = {share.route.name.table: share for share in shares(logic, out)}
    assert ids([found["a"]], CANAL) == [1, 3]
    assert ids([found["b"]], CANAL) == [2, 4]


def test_tables_that_share_a_target_keep_their_order_in_a_message() -> None:
    """A row that moves from shard to shard inside one message must end where it went last."""
    logic = started(CANAL, target="lake.s.all")
    value = canal(canal_rows(1, "a"), canal_rows(2, "b"), canal_rows(3, "a"))
    found = shares(logic, logic.handle(polled(value), 0.0))
    assert [share.messages.offsets for share in found] == [[0]]
    assert ids(found, CANAL) == [1, 2, 3]
    assert CANAL.peek(found[0].messages.values[0]).kind is Kind.MULTI_ENTRY


def test_a_statement_beside_rows_of_other_tables_is_their_barrier_not() -> None:
    """It is one in its own lane, at the same offset."""
    logic = started(CANAL)
    drop = wire.canal_ddl("TRUNCATE", "TRUNCATE a", "a")
    out = logic.handle(polled(canal(canal_rows(1, "a")), canal(drop, canal_rows(2, "b"))), 0.0)
    found = [(s.route.name.table, s.messages.offsets, s.ddl) for s in shares(logic, out)]
    assert sorted(found) == [("a", [0], False), ("a", [1], True), ("b", [1], False)]


@pytest.mark.parametrize("sql", ["TRUNCATE a", "ALTER TABLE a ADD c int"])
def test_a_statement_beside_rows_of_its_own_table_is_a_barrier_of_both(sql: str) -> None:
    """Its target gets the whole message, the others their rows of it, all at its one offset.

    So does what adds a column: a dropped one of that name may be kept, with its values.
    """
    logic = started(CANAL)
    statement = wire.canal_ddl("ALTER", sql, "a")
    value = canal(canal_rows(1, "a"), statement, canal_rows(2, "b"), canal_rows(3, "a"))
    out = logic.handle(polled(canal(canal_rows(0, "b")), value), 0.0)
    assert failure(out) is None
    found = shares(logic, out)
    (barrier,) = (share for share in found if share.ddl)
    assert (barrier.route.name.table, barrier.messages.offsets, barrier.messages.values) == (
        "a",
        [1],
        [value],
    )
    (rows,) = (share for share in found if not share.ddl)
    assert (rows.route.name.table, rows.messages.offsets) == ("b", [0, 1])
    assert ids([rows], CANAL) == [0, 2]


@pytest.mark.parametrize("sql", ["CREATE TABLE a (id int)", "ALTER TABLE a ADD INDEX i (id)"])
def test_a_statement_that_rows_show_by_themselves_is_left_out_beside_them(sql: str) -> None:
    """A table that is made and filled in one packet is the common case."""
    logic = started(CANAL)
    out = logic.handle(polled(canal(wire.canal_ddl("CREATE", sql, "a"), canal_rows(1, "a"))), 0.0)
    assert failure(out) is None
    (share,) = shares(logic, out)
    assert not share.ddl
    assert CANAL.peek(share.messages.values[0]) == (Kind.ROWS, TableName("s", "a"))


@pytest.mark.parametrize("clause", ["MODIFY id bigint", "CONVERT TO CHARACTER SET latin1"])
def test_a_column_that_is_redefined_is_not_shown_by_rows(clause: str) -> None:
    """Those stored before may have been rewritten: the statement was left out, and nobody told."""
    logic, sql = started(CANAL), f"ALTER TABLE a {clause}"
    out = logic.handle(polled(canal(wire.canal_ddl("ALTER", sql, "a"), canal_rows(1, "a"))), 0.0)
    (share,) = shares(logic, out)
    assert share.ddl


def numbered(number: int, ps: str | None, shard: str = "") -> bytes:
    headers = [("ShardId", shard.encode())] if shard else []
    if ps is not None:
        headers.append(("ps", ps.encode()))
    return pack(None, wire.dts_message(entry(number)), headers)


def test_a_message_that_was_sent_again_is_dropped() -> None:
    """Each shard counts for itself; the position moves over what is dropped."""
    logic = started()
    values = [numbered(1, "5", "a"), numbered(2, "9", "b"), numbered(3, "5", "a")]
    out = logic.handle(polled(*values, numbered(4, "6", "a")), 0.0)
    assert ids(shares(logic, out)) == [1, 2, 4]
    assert heard(out)[-1].next_offset == 4


def test_a_part_that_was_sent_again_is_not_appended() -> None:
    """Nor does it make the message's other parts wrong."""
    logic, cut = started(), wire.dts_parts(len(wire.fields({1: [entry(1)]})) // 2 + 1, entry(1))
    values = [pack(None, each, [("ps", str(ps).encode())]) for ps, each in enumerate(cut, 1)]
    out = logic.handle(polled(*values, numbered(2, "3"), values[1]), 0.0)
    assert failure(out) is None
    assert ids(shares(logic, out)) == [1, 2]


@pytest.mark.parametrize("ps", ["8", None])
def test_a_gap_in_the_running_numbers_stops_the_pipeline(ps: str | None) -> None:
    """A message was lost; what came before it is sent on, and no offset of it is passed."""
    logic = started()
    out = logic.handle(polled(numbered(1, "6"), numbered(2, ps), numbered(3, "9")), 0.0)
    assert "offset 1" in (failure(out) or "")
    assert heard(out)[-1].next_offset == 1
    assert ids(shares(logic, out)) == [1]


def test_a_producer_may_count_anew() -> None:
    """From 1: to drop what it sends would be a loss."""
    logic = started()
    out = logic.handle(polled(numbered(1, "6"), numbered(2, "1"), numbered(3, "2")), 0.0)
    assert ids(shares(logic, out)) == [1, 2, 3]


def test_numbers_are_told_with_each_position() -> None:
    """What is recorded with a frontier must be the numbers just there, not of what lies above."""
    logic = started()
    values = [numbered(1, "6", "a"), pack(None, wire.dts_parts(30, entry(2))[0], [("ps", b"1")])]
    out = logic.handle(polled(*values), 0.0)
    assert [(sent.next_offset, sent.running) for sent in heard(out)] == [
        (1, {"a": 6}),
        (2, {"a": 6, "": 1}),
    ]


def test_a_gap_is_found_again_after_a_restart() -> None:
    """Or a service that is started again by itself would pass over the loss."""
    logic = started()
    known = {SOURCE: Running(3, {"": 6})}
    logs = {SOURCE: Watermarks(0, 100)}
    logic.handle(msg.Assigned({SOURCE: 3}, logs, running=known), 0.0)
    out = logic.handle(polled(numbered(1, "8"), first=3), 0.0)
    assert "expected is 7" in (failure(out) or "")


def test_what_was_sent_again_over_a_restart_is_dropped() -> None:
    """The numbers recorded with the start tell."""
    logic = started()
    known = {SOURCE: Running(3, {"": 6})}
    logs = {SOURCE: Watermarks(0, 100)}
    logic.handle(msg.Assigned({SOURCE: 3}, logs, running=known), 0.0)
    out = logic.handle(polled(numbered(1, "6"), numbered(2, "7"), first=3), 0.0)
    assert ids(shares(logic, out)) == [2]


def test_a_bad_message_counts_among_the_numbers() -> None:
    """Or the good one behind a dead letter would look like the far side of a gap."""
    logic = started()
    bad = pack(None, b"\xff", [("ps", b"2")])
    out = logic.handle(polled(numbered(1, "1"), bad, numbered(3, "3")), 0.0)
    assert failure(out) is None
    assert ids(shares(logic, out)) == [1, 3]


@pytest.mark.parametrize("ps", ["x", str(2**64)])
def test_a_number_that_is_none_stops_the_pipeline(ps: str) -> None:
    """Nothing could be told from it, neither a gap nor a message sent again."""
    assert "no number" in (failure(started().handle(polled(numbered(1, ps)), 0.0)) or "")
