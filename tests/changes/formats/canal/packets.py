"""Canal's protobuf packets: rows by their images, values, what is refused by name."""

from __future__ import annotations

from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.canal.sent_bytes import packet, sent_bytes
from tests.changes.formats.cases import Case, FormatCases

HEADER = {8: "s", 9: "t"}


def row(number: int, name: str | None = "x") -> list[bytes]:
    """The columns of a row."""
    return [
        wire.canal_column("id", str(number), "int(11)", key=True),
        wire.canal_column("name", name, "varchar(20)"),
    ]


def inserts(*numbers: int, table: str = "t") -> bytes:
    """An entry of rows that begin."""
    return wire.canal_rows("INSERT", [wire.canal_row((), row(n)) for n in numbers], table)


def updates(*rows: bytes) -> bytes:
    """A packet of one entry of updates."""
    return wire.canal_packet(wire.canal_rows("UPDATE", rows))


def pair(a: int, b: int) -> list[bytes]:
    """The columns of a key of two."""
    return [wire.canal_column(n, str(v), "int(11)", key=True) for n, v in (("a", a), ("b", b))]


def entry(change: dict[int, wire.Value], event: int = 1) -> bytes:
    """A packet of an entry of rows that is written field by field."""
    header = wire.fields({**HEADER, 11: event})
    return wire.canal_packet(wire.fields({1: header, 2: 2, 3: wire.fields(change)}))


def bad(says: str, value: bytes, reason: str) -> Case:
    return Case(says, value, unreadable=reason)


X = {"name": "x"}
PACKETS = FormatCases(
    "canal-protobuf",
    "s.t",
    wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), row(99)[:1])])),
    [
        Case(
            "a transaction of one table is rows of it: begin and end have nothing to apply",
            wire.canal_packet(wire.canal_mark(1), inserts(1), inserts(2, 3), wire.canal_mark(3)),
            rows=[("U", {"id": n, **X}) for n in (1, 2, 3)],
        ),
        Case(
            "an update of the key ends the old key, one that leaves it does not",
            updates(wire.canal_row(row(1), row(2)), wire.canal_row(row(5), row(5))),
            rows=[("D", {"id": 1}), ("U", {"id": 2, **X}, {"id": 1}), ("U", {"id": 5, **X})],
        ),
        Case(
            "MINIMAL: the key is in the old row alone, the changed column in the new one",
            updates(wire.canal_row(row(1)[:1], row(1, "new")[1:])),
            rows=[("U", {"id": 1, "name": "new"})],
        ),
        Case(
            "a part of the key that is in the old row alone belongs to it all the same",
            updates(wire.canal_row(pair(1, 7), pair(2, 7)[:1])),
            rows=[("D", {"a": 1, "b": 7}), ("U", {"a": 2, "b": 7}, {"a": 1, "b": 7})],
            good=wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), pair(9, 9))])),
        ),
        Case(
            "an absent column keeps the stored value, null overwrites it",
            updates(wire.canal_row((), row(1)[:1]), wire.canal_row((), row(2, None))),
            rows=[("U", {"id": 1}), ("U", {"id": 2, "name": None})],
        ),
        Case(
            "columns are told by their names in each row, never by their places in the first",
            wire.canal_packet(
                wire.canal_rows(
                    "INSERT",
                    [
                        wire.canal_row((), row(1)),
                        wire.canal_row((), row(2)[::-1]),
                        wire.canal_row((), row(3)[:1]),
                    ],
                )
            ),
            rows=[("U", {"id": 1, **X}), ("U", {"id": 2, **X}), ("U", {"id": 3})],
        ),
        Case(
            "raw entries leave the compression out",
            wire.canal_packet(inserts(1), compression=None),
            rows=[("U", {"id": 1, **X})],
        ),
        Case(
            "the older protocol's defaults: no entry type is ROWDATA, no event type UPDATE",
            wire.canal_packet(
                wire.fields(
                    {
                        1: wire.fields(HEADER),
                        3: wire.fields({12: [wire.canal_row(row(1), row(1, "y"))]}),
                    }
                )
            ),
            rows=[("U", {"id": 1, "name": "y"})],
            before={"id": 1, "name": "x"},
        ),
        Case(
            "a QUERY that is no DDL is a remark, never executed",
            wire.canal_packet(wire.canal_rows("QUERY", [])),
            nothing=True,
        ),
        *(
            bad(f"compression {name}: its bytes would be read as entries, or as none",
                wire.canal_packet(inserts(1), compression=number), f"compression {name}")
            for number, name in ((2, "ZLIB"), (3, "GZIP"), (4, "LZF"), (9, "9"))
        ),
        bad("an ACK is no data, and must not pass for a heartbeat",
            wire.fields({3: 3, 5: wire.fields({1: 401, 2: "auth\nfailed"})}),
            "ACK with error 401: auth failed"),
        bad("so Canal marks rows that it could not read",
            wire.canal_packet(wire.fields({1: wire.fields({**HEADER, 11: 1}), 2: 2})),
            "s.t: an entry without content"),
        bad("rows in an entry that has none would be passed over with it",
            wire.canal_packet(wire.canal_rows("QUERY", [wire.canal_row((), row(1))])),
            "s.t: rows in an entry of type QUERY"),
        Case("a statement in an entry of rows would be passed over",
             entry({2: 1, 10: True, 11: "DROP TABLE t"}), unfit="s.t: a statement"),
        Case("a statement binlog changed rows, and does not say which",
             entry({2: 1, 10: False, 11: "INSERT INTO t VALUES (1)"}),
             unfit="s.t: a statement without rows"),
        Case("a value that does not fit",
             wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), [
                 wire.canal_column("id", "x1", "int(11)", key=True)])])),
             unfit="s.t: id: 'x1' is not an int(11)"),
        *sent_bytes(packet),
    ],
)  # fmt: skip
