"""Tencent DTS's messages of several parts and tables, and what shards say of them."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import Chunked, MultiEntry, pack
from changes.model.model import FormatOptions, Kind, Mode, TableName
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.tencent.cases import inserts, record

FORMAT = FORMATS["tencent-dts"](FormatOptions())


def decoded(value: bytes) -> dict[str, list[Any]]:
    changes = FORMAT.table_decoder(Mode.UPSERT, None).decode(0, [0], [value])
    assert changes is not None
    return dict(changes.table.to_pydict())


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
