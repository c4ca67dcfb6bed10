"""Canal's protobuf packets: what is read, what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import MultiEntry
from changes.model.model import BadMessage, BadRecord, FormatOptions, Kind, Mode, TableName
from tests.changes.formats import protobuf_records as wire

FORMAT = FORMATS["canal-protobuf"](FormatOptions())


def row(number: int, name: str | None = "x") -> list[bytes]:
    return [
        wire.canal_column("id", str(number), "int(11)", key=True),
        wire.canal_column("name", name, "varchar(20)"),
    ]


def inserts(*numbers: int, table: str = "t") -> bytes:
    return wire.canal_rows("INSERT", [wire.canal_row((), row(n)) for n in numbers], table)


def decoded(*values: bytes, keys: tuple[str, ...] | None = None) -> dict[str, list[Any]]:
    changes = FORMAT.table_decoder(Mode.UPSERT, keys).decode(0, range(len(values)), values)
    assert changes is not None
    return dict(changes.table.to_pydict())


def test_a_transaction_of_one_table_is_rows_of_that_table() -> None:
    """Begin and end stand beside its entries in the packet, and have nothing to apply."""
    packet = wire.canal_packet(wire.canal_mark(1), inserts(1), inserts(2, 3), wire.canal_mark(3))
    assert FORMAT.peek(packet) == (Kind.ROWS, TableName("s", "t"))
    assert decoded(packet)["id"] == [1, 2, 3]


def test_an_update_of_the_key_ends_the_old_key() -> None:
    """Or the row of the old key would stay for ever."""
    change = wire.canal_rows(
        "UPDATE", [wire.canal_row(row(1), row(2)), wire.canal_row(row(5), row(5))]
    )
    found = decoded(wire.canal_packet(change))
    assert (found["__binlogd_op"], found["id"]) == (["D", "U", "U"], [1, 2, 5])


def test_a_minimal_image_takes_its_key_from_the_old_row() -> None:
    """MINIMAL: the key stands in the old image only, the changed column in the new one only."""
    whole = wire.canal_packet(inserts(1))
    after = [wire.canal_column("name", "new", "varchar(20)")]
    before = [wire.canal_column("id", "1", "int(11)", key=True)]
    minimal = wire.canal_packet(wire.canal_rows("UPDATE", [wire.canal_row(before, after)]))
    for values in ((whole, minimal), (minimal,)):
        found = decoded(*values)
        assert (found["id"][-1], found["name"][-1]) == (1, "new")


def test_an_absent_column_is_apart_from_null() -> None:
    """Absent keeps the stored value, null overwrites it."""
    partial = wire.canal_rows("UPDATE", [wire.canal_row((), row(1)[:1])])
    null = wire.canal_rows("UPDATE", [wire.canal_row((), row(2, None))])
    found = decoded(wire.canal_packet(inserts(1)), wire.canal_packet(partial, null))
    assert found["__binlogd_has_name"] == [True, False, True]


def test_rows_of_one_event_may_differ_in_their_columns() -> None:
    """Columns are told by their names in each row, never by their places in the first."""
    rows = [
        wire.canal_row((), row(1)),
        wire.canal_row((), row(2)[::-1]),
        wire.canal_row((), row(3)[:1]),
    ]
    found = decoded(wire.canal_packet(wire.canal_rows("INSERT", rows)))
    assert (found["id"], found["name"]) == ([1, 2, 3], ["x", "x", None])


@pytest.mark.parametrize(("number", "name"), [(2, "ZLIB"), (3, "GZIP"), (4, "LZF"), (9, "9")])
def test_a_compression_is_refused_by_its_name(number: int, name: str) -> None:
    """Its bytes would be read as entries, or as none."""
    with pytest.raises(BadMessage, match=f"compression {name}"):
        FORMAT.peek(wire.canal_packet(inserts(1), compression=number))


def test_a_packet_without_compression_is_read() -> None:
    """Canal's path of raw entries leaves it out."""
    assert FORMAT.peek(wire.canal_packet(inserts(1), compression=None)).kind is Kind.ROWS


def test_an_ack_is_refused_with_its_error() -> None:
    """It is no data, and must not pass for a heartbeat."""
    packet = wire.fields({3: 3, 5: wire.fields({1: 401, 2: "auth\nfailed"})})
    with pytest.raises(BadMessage, match="ACK with error 401: auth failed"):
        FORMAT.peek(packet)


def test_an_entry_without_content_is_refused() -> None:
    """So Canal marks rows that it could not read."""
    header = wire.fields({8: "s", 9: "t", 11: 1})
    with pytest.raises(BadMessage, match=r"s\.t: an entry without content"):
        FORMAT.peek(wire.canal_packet(wire.fields({1: header, 2: 2})))


def test_defaults_of_the_older_protocol_apply() -> None:
    """No entry type is ROWDATA, no event type UPDATE."""
    header = wire.fields({8: "s", 9: "t"})
    change = wire.fields({12: [wire.canal_row(row(1), row(1, "y"))]})
    packet = wire.canal_packet(wire.fields({1: header, 3: change}))
    assert FORMAT.peek(packet).kind is Kind.ROWS
    assert decoded(packet)["name"] == ["y"]


