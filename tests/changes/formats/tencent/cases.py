"""Tencent DTS's messages: images by place, values by their carriers, refusals."""

from __future__ import annotations

from datetime import UTC, datetime

from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.cases import Case, FormatCases

COLUMNS = [wire.dts_column("id", "int(11)", key=True), wire.dts_column("v", "varchar(9)")]
X = wire.dts_text("x")
INSERT, UPDATE, DELETE = 0, 1, 2
SHANGHAI = FormatOptions(time_zone="Asia/Shanghai")


def number(value: int) -> bytes:
    return wire.dts_number(3, str(value))


def record(*entries: bytes, shard: str | None = None) -> bytes:
    """The packed record of a message, of a shard of TDSQL where one is named."""
    headers = [] if shard is None else [("ShardId", shard.encode())]
    return pack(None, wire.dts_message(*entries), headers)


def rows_of(op: int, *rows: bytes) -> bytes:
    """A message of rows of id and v."""
    return record(wire.dts_rows(op, COLUMNS, rows))


def inserts(*numbers: int, table: str = "t") -> bytes:
    """An entry of rows that begin."""
    rows = [wire.dts_row((), [number(n), X]) for n in numbers]
    return wire.dts_rows(INSERT, COLUMNS, rows, table)


def value(original: str, carried: bytes) -> bytes:
    """A row with a column c of that type, and the value as it is carried."""
    columns = [COLUMNS[0], wire.dts_column("c", original)]
    return record(wire.dts_rows(INSERT, columns, [wire.dts_row((), [number(1), carried])]))


def bad(says: str, message: bytes, reason: str) -> Case:
    return Case(says, pack(None, message), unreadable=reason)


VALUES = [
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
    ("timestamp(6)", wire.dts_text("2021-05-17 07:22:42.000001 +00:00"),
     datetime(2021, 5, 17, 7, 22, 42, 1, UTC)),
    ("timestamp", wire.dts_text("2021-05-17 07:22:42 +08:00"),
     datetime(2021, 5, 16, 23, 22, 42, 0, UTC)),
    ("timestamp", wire.dts_text("0000-00-00 00:00:00 +00:00"), None),
]  # fmt: skip
"""By its carrier, its character set and its column's type."""

MISFITS = [
    ("int(11)", wire.dts_number(3, ""), "a number without digits"),
    ("int(11)", wire.dts_number(3, "1.5"), "'1.5' is not an int(11)"),
    ("int(11)", wire.fields({1: 15, 3: "1"}), "a value of unknown type 15"),
    ("int(11)", wire.fields({3: "1"}), "a value '1' of type NIL"),
    ("varchar(9)", wire.fields({1: 13, 4: b"\xff"}), "b'\\xff' is not text in utf8"),
    ("varchar(9)", wire.dts_text("x", "klingon"), "the character set 'klingon'"),
    ("enum('a')", wire.dts_number(4, "1"), "a number ('1') for a label"),
    ("blob", wire.dts_number(4, "1"), "a number ('1') for bytes"),
]
"""A new type of value above all: it must not be read as null."""

TENCENT = FormatCases(
    "tencent-dts",
    "s.t",
    record(wire.dts_rows(INSERT, COLUMNS[:1], [wire.dts_row((), [number(99)])])),
    [
        Case(
            "a transaction of one table is rows of it: BEGIN and COMMIT have nothing to apply",
            record(wire.dts_begin(), inserts(1, 2), inserts(3), wire.dts_commit()),
            rows=[("U", {"id": n, "v": "x"}) for n in (1, 2, 3)],
        ),
        Case(
            "NA keeps the stored value, NIL (no bytes at all) overwrites it with null",
            rows_of(
                INSERT,
                wire.dts_row((), [number(1), wire.NA]),
                wire.dts_row((), [number(2), wire.NIL]),
            ),
            rows=[("U", {"id": 1}), ("U", {"id": 2, "v": None})],
        ),
        Case(
            "a minimal update takes from the old row what the new one lacks, its key",
            rows_of(UPDATE, wire.dts_row([number(7), wire.NA], [wire.NA, X])),
            rows=[("U", {"id": 7, "v": "x"})],
        ),
        Case(
            "an update of the key ends the old key",
            rows_of(UPDATE, wire.dts_row([number(2), X], [number(5), X])),
            rows=[("D", {"id": 2}), ("U", {"id": 5, "v": "x"}, {"id": 2})],
        ),
        Case(
            "a delete needs the key alone",
            rows_of(DELETE, wire.dts_row([number(1), wire.NA])),
            rows=[("D", {"id": 1})],
        ),
        *(
            Case(f"{original}: {kept!r} from {carried!r}", value(original, carried),
                 rows=[("U", {"id": 1, "c": kept})])
            for original, carried, kept in VALUES
        ),
        Case(
            "a timestamp without a zone is in the configured one",
            value("timestamp", wire.dts_text("2021-05-17 08:00:00")),
            rows=[("U", {"id": 1, "c": datetime(2021, 5, 17, tzinfo=UTC)})],
            options=SHANGHAI,
        ),
        Case(
            "a timestamp that tells its zone is in that, whatever is configured",
            value("timestamp", wire.dts_text("2021-05-17 00:00:00 +00:00")),
            rows=[("U", {"id": 1, "c": datetime(2021, 5, 17, tzinfo=UTC)})],
            options=SHANGHAI,
        ),
        *(
            Case(f"{original}: {said}", value(original, carried), unfit=f"s.t: c: {said}")
            for original, carried, said in MISFITS
        ),
        Case(
            "values are matched by place: with one too few, all behind it had other names",
            rows_of(INSERT, wire.dts_row((), [number(1)])),
            unfit="s.t: 1 value for 2 columns",
        ),
        bad("a version of later", wire.dts_envelope(b"", version=2), "version 2"),
        bad("a part of none", wire.dts_envelope(b"", total=0), "part 0 of 0"),
        bad("a part behind the last", wire.dts_envelope(b"", 2, 2), "part 2 of 2"),
        bad("a DML without one", wire.dts_message(wire.dts_entry(2, wire.fields({3: b""}))),
            "dmlEvent is expected"),
        bad("a type that is left out reads as BEGIN",
            wire.dts_message(wire.dts_entry(0, wire.fields({2: b""}))), "beginEvent is expected"),
        bad("an unknown type", wire.dts_message(wire.dts_entry(9, b"")), "unknown type 9"),
        bad("a source that is not MySQL",
            wire.dts_message(wire.dts_rows(INSERT, COLUMNS, [], source=2)), "PGSQL"),
        bad("an unknown source",
            wire.dts_message(wire.dts_rows(INSERT, COLUMNS, [], source=4)), "the source is 4"),
        bad("no envelope", b"\xff", "not an envelope"),
    ],
)  # fmt: skip
