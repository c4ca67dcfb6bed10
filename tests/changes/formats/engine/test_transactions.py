"""What a message tells of the transactions that its changes are of, and of their ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS, TopicFormats, make_format
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Format, pack
from changes.model.model import FormatOptions
from changes.model.places import TransactionEnd, Transactions
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.aliyun.messages import record as aliyun
from tests.changes.formats.canal.messages import message as canal
from tests.changes.formats.cases import NAMED
from tests.changes.formats.debezium.messages import MYSQL, change
from tests.changes.formats.maxwell.messages import KEY, encrypted

CANAL, MAXWELL, PACKETS, DTS, ALIYUN, DEBEZIUM = (
    make_format(name, FormatOptions())
    for name in (
        *("canal-json", "maxwell-json", "canal-protobuf"),
        *("tencent-dts", "aliyun-dts-avro", "debezium-json"),
    )
)
G1, G2, G3 = "u:1-7", "u:1-8", "u:1-9"
BEGIN, END, HEARTBEAT, GTIDLOG = 1, 3, 4, 5
MS = 1_700_000_000_000


def of(name: str, last: str | None = None) -> Transactions:
    return Transactions(name, last or name)


# --- a message of one transaction


def test_canals_json_has_a_set_that_grows_by_each_transaction() -> None:
    """Of a statement, too. Who reads by file writes an empty one."""
    assert CANAL.transactions_of(canal(gtid=G1)) == of(G1)
    statement = canal("ALTER", None, isDdl=True, sql="ALTER TABLE t ADD c int", gtid=G2)
    assert CANAL.transactions_of(statement) == of(G2)
    for none in ({"gtid": ""}, {"gtid": None}, {"gtid": 7}, {}):
        assert CANAL.transactions_of(canal(**none)) is None


def maxwell(**told: Any) -> bytes:
    row = {"database": "d", "table": "t", "type": "insert", "ts": 7, "data": {"id": 1}}
    return pack(None, json.dumps(row | told, separators=(",", ":")).encode())


def test_maxwell_has_a_gtid_where_it_is_told_to_write_it_and_else_a_number() -> None:
    """By which its end is named, too. A bootstrap's rows are read from the table."""
    assert MAXWELL.transactions_of(maxwell(xid=5, gtid="u:7")) == of("u:7")
    assert MAXWELL.transactions_of(maxwell(xid=5, gtid=None)) == of("5")
    assert MAXWELL.transactions_of(maxwell()) is None
    assert MAXWELL.transactions_of(maxwell(xid="x")) is None
    assert MAXWELL.transactions_of(maxwell(type="bootstrap-insert", gtid="u:7")) is None
    ended = maxwell(xid=5, gtid="u:7", commit=True)
    assert MAXWELL.transaction_end(ended) == TransactionEnd("u:7", 7000)
    statement = maxwell(type="table-drop", gtid="u:7", sql="drop table t")
    assert MAXWELL.transactions_of(statement) == of("u:7")


def test_maxwells_encrypted_messages_tell_it_by_the_key() -> None:
    """Without it they tell nothing."""
    value = maxwell(xid=5, encrypted=encrypted(b'{"data":{"id":2}}'))
    keyed = make_format("maxwell-json", FormatOptions(extra={"encryption_key": KEY}))
    assert keyed.transactions_of(value) == of("5")
    assert MAXWELL.transactions_of(value) is None


def test_debezium_has_its_sources_gtid() -> None:
    """As ``place`` has it."""
    row = change("c", {"id": 1}, source={**MYSQL, "gtid": "u:7"})
    assert DEBEZIUM.transactions_of(row) == of("u:7")
    assert DEBEZIUM.transactions_of(change("r", {"id": 1}, source={**MYSQL, "gtid": "u:7"})) is None
    assert DEBEZIUM.transactions_of(change("c", {"id": 1})) is None


# --- packets


def packet(*entries: bytes) -> bytes:
    return wire.canal_packet(*entries)


def canal_row(gtid: str | None = None) -> bytes:
    columns = [wire.canal_column("id", "1", "int(11)", key=True)]
    return wire.canal_rows("INSERT", [wire.canal_row((), columns)], gtid=gtid)


def mark(kind: int, number: str = "17", gtid: str | None = None) -> bytes:
    return wire.canal_mark(kind, number, gtid)


def test_a_packets_transactions_are_those_of_its_first_and_last_changes() -> None:
    """The end of the one before and the beginning of the one behind are no changes."""
    several = packet(mark(END, gtid=G1), canal_row(G2), canal_row(G3), mark(BEGIN))
    assert PACKETS.transactions_of(several) == of(G2, G3)
    assert PACKETS.transactions_of(packet(canal_row(G1), canal_row(G1))) == of(G1)
    for untold in ((canal_row(), canal_row(G1)), (canal_row(G1), canal_row()), (mark(END),), ()):
        assert PACKETS.transactions_of(packet(*untold)) is None


@pytest.mark.parametrize("behind", [(), (GTIDLOG, BEGIN), (HEARTBEAT,)])
def test_a_packet_ends_a_transaction_where_no_change_is_behind_its_end(
    behind: tuple[int, ...],
) -> None:
    """By its GTID, else by its number; an end of XA has neither."""
    rest = [mark(kind, gtid=G2) for kind in behind]
    ended = packet(mark(BEGIN), canal_row(), mark(END), *rest)
    assert PACKETS.transaction_end(ended) == TransactionEnd("17", MS)
    named = packet(canal_row(G1), mark(END, gtid=G1), *rest)
    assert PACKETS.transaction_end(named) == TransactionEnd(G1, MS)
    assert PACKETS.transaction_end(packet(mark(END, "0"), *rest)) == TransactionEnd(None, MS)


