"""Canal's protobuf packets: several tables, statements, many rows."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import MultiEntry
from changes.model.model import BadRecord, FormatOptions, Kind, Mode, TableName
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.canal.packets import inserts, row

FORMAT = FORMATS["canal-protobuf"](FormatOptions())


def decoded(*values: bytes, keys: tuple[str, ...] | None = None) -> dict[str, list[Any]]:
    changes = FORMAT.table_decoder(Mode.UPSERT, keys).decode(0, range(len(values)), values)
    assert changes is not None
    return dict(changes.table.to_pydict())


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
    assert all("session's is unknown" in str(ddl.refused) for ddl in old)


def test_many_rows_keep_their_order_over_blocks() -> None:
    """Blocks of columns close in the midst of an event and between a key's end and its new row."""
    events = [wire.canal_packet(inserts(*range(at, at + 100))) for at in range(0, 700, 100)]
    moves = [wire.canal_row(row(n), row(n + 1000)) for n in range(700)]
    found = decoded(*events, wire.canal_packet(wire.canal_rows("UPDATE", moves)))
    assert found["id"][:700] == list(range(700))
    assert found["id"][700::2] == list(range(700))
    assert found["id"][701::2] == list(range(1000, 1700))
    assert found["__binlogd_from"][701::2] == list(range(700, 2100, 2))
