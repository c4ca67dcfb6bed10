"""Tombstones: each repeats a delete. One whose delete is not known ends a row only where its key
tells the table beyond doubt; else that is said, and nothing is done."""

from __future__ import annotations

import random
from typing import Any

import pytest

from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import mark_of
from changes.model.model import BadMessage, FormatOptions, Head, Kind, TableName
from tests.changes.formats.debezium.messages import (
    MYSQL,
    envelope,
    key_with_schema,
    record,
    structure,
    wrapped,
)

FIELDS = {"id": "int32"}
BLANK, PLAIN = "a b", "a_b"
PASSED, NOTHING = Kind.PASSED_OVER, Kind.NOTHING
DEFAULT = {"default_database": "shop", "default_table": "a_b"}


def fresh(**extra: str) -> DebeziumJson:
    """A format that knows nothing, as after a restart."""
    return DebeziumJson(FormatOptions(extra=extra))


def stem(table: str) -> str:
    """What Debezium makes of a MySQL table's name: all but a few signs become ``_``."""
    kept = "".join(s if s.isascii() and (s.isalnum() or s in "._-") else "_" for s in table)
    return f"s.shop.{kept}"


def key(table: str, number: int, *, schema: bool = True) -> dict[str, Any]:
    """A record key, with its schema or without."""
    return key_with_schema({"id": number}, FIELDS, stem(table)) if schema else {"id": number}


def change(op: str, table: str, number: int = 1, *, schema: bool = True) -> bytes:
    """An envelope of one of the tables."""
    row, source = {"id": number}, {**MYSQL, "table": table}
    value = envelope(op, None if op == "d" else row, row if op == "d" else None, source)
    held = wrapped(value, FIELDS, stem(table)) if schema else value
    return record(held, key(table, number, schema=schema))


def tombstone(table: str, number: int = 1, *, schema: bool = True) -> bytes:
    """What follows a delete."""
    return record(None, key(table, number, schema=schema))


def flat(table: str, number: int = 1, **members: Any) -> bytes:
    """A row of ExtractNewRecordState with ``add.fields=table,db``."""
    row = {"id": number, "__table": table, "__db": "shop", **members}
    schema = structure(f"{stem(table)}.Value", FIELDS | {"__table": "string", "__db": "string"})
    return record({"schema": schema, "payload": row}, key(table, number))


def rows_of(table: str) -> Head:
    return Head(Kind.ROWS, TableName("shop", table))


def kinds(format_: DebeziumJson, *values: bytes) -> list[Kind]:
    return [head.kind for head in format_.heads(values)]


@pytest.mark.parametrize("schema", [True, False])
def test_a_tombstone_repeats_its_delete(schema: bool) -> None:
    """Deletes of one table ended rows of another whose key schema has the same name."""
    values = [
        change("c", BLANK, schema=schema), change("c", PLAIN, schema=schema),
        change("d", BLANK, schema=schema), tombstone(BLANK, schema=schema),
    ]  # fmt: skip
    heads = list(fresh().heads(values))
    assert heads[2] == rows_of(BLANK)
    assert heads[3].kind is NOTHING


def test_a_tombstone_in_a_later_poll() -> None:
    """Whatever was between, of this table and others."""
    format_ = fresh()
    between = [change("u", PLAIN, n) for n in range(2000)]
    assert kinds(format_, change("d", BLANK)) == [Kind.ROWS]
    assert kinds(format_, *between, tombstone(BLANK))[-1] is NOTHING


def test_several_deletes_before_their_tombstones() -> None:
    """Several connectors write to one partition: batches of theirs meet."""
    deletes = [change("d", table, n) for table in (BLANK, PLAIN) for n in range(50)]
    ends = [tombstone(BLANK, n) for n in range(50)]
    assert set(kinds(fresh(), *deletes, *ends)[100:]) == {NOTHING}


def test_a_replayed_delete() -> None:
    """Connect repeats what it had sent, delete and tombstone; each tombstone has its delete."""
    pair = [change("d", BLANK), tombstone(BLANK)]
    assert kinds(fresh(), *pair, *pair) == [Kind.ROWS, NOTHING] * 2


@pytest.mark.parametrize("table", [BLANK, PLAIN, "Blank Table", "ä", "a$b", "x.y", ""])
@pytest.mark.parametrize("others", [(), (PLAIN,), (BLANK,), (PLAIN, BLANK)])
def test_without_its_delete_a_doubtful_name_is_no_table(
    table: str, others: tuple[str, ...]
) -> None:
    """After a restart, or where the log was compacted: the other one may just not have come yet."""
    values = [*(change("c", other) for other in others), tombstone(table)]
    format_ = fresh()
    assert list(format_.heads(values))[-1] == Head(PASSED, None)
    assert "is not known" in format_.why_passed_over(values[-1])