@pytest.mark.parametrize(
    "entries",
    [
        (canal_row(),),
        (canal_row(), mark(END), mark(BEGIN), canal_row()),
        (mark(BEGIN),),
        (mark(END), mark(9)),
        (mark(END), wire.canal_ddl("ALTER", "ALTER TABLE t ADD c int")),
        (),
    ],
)
def test_a_packet_that_goes_on_behind_an_end_is_none(entries: tuple[bytes, ...]) -> None:
    """What follows it may be of the last one."""
    assert PACKETS.transaction_end(packet(*entries)) is None


# --- envelopes


def dts(*entries: bytes, shard: str | None = None) -> bytes:
    headers = [] if shard is None else [("ShardId", shard.encode())]
    return pack(None, wire.dts_message(*entries), headers)


def dts_row(gtid: str | None = None) -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    return wire.dts_rows(0, columns, [wire.dts_row((), [wire.dts_number(3, "1")])], gtid=gtid)


def test_an_envelopes_transactions_are_those_of_its_first_and_last_changes() -> None:
    """A checkpoint has a GTID of its own, which is not looked at."""
    several = dts(wire.dts_commit(gtid=G1), dts_row(G2), dts_row(G3), wire.dts_checkpoint())
    assert DTS.transactions_of(several) == of(G2, G3)
    assert DTS.transactions_of(dts(wire.dts_ddl("DROP TABLE t"), dts_row(G1))) is None
    assert DTS.transactions_of(dts(wire.dts_checkpoint())) is None


def test_an_envelope_ends_a_transaction_where_no_change_is_behind_its_commit() -> None:
    """By its GTID, else by its number."""
    begin, commit = wire.dts_begin(), wire.dts_commit(gtid=G1)
    for behind in ([], [begin], [wire.dts_checkpoint(), wire.dts_heartbeat()]):
        found = DTS.transaction_end(dts(dts_row(), commit, *behind))
        assert found == TransactionEnd(G1, MS)
    assert DTS.transaction_end(dts(wire.dts_commit())) == TransactionEnd("tx", MS)
    assert DTS.transaction_end(dts(wire.dts_commit(""))) == TransactionEnd(None, MS)
    rollback = wire.dts_entry(4, wire.fields({5: b""}), "", "")
    for entries in ([dts_row()], [commit, begin, dts_row()], [begin], [commit, rollback]):
        assert DTS.transaction_end(dts(*entries)) is None


def test_a_shard_of_tdsql_tells_nothing() -> None:
    """Another one's transaction may be in its midst there."""
    for shard in ("set_1", "set_2"):
        assert DTS.transaction_end(dts(wire.dts_commit(gtid=G1), shard=shard)) is None
        assert DTS.transactions_of(dts(dts_row(G1), shard=shard)) is None


def test_a_part_tells_nothing() -> None:
    """Its bytes mean nothing without the others."""
    for part in wire.dts_parts(20, dts_row(G1), wire.dts_commit(gtid=G1)):
        assert DTS.transactions_of(pack(None, part)) is None
        assert DTS.transaction_end(pack(None, part)) is None


# --- records


def test_aliyuns_commit_is_the_end() -> None:
    """Named where the source's number is told. Of several servers it is nobody's end but one's."""
    end = ALIYUN.transaction_end(aliyun("COMMIT", fields=None, name=None, transaction="571"))
    assert end == TransactionEnd("571", 1_696_984_408_000)
    unnamed = aliyun("COMMIT", fields=None, name=None)
    assert ALIYUN.transaction_end(unnamed) == TransactionEnd(None, 1_696_984_408_000)
    assert ALIYUN.transaction_end(aliyun("COMMIT", fields=None, source="DRDS")) is None
    for other in ("BEGIN", "ROLLBACK", "HEARTBEAT"):
        assert ALIYUN.transaction_end(aliyun(other, fields=None)) is None
    assert ALIYUN.transaction_end(unnamed[:-2] + b"\xff\xff") is None


# --- all


@pytest.mark.parametrize("name", FORMATS)
def test_what_cant_be_read_tells_nothing(name: str) -> None:
    """And raises nothing: the flow itself says what is wrong with it."""
    format_ = make_format(name, FormatOptions(extra=NAMED))
    for value in (
        None,
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"null",
        b'{"gtid":[],"commit":true}',
        b"\0" * 9,
    ):
        record = pack(b"k", value) if format_.keyed else value
        assert format_.transactions_of(record) is None
        assert format_.transaction_end(record) is None
    assert format_.transactions_of(None) is None
    assert format_.transaction_end(None) is None


@pytest.mark.parametrize(
    ("format_", "row", "end"),
    [
        (PACKETS, packet(canal_row(G1)), packet(mark(END, gtid=G1))),
        (DTS, dts(dts_row(G1)), dts(wire.dts_commit(gtid=G1))),
        (MAXWELL, maxwell(gtid=G1), maxwell(gtid=G1, commit=True)),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_detected_format_tells_the_same(format_: Format, row: bytes, end: bytes) -> None:
    """Its records are marked, and packed whatever their format is."""
    auto = AutoFormat(FormatOptions(), TopicFormats({"t": format_.name}))
    packed = [each if format_.keyed else pack(None, each) for each in (row, end)]
    marked = [auto.marked("t", each) for each in packed]
    assert auto.transactions_of(marked[0]) == format_.transactions_of(row) == of(G1)
    told = auto.transaction_end(marked[1])
    assert told == format_.transaction_end(end)
    assert told is not None


def test_debezium_on_any_wire_tells_the_same() -> None:
    """Of JSON as of frames: what is asked is the translated record."""
    row = change("c", {"id": 1}, source={**MYSQL, "gtid": "u:7"})
    assert make_format("debezium", FormatOptions()).transactions_of(row) == of("u:7")
