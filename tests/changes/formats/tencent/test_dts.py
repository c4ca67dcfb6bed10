"""Tencent DTS's messages: what is read, what is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import Chunked, MultiEntry, pack
from changes.model.model import BadMessage, BadRecord, FormatOptions, Kind, Mode, TableName
from tests.changes.formats import protobuf_records as wire

FORMAT = FORMATS["tencent-dts"](FormatOptions())
COLUMNS = [wire.dts_column("id", "int(11)", key=True), wire.dts_column("v", "varchar(9)")]


def number(value: int) -> bytes:
    return wire.dts_number(3, str(value))


def record(*entries: bytes, shard: str | None = None) -> bytes:
    headers = [] if shard is None else [("ShardId", shard.encode())]
    return pack(None, wire.dts_message(*entries), headers)


def inserts(*numbers: int, table: str = "t") -> bytes:
    rows = [wire.dts_row((), [number(n), wire.dts_text("x")]) for n in numbers]
    return wire.dts_rows(0, COLUMNS, rows, table)


def decoded(*values: bytes, options: FormatOptions | None = None) -> dict[str, list[Any]]:
    format_ = FORMAT if options is None else FORMATS["tencent-dts"](options)
    changes = format_.table_decoder(Mode.UPSERT, None).decode(0, range(len(values)), values)
    assert changes is not None
    return dict(changes.table.to_pydict())


def one(original: str, value: bytes, options: FormatOptions | None = None) -> Any:
    """A single value of a column, as the lake has it."""
    columns = [COLUMNS[0], wire.dts_column("c", original)]
    entry = wire.dts_rows(0, columns, [wire.dts_row((), [number(1), value])])
    return decoded(record(entry), options=options)["c"][0]


def test_a_transaction_of_one_table_is_rows_of_that_table() -> None:
    """BEGIN, whose type is 0 and so not on the wire, and COMMIT have nothing to apply."""
    value = record(wire.dts_begin(), inserts(1, 2), inserts(3), wire.dts_commit())
    assert FORMAT.peek(value) == (Kind.ROWS, TableName("s", "t"))
    assert decoded(value)["id"] == [1, 2, 3]


def test_what_is_not_there_and_null_stay_apart() -> None:
    """NA keeps the stored value; NIL, which has no bytes at all, overwrites it with null."""
    rows = [wire.dts_row((), [number(1), wire.NA]), wire.dts_row((), [number(2), wire.NIL])]
    found = decoded(record(wire.dts_rows(0, COLUMNS, rows)))
    assert (found["v"], found["__binlogd_has_v"]) == ([None, None], [False, True])


def test_a_minimal_update_takes_from_the_old_row_what_the_new_lacks() -> None:
    """The key is NA in the new image: it is that of the old one."""
    row = wire.dts_row([number(7), wire.NA], [wire.NA, wire.dts_text("new")])
    found = decoded(record(wire.dts_rows(1, COLUMNS, [row])))
    assert (found["__binlogd_op"], found["id"], found["v"]) == (["U"], [7], ["new"])


def test_an_update_of_the_key_ends_the_old_key() -> None:
    """Or the row of the old key would stay for ever."""
    row = wire.dts_row([number(2), wire.dts_text("b")], [number(5), wire.dts_text("b")])
    found = decoded(record(wire.dts_rows(1, COLUMNS, [row])))
    assert (found["__binlogd_op"], found["id"]) == (["D", "U"], [2, 5])


def test_a_delete_needs_the_key_only() -> None:
    """The rest of the old image may be NA."""
    found = decoded(record(wire.dts_rows(2, COLUMNS, [wire.dts_row([number(1), wire.NA])])))
    assert (found["__binlogd_op"], found["id"]) == (["D"], [1])


@pytest.mark.parametrize(
    ("original", "value", "expected"),
    [
        ("bigint(20) unsigned", wire.dts_number(8, str(2**64 - 1)), 2**64 - 1),
        ("bit(64)", wire.dts_number(4, "-1"), 2**64 - 1),
        ("bit(1)", wire.dts_number(4, "1"), True),
        ("year(4)", wire.dts_number(4, "2023"), 2023),
        ("enum('2','1')", wire.dts_text("1"), "1"),
        ("set('x','y')", wire.dts_text("x,y"), "x,y"),
        ("json", wire.dts_bytes(b'{"a": 1}'), '{"a": 1}'),
        ("text", wire.dts_bytes("é".encode()), "é"),
        ("varchar(9)", wire.dts_text("你好", "gbk", "gbk"), "你好"),
        ("varchar(9)", wire.dts_text("é", "latin1_swedish_ci", "latin-1"), "é"),
        ("varchar(9)", wire.dts_text(""), ""),
        ("blob", wire.dts_bytes(b"\x00\xff"), b"\x00\xff"),
        ("varbinary(9)", wire.dts_text("é", "binary"), "é".encode()),
        ("time(3)", wire.dts_text("-838:59:59.500"), "-838:59:59.500000"),
        (
            "timestamp(6)",
            wire.dts_text("2021-05-17 07:22:42.000001 +00:00"),
            datetime(2021, 5, 17, 7, 22, 42, 1, UTC),
        ),
        (
            "timestamp",
            wire.dts_text("2021-05-17 07:22:42 +08:00"),
            datetime(2021, 5, 16, 23, 22, 42, 0, UTC),
        ),
        ("timestamp", wire.dts_text("0000-00-00 00:00:00 +00:00"), None),
    ],
)  # fmt: skip
def test_values_are_exact(original: str, value: bytes, expected: object) -> None:
    """Each by its carrier, its character set and its column's type."""
    assert one(original, value) == expected