def test_without_its_delete_a_name_beyond_doubt_is_the_table() -> None:
    """On a compacted topic it may be all that is left of the delete."""
    assert fresh().peek(tombstone("orders")) == rows_of("orders")
    assert list(fresh().heads([change("c", "orders"), tombstone("orders")]))[1] == rows_of("orders")


@pytest.mark.parametrize(
    "name",
    [
        "p.db.dbo.orders.Key",  # SQL Server, or a prefix with a dot
        "my.prefix.shop.orders.Key",
        "shop.orders.Key",
        "p.shop.orders.Value",
        "p.shop.orders",
        "p.shop..Key",
        "p..orders.Key",
        f"p.{'x' * 124}.{'y' * 124}.Key",  # cut by Debezium
        "p.shop.naïve.Key",
        "p.shop.a_b.Key",
    ],
)
def test_names_that_are_no_table_for_sure(name: str) -> None:
    """Nothing is made of them: no table, no namespace, no lane."""
    value = record(None, key_with_schema({"id": 1}, FIELDS, name.removesuffix(".Key")))
    if not name.endswith(".Key"):
        value = record(None, {"schema": structure(name, FIELDS), "payload": {"id": 1}})
    assert fresh().peek(value) == Head(PASSED, None)


def test_a_key_schema_that_came_with_another_table() -> None:
    """A transformation merges topics: its names are those of no table, or of a wrong one."""
    source = {**MYSQL, "table": "customers1"}
    name = "s.shop.customers"
    row = record(
        wrapped(envelope("c", {"id": 1}, None, source), FIELDS, name),
        key_with_schema({"id": 1}, FIELDS, name),
    )
    end = record(None, key_with_schema({"id": 1}, FIELDS, name))
    format_ = fresh()
    assert list(format_.heads([row, end]))[1] == Head(PASSED, None)
    assert "shop.customers1" in format_.why_passed_over(end)
    marked = {"id": 1, "__dbz__physicalTableIdentifier": "s.shop.customers1"}
    fields = FIELDS | {"__dbz__physicalTableIdentifier": "string"}
    assert fresh().peek(record(None, key_with_schema(marked, fields, name))).kind is PASSED


def test_deletes_of_another_partition_do_not_count() -> None:
    """Keys without schema are alike in all topics: a compacted one lacks the delete."""
    format_ = fresh()
    format_.turn_to("orders:0", 0, 0)
    format_.peek(change("d", "orders", schema=False))
    format_.turn_to("items:0", 0, 0)
    assert format_.peek(tombstone("items", schema=False)).kind is PASSED
    format_.turn_to("orders:0", 0, 0)
    assert format_.peek(tombstone("orders", schema=False)).kind is NOTHING


def test_auto_keeps_partitions_apart_too() -> None:
    """The formats told from messages are one object each, for all topics."""
    format_, mark = AutoFormat(FormatOptions()), mark_of("debezium-json")
    format_.turn_to("orders:0", 0, 0)
    format_.peek(mark + change("d", "orders", schema=False))
    format_.turn_to("items:0", 0, 0)
    end = mark + tombstone("items", schema=False)
    assert format_.peek(end).kind is PASSED
    assert "is not known" in format_.why_passed_over(end)
    format_.turn_to("orders:0", 0, 0)
    assert format_.peek(mark + tombstone("orders", schema=False)).kind is NOTHING


@pytest.mark.parametrize("end", [record(None, None), record(None, "x"), record(None, {})])
def test_a_tombstone_without_a_key(end: bytes) -> None:
    """A table without a key has none; what else it may be can't be told."""
    assert fresh().peek(end).kind is (NOTHING if end == record(None, None) else PASSED)


# --- the table that the configuration names


def test_the_configured_table_gets_what_may_be_its_own() -> None:
    """The name says that it may be, or no name is there; a table of the same name is a doubt."""
    named = fresh(**DEFAULT)
    assert named.peek(tombstone(PLAIN)) == rows_of(PLAIN)
    assert named.peek(tombstone("c_d")).kind is PASSED
    assert named.peek(tombstone("orders")) == rows_of("orders")
    named.peek(change("c", BLANK))
    assert named.peek(tombstone(PLAIN)).kind is PASSED


