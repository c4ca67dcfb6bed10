"""What a Debezium record is: envelopes, tombstones, flattened rows, side topics."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import RowChange, pack
from changes.model.model import (
    OP,
    BadMessage,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
)
from tests.changes.formats.debezium.cases import FIELDS, FLAT, FLAT_SCHEMA, ROW
from tests.changes.formats.debezium.messages import (
    FORMAT,
    MYSQL,
    decode,
    dumps,
    envelope,
    key_with_schema,
    record,
    rows,
    typed,
    wrapped,
)

ORDERS = TableName("shop", "orders")
ROWS = Head(Kind.ROWS, ORDERS)


def test_schema_changes_of_mysql() -> None:
    """The statement is read; one record may hold several, of several tables."""
    value = record(
        {
            "source": {**MYSQL, "table": "orders,items"},
            "databaseName": "shop",
            "ddl": "ALTER TABLE orders ADD a INT; ALTER TABLE items DROP b",
            "tableChanges": [],
        },
        {"databaseName": "shop"},
    )
    assert FORMAT.peek(value) == Head(Kind.DDL, None)
    found = FORMAT.ddl(value)
    assert [str(ddl.table) for ddl in found] == ["shop.orders", "shop.items"]
    assert all(ddl.steps and ddl.refused is None for ddl in found)


@pytest.mark.parametrize(
    "value", [None, b"", b"  ", b"null", b'{"schema":null,"payload":null}'], ids=repr
)
def test_tombstones(value: bytes | None) -> None:
    """In each of its shapes it ends the key; the key's schema tells the table."""
    key = dumps(key_with_schema({"id": 1}, {"id": "int32"}))
    fresh = DebeziumJson(FormatOptions())
    assert fresh.peek(pack(key, value)) == ROWS
    assert rows(pack(key, value)) == [{OP: "D", "id": 1}]
    assert fresh.explain(pack(key, value)) == (RowChange(ORDERS, "D", {"id": 1}, None, None, None),)


def test_a_tombstone_of_an_unknown_table_is_passed_over() -> None:
    """Without schema a key does not tell it."""
    for key in (b'{"id":1}', b"****"):
        assert DebeziumJson(FormatOptions()).peek(pack(key, None)) == Head(Kind.PASSED_OVER, None)


def test_a_tombstone_of_the_configured_table() -> None:
    """The options name the table of a topic whose keys have no schema."""
    named = {"default_database": "shop", "default_table": "orders", "tombstones": "delete"}
    format_ = DebeziumJson(FormatOptions(extra=named))
    value = pack(b'{"id":1}', None)
    assert format_.peek(value) == ROWS
    assert rows(value, extra=named) == [{OP: "D", "id": "1"}]


def test_a_tombstone_after_its_delete_adds_nothing() -> None:
    """A delete is one change; a tombstone alone, on a compacted topic, is one too."""
    delete = typed("d", FIELDS, None, ROW)
    tombstone = record(None, key_with_schema({"id": 1}, {"id": "int32"}))
    other = record(None, key_with_schema({"id": 2}, {"id": "int32"}))
    found = decode(delete, tombstone, other, typed("c", FIELDS, ROW), delete, tombstone)
    assert [(row[OP], row["id"]) for row in found.table.to_pylist()] == [
        ("D", 1), ("D", 2), ("U", 1), ("D", 1),
    ]  # fmt: skip
    assert found.count == 4


def test_changelogs_have_no_tombstones() -> None:
    """There the delete is listed, with the old row."""
    delete = typed("d", FIELDS, None, ROW)
    tombstone = record(None, key_with_schema({"id": 1}, {"id": "int32"}))
    found = decode(typed("c", FIELDS, ROW), delete, tombstone, mode=Mode.APPEND).table
    assert found.to_pylist() == [
        {"_op": "I", "_partition": 7, "_offset": 0, "_index": 0, **ROW},
        {"_op": "D", "_partition": 7, "_offset": 1, "_index": 0, **ROW},
    ]


def test_flattened_rows_with_schema() -> None:
    """The schema's name tells the table where the row does not."""
    unnamed = {k: v for k, v in FLAT.items() if k not in ("__table", "__db")}
    assert FORMAT.peek(record({"schema": FLAT_SCHEMA, "payload": unnamed})) == ROWS


def test_heads_tell_what_peek_tells() -> None:
    """Also where tables with schemas follow on one another, and records without."""
    values = [
        record(value)
        for name in ("a", "b", "a", "b")
        for value in (
            wrapped(envelope("c", ROW, source={**MYSQL, "table": name}), FIELDS, f"s.shop.{name}"),
            envelope("u", ROW, ROW, source={**MYSQL, "table": name}),
            {"ts_ms": 1},
        )
    ]
    fresh = DebeziumJson(FormatOptions())
    assert list(fresh.heads(values)) == [DebeziumJson(FormatOptions()).peek(v) for v in values]


def test_an_unpacked_value_is_told() -> None:
    """Nobody gives this format values alone."""
    with pytest.raises(BadMessage, match="not packed"):
        FORMAT.peek(None)


@pytest.mark.parametrize("with_schema", [False, True])
def test_many_flattened_rows(with_schema: bool) -> None:
    """Decoded as a block they are what they are one by one, be it among envelopes."""

    def flat(number: int, **others: Any) -> bytes:
        row = {**FLAT, "id": number, **others}
        value = {"schema": FLAT_SCHEMA, "payload": row} if with_schema else row
        return record(value, {"id": number})

    plain = envelope("c", {"id": 99, "name": "e"})
    other = record(wrapped(plain, FIELDS) if with_schema else plain, {"id": 99})
    values = [
        *(flat(number) for number in range(300)),
        flat(7, __op="d", __deleted="true", name=None),
        other,
        *(flat(number, name="b", __op="u") for number in range(300)),
        flat(8, __deleted=None, __op=None, name=None),
        flat(9, extra=1),
    ]
    together = rows(*values)
    decoder = FORMAT.table_decoder(Mode.UPSERT, None)
    alone = []
    for value in values:
        changes = decoder.decode(0, [0], [value])
        assert changes is not None
        alone += changes.table.to_pylist()
    told = [(row[OP], row["id"], row["name"]) for row in together]
    assert told == [(row[OP], row["id"], row["name"]) for row in alone]
    assert len(told) == len(values)
    assert told[300][0] == "D"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"type": "VARCHAR", "length": "32"}, "VARCHAR(32)"),
        ({"type": "DECIMAL", "length": "10", "scale": "2"}, "DECIMAL(10,2)"),
        ({"type": "INT UNSIGNED", "length": "10"}, "INT(10) UNSIGNED"),
        ({"type": "DATETIME"}, "DATETIME"),
        ({}, None),
    ],
)
def test_types_of_the_source_are_told_where_the_connector_passes_them_on(
    parameters: dict[str, str], words: str | None
) -> None:
    """By ``column.propagate.source.type``: what a statement makes of a column can be judged."""
    prefixed = {f"__debezium.source.column.{name}": text for name, text in parameters.items()}
    fields = FIELDS | {"name": ("string", None, prefixed)}
    decoder = FORMAT.table_decoder(Mode.UPSERT, ("id",))
    decoder.decode(0, [1], [record(wrapped(envelope("c", ROW), fields), {"id": 1})])
    assert decoder.declared_types == ({} if words is None else {"name": words})
