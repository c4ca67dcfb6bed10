"""What a Debezium record is: envelopes, tombstones, flattened rows, side topics."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import RowChange, Statement, pack
from changes.model.model import (
    OP,
    BadMessage,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
    TruncateTable,
)
from tests.changes.formats.debezium.messages import (
    FORMAT,
    MYSQL,
    POSTGRES,
    change,
    decode,
    dumps,
    envelope,
    key_with_schema,
    record,
    rows,
    structure,
    typed,
    wrapped,
)

ORDERS = TableName("shop", "orders")
ROWS = Head(Kind.ROWS, ORDERS)
NOTHING = Head(Kind.NOTHING, None)
ROW = {"id": 1, "name": "a"}
FIELDS = {"id": "int32", "name": "string"}


@pytest.mark.parametrize(
    "value",
    [
        envelope("c", ROW),
        wrapped(envelope("c", ROW), FIELDS),
        {"schema": None, "payload": envelope("c", ROW)},
        {"payload": envelope("c", ROW), "schema": None},
        {"payload": envelope("c", ROW)},
    ],
)
def test_with_and_without_schema(value: Any) -> None:
    """Envelopes are the same change, however they are wrapped."""
    assert FORMAT.peek(record(value)) == ROWS
    (told,) = FORMAT.explain(record(value, {"id": 1}))
    assert told == RowChange(ORDERS, "I", {"id": 1}, None, ROW, 1589373515000)
    assert [row["name"] for row in rows(record(value, {"id": 1}))] == ["a"]


@pytest.mark.parametrize(
    ("op", "letter"), [("c", "U"), ("r", "U"), ("C", "U"), ("u", "U"), ("d", "D")]
)
def test_ops(op: str, letter: str) -> None:
    """Creates, snapshot reads and updates set a row, deletes end it; case does not matter."""
    value = change(op, None if op == "d" else ROW, ROW if op in "du" else None)
    assert FORMAT.peek(value) == ROWS
    assert [row[OP] for row in rows(value)] == [letter]


def test_an_unknown_op_is_refused() -> None:
    """It may be a change that we would lose."""
    with pytest.raises(BadMessage, match="unknown op 'x'"):
        FORMAT.peek(change("x", ROW))


@pytest.mark.parametrize("source", [MYSQL, POSTGRES])
def test_truncate(source: Any) -> None:
    """It is a statement about its table; its record has no key and no images."""
    value = record({"source": source, "op": "t", "ts_ms": 1})
    assert FORMAT.peek(value) == Head(Kind.DDL, None)
    (ddl,) = FORMAT.ddl(value)
    assert (ddl.table, ddl.steps, ddl.refused) == (ORDERS, (TruncateTable(),), None)
    (told,) = FORMAT.explain(value)
    assert told == Statement(ORDERS, "TRUNCATE TABLE shop.orders", 1589373515000)


SIDE_TOPICS: dict[str, Any] = {
    "message": {"op": "m", "source": {**POSTGRES, "table": ""}, "message": {"prefix": "p"}},
    "begin": {"status": "BEGIN", "id": "571:5", "ts_ms": 1, "event_count": None},
    "end": {"status": "END", "id": "571:5", "event_count": 2, "data_collections": []},
    "heartbeat": {"ts_ms": 1486500577125},
    "heartbeat with schema": {"schema": {"type": "struct"}, "payload": {"ts_ms": 1}},
    "ddl of a database without our dialect": {
        "source": {"connector": "oracle"}, "databaseName": "X", "ddl": "ALTER TABLE t ADD (a INT)",
    },
}  # fmt: skip


@pytest.mark.parametrize("value", SIDE_TOPICS.values(), ids=SIDE_TOPICS)
def test_nothing_to_apply(value: Any) -> None:
    """Transaction marks, heartbeats, logical messages move the position."""
    assert FORMAT.peek(record(value)) == NOTHING
    assert FORMAT.explain(record(value)) == ()


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


FLAT = {"id": 1, "name": "a", "__op": "c", "__table": "orders", "__db": "shop",
        "__deleted": "false", "__source_ts_ms": 1589373515000}  # fmt: skip


def test_flattened_rows() -> None:
    """The columns alone; what the transformation added tells table, op and time."""
    value = record(FLAT, {"id": 1})
    assert FORMAT.peek(value) == ROWS
    assert rows(value) == [{OP: "U", "id": "1", "name": "a"}]
    assert FORMAT.explain(value) == (RowChange(ORDERS, "I", {"id": 1}, None, ROW, 1589373515000),)


def test_flattened_rows_with_schema() -> None:
    """Their schema is the row's; what was added is no column."""
    added = {"__op": "string", "__table": "string", "__db": "string", "__deleted": "string",
             "__source_ts_ms": "int64"}  # fmt: skip
    value = {"schema": structure("s.shop.orders.Value", FIELDS | added), "payload": FLAT}
    assert rows(record(value, {"id": 1})) == [{OP: "U", "id": 1, "name": "a"}]
    unnamed = {k: v for k, v in FLAT.items() if k not in ("__table", "__db")}
    assert FORMAT.peek(record({**value, "payload": unnamed})) == ROWS


def test_flattened_deletes() -> None:
    """A row that is marked deleted, or the tombstone that takes its place."""
    gone = {**FLAT, "name": None, "__deleted": "true", "__op": "d"}
    assert rows(record(gone, {"id": 1})) == [{OP: "D", "id": "1"}]


def test_a_marked_row_needs_a_table() -> None:
    """Nothing in it names one: only the configuration can."""
    marked = record(ROW | {"__deleted": "false"})
    with pytest.raises(BadMessage, match="no default_database and default_table is set"):
        FORMAT.peek(marked)
    named = {"default_database": "shop", "default_table": "orders"}
    assert DebeziumJson(FormatOptions(extra=named)).peek(marked) == ROWS


@pytest.mark.parametrize(
    ("source", "table"),
    [
        (MYSQL, "shop.orders"),
        (POSTGRES, "shop.orders"),
        ({"connector": "sqlserver", "db": "d", "schema": "dbo", "table": "t"}, "d.dbo.t"),
        ({"connector": "oracle", "db": "ORCL", "schema": "HR", "table": "T"}, "HR.T"),
    ],
)
def test_tables_are_named_by_what_holds_them(source: Any, table: str) -> None:
    """The schema where there is one, else the database; SQL Server's connector has several."""
    assert str(FORMAT.peek(change("c", ROW, source=source)).table) == table


def test_documents_of_mongodb_are_refused() -> None:
    """Their images are text; the reason says what they are."""
    source = {"connector": "mongodb", "db": "d", "collection": "c"}
    with pytest.raises(BadMessage, match="MongoDB"):
        FORMAT.peek(change("c", '{"_id": 1}', key={"id": "1"}, source=source))


@pytest.mark.parametrize(
    "value", [b"[]", b"1", b'"x"', b"{", b"\xff", b'{"op":"c","source":3,"after":null}', b"{}"]
)
def test_what_is_no_record_is_refused(value: bytes) -> None:
    """In one line, without a position."""
    with pytest.raises(BadMessage):
        FORMAT.peek(pack(None, value))


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
    added = {"__op": "string", "__table": "string", "__db": "string", "__deleted": "string",
             "__source_ts_ms": "int64"}  # fmt: skip
    schema = structure("s.shop.orders.Value", FIELDS | added)

    def flat(number: int, **others: Any) -> bytes:
        row = {**FLAT, "id": number, **others}
        value = {"schema": schema, "payload": row} if with_schema else row
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