def test_a_key_without_schema_may_be_of_a_table_whose_rows_have_not_come() -> None:
    """After a restart a tombstone of another table would end a row of the configured one."""
    first = tombstone(PLAIN, schema=False)
    with pytest.raises(BadMessage, match=r'tombstones = "delete"'):
        fresh(**DEFAULT).peek(first)
    assert fresh(**DEFAULT, tombstones="delete").peek(first) == rows_of(PLAIN)
    flattened = fresh(**DEFAULT)
    flattened.peek(flat(PLAIN))
    assert flattened.peek(first) == rows_of(PLAIN)
    flattened.peek(change("c", BLANK))
    with pytest.raises(BadMessage, match="no schema"):
        flattened.peek(first)


# --- streams whose deletes are tombstones alone


def test_flattened_rows_whose_deletes_are_tombstones_are_refused() -> None:
    """What is passed over there is a delete: no warning would do."""
    format_ = fresh()
    format_.peek(flat("a_b"))
    with pytest.raises(BadMessage, match=r'tombstones = "delete"'):
        format_.peek(tombstone("a_b"))
    with pytest.raises(BadMessage, match="default_table"):
        format_.peek(tombstone("a_b", schema=False))


def test_flattened_deletes_have_tombstones_too() -> None:
    """Where the connector rewrites deletes and keeps the tombstones."""
    gone = flat("a_b", __deleted="true"), flat("a_b", 2, __op="d"), flat("a_b", 3, __deleted=True)
    ends = [tombstone("a_b", n) for n in (1, 2, 3)]
    assert kinds(fresh(), flat("a_b", 9), *gone, *ends)[4:] == [NOTHING] * 3


def test_tombstones_that_are_deletes_by_configuration() -> None:
    """Then a name stands for the table, as far as what came does not gainsay it."""
    format_ = fresh(tombstones="delete")
    assert format_.peek(tombstone("a_b")) == rows_of("a_b")
    format_.peek(flat("a_b"))
    assert format_.peek(tombstone("a_b")) == rows_of("a_b")
    format_.peek(flat(BLANK))
    with pytest.raises(BadMessage, match=r"shop\.a b and shop\.a_b"):
        format_.peek(tombstone("a_b"))
    with pytest.raises(BadMessage, match="default_table"):
        format_.peek(tombstone("a_b", schema=False))
    format_.peek(flat("a_b", __deleted="true"))
    assert format_.peek(tombstone("a_b")).kind is NOTHING


def test_tombstones_tell_no_position() -> None:
    """Among rows in the source's order nobody knows where one belongs."""
    format_ = fresh(positions="postgres-lsn")
    assert format_.peek(tombstone("orders")).kind is PASSED
    assert "position" in format_.why_passed_over(tombstone("orders"))
    named = fresh(positions="postgres-lsn", **DEFAULT)
    assert named.peek(tombstone("a_b", schema=False)).kind is PASSED


def test_people_are_shown_a_delete_once() -> None:
    """A doubtful tombstone is said to be one, and no table is made up for it."""
    format_ = fresh()
    assert len(format_.explain(change("d", BLANK))) == 1
    assert format_.explain(tombstone(BLANK)) == ()
    with pytest.raises(BadMessage, match="is not known"):
        format_.explain(tombstone(BLANK))
    (told,) = format_.explain(tombstone("orders"))
    assert told.table == TableName("shop", "orders")


# --- in any order


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_no_tombstone_ends_what_its_delete_did_not(seed: int, schema: bool) -> None:
    """Restarts anywhere, several producers in two partitions, deletes that compaction removed.

    What is followed is the table's own, and nothing is passed over in silence whose delete was
    not there.
    """
    chance = random.Random(seed)
    tables = (BLANK, PLAIN, "orders", "a-b")
    format_ = fresh()
    waiting: list[tuple[str, str, int, bool]] = []
    for step in range(400):
        partition = chance.choice(("p:0", "p:1"))
        if chance.random() < 0.03:
            format_ = fresh()
        format_.turn_to(partition, 0, 0)
        if waiting and chance.random() < 0.6:
            place, table, number, was_read = waiting.pop(0)
            format_.turn_to(place, 0, 0)
            head = format_.peek(tombstone(table, number, schema=schema))
            assert head in (Head(NOTHING, None), Head(PASSED, None), rows_of(table))
            assert was_read or head.kind is not NOTHING
        elif chance.random() < 0.3:
            # One key at a time: compaction of a topic whose tables share keys loses rows itself.
            table, was_read = chance.choice(tables), chance.random() < 0.8
            if was_read:
                format_.peek(change("d", table, step, schema=schema))
            waiting.append((partition, table, step, was_read))
        else:
            format_.peek(change("c", chance.choice(tables), step, schema=schema))