def test_a_timestamp_without_zone_is_in_the_configured_one() -> None:
    """The text that tells its zone is read by that, whatever is configured."""
    options = FormatOptions(time_zone="Asia/Shanghai")
    bare = one("timestamp", wire.dts_text("2021-05-17 08:00:00"), options)
    told = one("timestamp", wire.dts_text("2021-05-17 00:00:00 +00:00"), options)
    assert bare == told == datetime(2021, 5, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("original", "value", "reason"),
    [
        ("int(11)", wire.dts_number(3, ""), "c: a number without digits"),
        ("int(11)", wire.dts_number(3, "1.5"), r"c: '1.5' is not an int\(11\)"),
        ("int(11)", wire.fields({1: 15, 3: "1"}), "c: a value of unknown type 15"),
        ("int(11)", wire.fields({3: "1"}), "c: a value '1' of type NIL"),
        ("varchar(9)", wire.fields({1: 13, 4: b"\xff"}), "c: .* is not text in utf8"),
        ("varchar(9)", wire.dts_text("x", "klingon"), "c: the character set 'klingon'"),
        ("enum('a')", wire.dts_number(4, "1"), "c: a number .* for a label"),
        ("blob", wire.dts_number(4, "1"), "c: a number .* for bytes"),
    ],
)
def test_what_can_not_be_read_names_its_column(original: str, value: bytes, reason: str) -> None:
    """A new type of value above all: it must not be read as null."""
    with pytest.raises(BadRecord, match=r"^s\.t: " + reason):
        one(original, value)


def test_values_are_matched_by_their_place() -> None:
    """So one too few is refused: all behind it would stand under other names."""
    entry = wire.dts_rows(0, COLUMNS, [wire.dts_row((), [number(1)])])
    with pytest.raises(BadRecord, match="1 values for 2 columns"):
        decoded(record(entry))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (wire.dts_envelope(b"", version=2), "version 2"),
        (wire.dts_envelope(b"", total=0), "part 0 of 0"),
        (wire.dts_envelope(b"", 2, 2), "part 2 of 2"),
        (wire.dts_message(wire.dts_entry(2, wire.fields({3: b""}))), "dmlEvent is expected"),
        (wire.dts_message(wire.dts_entry(0, wire.fields({2: b""}))), "beginEvent is expected"),
        (wire.dts_message(wire.dts_entry(9, b"")), "unknown type 9"),
        (wire.dts_message(wire.dts_rows(0, COLUMNS, [], source=2)), "PGSQL"),
        (wire.dts_message(wire.dts_rows(0, COLUMNS, [], source=4)), "the source is 4"),
        (b"\xff", "not an envelope"),
    ],
)
def test_what_can_not_be_routed_is_refused(value: bytes, reason: str) -> None:
    """A type that is left out reads as BEGIN: the event must be what the type says."""
    with pytest.raises(BadMessage, match=reason):
        FORMAT.peek(pack(None, value))


def test_parts_are_told_with_their_shard() -> None:
    """Shards interleave: the header tells which message a part belongs to."""
    assert isinstance(FORMAT, Chunked)
    values = wire.dts_parts(20, inserts(1, 2))
    found = [FORMAT.part(pack(None, value, [("ShardId", b"set_1")])) for value in values]
    assert [each and (each[0], each[1].total, each[1].number) for each in found] == [
        ("set_1", len(values), place) for place in range(len(values))
    ]
    last = pack(None, values[-1], [("ShardId", b"set_1")])
    whole = FORMAT.reassembled(last, b"".join(each[1].data for each in found if each))
    assert decoded(whole)["id"] == [1, 2]


def test_tables_of_one_message_are_taken_apart_in_their_order() -> None:
    """Each entry makes a message of its own again, of the same shard."""
    assert isinstance(FORMAT, MultiEntry)
    value = record(inserts(1, table="a"), inserts(2, table="b"), inserts(3, table="a"))
    assert FORMAT.peek(value).kind is Kind.MULTI_ENTRY
    entries = FORMAT.entries(value)
    mine = FORMAT.joined(value, [p.data for p in entries if p.table.table == "a"])
    assert FORMAT.peek(mine) == (Kind.ROWS, TableName("s", "a"))
    assert decoded(mine)["id"] == [1, 3]


@pytest.mark.parametrize(
    "sql", ["TRUNCATE t", "DROP TABLE t", "ALTER TABLE t RENAME COLUMN v TO w"]
)
def test_what_one_shard_takes_away_is_refused(sql: str) -> None:
    """It would take the other shards' rows too: each sends the statement, amid theirs."""
    (alone,) = FORMAT.ddl(record(wire.dts_ddl(sql)))
    (sharded,) = FORMAT.ddl(record(wire.dts_ddl(sql), shard="set_1"))
    assert alone.refused is None
    assert sharded.refused == "what shard set_1 alone says of a sharded table"


def test_a_column_that_shards_add_one_after_another_is_followed() -> None:
    """Adding it again changes nothing."""
    (found,) = FORMAT.ddl(record(wire.dts_ddl("ALTER TABLE t ADD c int"), shard="set_1"))
    assert found.refused is None
    assert found.steps
