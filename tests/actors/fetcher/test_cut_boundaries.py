"""Where a cut goes through messages that hold several transactions, or come in parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.by_time import NO_END_S
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from offsets.recovery import Watermarks
from tests.actors.fetcher.cuts import P0, ROUTER, answered, due, fetched, take
from tests.changes.formats import protobuf_records as wire

DTS, PACKETS = FORMATS["tencent-dts"](FormatOptions()), FORMATS["canal-protobuf"](FormatOptions())


def packet(*gtids: str) -> bytes:
    """A packet of Canal's with a row of each of these transactions."""
    columns = [wire.canal_column("id", "1", "int(11)", key=True)]
    rows = [wire.canal_rows("INSERT", [wire.canal_row((), columns)], gtid=each) for each in gtids]
    return wire.canal_packet(*rows)


@pytest.mark.parametrize(
    ("packets", "behind"),
    [
        ([("1",), ("1", "2"), ("2",)], None),
        ([("1",), ("1", "2"), ("3",)], 1),
        ([("1",), ("2", "3"), ("3",)], 0),
        ([("1", "2", "1"), ("2",)], 0),
        ([("1", "2"), ("2", "1")], None),
        ([("1",), ("2", ""), ("3",)], None),
        ([("1",), ("2",), ()], None),
    ],
)
def test_between_packets_the_last_change_and_the_next_ones_first_count(
    packets: list[tuple[str, ...]], behind: int | None
) -> None:
    """A packet that tells none, or has no change, may stand in the midst of one."""
    cutting = due(PACKETS, packet("0"))
    values = [packet(*gtids) for gtids in packets]
    head, asked = take(cutting, fetched(1, values), 1.0)
    assert (asked is None) == (behind is None)
    if behind is not None:
        name = packets[behind][-1]
        assert asked == msg.CutAsked(
            {P0: 1}, {P0: 2 + behind}, "transaction", 1_700_000_000_000, name
        )
        assert head is not None
        assert len(head.offsets) == behind + 1


def dts_entry(gtid: str) -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    return wire.dts_rows(0, columns, [wire.dts_row((), [wire.dts_number(3, "1")])], gtid=gtid)


def dts_row(gtid: str, number: int | None = None) -> bytes:
    """A message of a row, which the producer counts where ``number`` is given."""
    headers = [] if number is None else [("ps", str(number).encode())]
    return pack(None, wire.dts_message(dts_entry(gtid)), headers)


def dts_end(gtid: str, number: int | None = None) -> bytes:
    headers = [] if number is None else [("ps", str(number).encode())]
    return pack(None, wire.dts_message(wire.dts_commit(gtid=gtid)), headers)


def dts_parts(gtid: str, shard: str = "") -> list[bytes]:
    """A message of a row in three parts."""
    size = len(wire.fields({1: [dts_entry(gtid)]})) // 3 + 1
    headers = [("ShardId", shard.encode())] if shard else []
    return [pack(None, part, headers) for part in wire.dts_parts(size, dts_entry(gtid))]


def dts_fetcher(*first: bytes) -> FetcherLogic:
    """Its first cut is due from second 1 on, behind these messages."""
    logic = FetcherLogic("p", DTS, ROUTER, 1, FetcherSettings(cut_every_s=1.0))
    logic.handle(msg.Assigned({P0: 0}, {P0: Watermarks(0, 99)}), 0.0)
    assert asked_at(logic, 0, first, 0.0) is None
    return logic


def asked_at(
    logic: FetcherLogic, first: int, values: Sequence[bytes], now: float
) -> tuple[int, str | None] | None:
    """Where a cut is asked for as these messages come, and the transaction that ends there."""
    batches = (fetched(first, values),) if values else ()
    out = answered(logic, msg.Polled(batches, {P0: first + len(values)}), now)
    told = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    found = [each for each in told if isinstance(each, msg.CutAsked)]
    assert len(found) < 2
    assert not any(isinstance(each, msg.PipelineFailed) for each in told)
    return (found[0].positions[P0], found[0].transaction) if found else None


def test_a_cut_is_behind_dtss_commit_and_between_its_gtids() -> None:
    """A message in parts is an event alone, which ends nothing."""
    logic = dts_fetcher(dts_row("1"))
    assert asked_at(logic, 1, [dts_end("1"), dts_row("2")], 1.0) == (2, "1")
    logic = dts_fetcher(dts_row("1"))
    assert asked_at(logic, 1, [*dts_parts("1"), dts_row("1")], 1.0) is None
    assert asked_at(logic, 5, [dts_row("1"), dts_row("2")], 1.0) == (6, "1")


def test_no_cut_goes_through_the_parts_of_a_message() -> None:
    """It would be in none of the tables, below the boundary. Whether its begin is in the batch or
    in one before, and whether the cut is by transactions or by time."""
    first, *others = dts_parts("2")
    logic = dts_fetcher(dts_row("1"))
    assert asked_at(logic, 1, [dts_end("1"), first, others[0]], 1.0) == (2, "1")
    logic = dts_fetcher(dts_row("1"), first)
    assert asked_at(logic, 2, [dts_end("1"), dts_row("1"), dts_row("3")], 1.0) is None
    assert asked_at(logic, 5, [], 1.0 + 2 * NO_END_S) is None
    late = 1.0 + 3 * NO_END_S
    assert asked_at(logic, 5, [others[0]], late) is None
    assert asked_at(logic, 6, [others[1], first], late) == (7, None)


def test_the_parts_of_shards_may_be_mixed() -> None:
    """Shards are cut by time: an end of one is in the midst of another's transaction."""
    one, two = dts_parts("1", "a"), dts_parts("2", "b")
    logic = dts_fetcher(dts_row("0"))
    assert asked_at(logic, 1, [one[0], two[0], one[1]], 1.0) is None
    late = 1.0 + NO_END_S
    assert asked_at(logic, 4, [one[2], two[1]], late) is None
    assert asked_at(logic, 6, [two[2], *one[:2]], late) == (7, None)


def test_behind_what_is_sent_again_nothing_is_cut() -> None:
    """More is in the tables than lies before it in the source's log."""
    logic = dts_fetcher(dts_row("1", 1), dts_end("1", 2), dts_row("2", 3))
    again = [dts_row("1", 1), dts_end("1", 2), dts_row("2", 3)]
    assert asked_at(logic, 3, again[1:2], 1.0) is None
    assert asked_at(logic, 4, [], 1.1) is None
    assert asked_at(logic, 4, again[1:], 1.0 + NO_END_S) is None
    assert asked_at(logic, 6, [dts_row("2", 4), *again[1:]], 1.0 + 2 * NO_END_S) == (7, None)
    logic = dts_fetcher(dts_row("2", 2))
    values = [dts_row("2", 3), dts_row("1", 2), dts_row("2", 3), dts_row("2", 4)]
    assert asked_at(logic, 1, values, 1.0) is None
    assert asked_at(logic, 5, [dts_end("2", 5)], 1.0) == (6, "2")