def test_a_statement_in_an_entry_of_rows_is_refused() -> None:
    """It would be passed over: the entry has no rows."""
    header = wire.fields({8: "s", 9: "t", 11: 1})
    entry = wire.fields({1: header, 2: 2, 3: wire.fields({2: 1, 10: True, 11: "DROP TABLE t"})})
    with pytest.raises(BadRecord, match=r"s\.t: a statement"):
        decoded(wire.canal_packet(entry))


def test_a_value_that_does_not_fit_names_column_expected_and_got() -> None:
    """And the first bad record wins, also over one that can't be read at all."""
    bad = wire.canal_column("id", "x1", "int(11)", key=True)
    packet = wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), [bad])]))
    with pytest.raises(BadRecord, match=r"s\.t: id: 'x1' is not an int\(11\)") as caught:
        decoded(wire.canal_packet(inserts(1)), packet, b"\xff")
    assert caught.value.index == 1


def test_tables_of_one_packet_are_taken_apart_in_their_order() -> None:
    """Each entry makes a packet of its own again."""
    packet = wire.canal_packet(inserts(1, table="a"), inserts(2, table="b"), inserts(3, table="a"))
    assert isinstance(FORMAT, MultiEntry)
    assert FORMAT.peek(packet).kind is Kind.MULTI_ENTRY
    entries = FORMAT.entries(packet)
    assert [entry.table.table for entry in entries] == ["a", "b", "a"]
    mine = FORMAT.joined(packet, [p.data for p in entries if p.table.table == "a"])
    assert FORMAT.peek(mine) == (Kind.ROWS, TableName("s", "a"))
    assert decoded(mine)["id"] == [1, 3]


def test_a_statement_is_told_by_its_flag() -> None:
    """A QUERY with isDdl is DDL; one without is a remark, never executed."""
    assert FORMAT.peek(wire.canal_packet(wire.canal_ddl("QUERY", "DROP TABLE t"))).kind is Kind.DDL
    remark = wire.canal_rows("QUERY", [])
    assert FORMAT.peek(wire.canal_packet(remark)).kind is Kind.NOTHING


def test_the_sessions_database_is_beside_that_of_the_new_name() -> None:
    """So names across databases can all be told; an old Canal tells none, and that is refused."""
    sql = "RENAME TABLE orders TO archive.x, fresh TO orders"
    told = FORMAT.ddl(wire.canal_packet(wire.canal_ddl("QUERY", sql, "x", "archive", "shop")))
    assert {str(ddl.table) for ddl in told} == {"shop.orders", "archive.x", "shop.fresh"}
    assert not any(ddl.refused for ddl in told)
    old = FORMAT.ddl(wire.canal_packet(wire.canal_ddl("QUERY", sql, "x", "archive", "")))
    assert all("session's is not told" in str(ddl.refused) for ddl in old)


def test_many_rows_keep_their_order_over_blocks() -> None:
    """Blocks of columns close in the midst of an event and between a key's end and its new row."""
    events = [wire.canal_packet(inserts(*range(at, at + 100))) for at in range(0, 700, 100)]
    moves = [wire.canal_row(row(n), row(n + 1000)) for n in range(700)]
    found = decoded(*events, wire.canal_packet(wire.canal_rows("UPDATE", moves)))
    assert found["id"][:700] == list(range(700))
    assert found["id"][700::2] == list(range(700))
    assert found["id"][701::2] == list(range(1000, 1700))
    assert found["__binlogd_from"][701::2] == list(range(700, 2100, 2))


def test_a_minimal_update_of_a_part_of_the_key() -> None:
    """The other part is in the old row alone, and belongs to the key all the same."""

    def key(a: int, b: int) -> list[bytes]:
        pair = (("a", a), ("b", b))
        return [wire.canal_column(name, str(n), "int(11)", key=True) for name, n in pair]

    moved = wire.canal_row(key(1, 7), key(2, 7)[:1])
    values = [wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), key(1, 7))]))]
    found = decoded(*values, wire.canal_packet(wire.canal_rows("UPDATE", [moved])))
    rows = list(zip(found["__binlogd_op"], found["a"], found["b"], strict=True))
    assert rows == [("U", 1, 7), ("D", 1, 7), ("U", 2, 7)]


def test_a_statement_binlog_is_refused() -> None:
    """It changed rows, and does not say which."""
    header = wire.fields({8: "s", 9: "t", 11: 1})
    change = wire.fields({2: 1, 10: False, 11: "INSERT INTO t VALUES (1)"})
    packet = wire.canal_packet(wire.fields({1: header, 2: 2, 3: change}))
    with pytest.raises(BadRecord, match=r"s\.t: a statement without rows"):
        decoded(packet)


def test_rows_in_an_entry_that_has_none_are_refused() -> None:
    """They would be passed over with it."""
    packet = wire.canal_packet(wire.canal_rows("QUERY", [wire.canal_row((), row(1))]))
    with pytest.raises(BadMessage, match=r"s\.t: rows in an entry of type QUERY"):
        FORMAT.peek(packet)
