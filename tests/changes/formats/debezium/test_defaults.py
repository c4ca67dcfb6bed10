"""Defaults that a schema block tells: Kafka Connect may have written them where NULL stands.

And those of BINARY, which Debezium fills up with zero bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.column_changes import ColumnChange
from changes.model.model import AddColumn, FormatOptions, Mode
from tests.changes.formats.debezium.messages import (
    FORMAT,
    envelope,
    field,
    key_with_schema,
    record,
    wrapped,
)

FIELDS = {"id": "int32", "n": "double"}
FILLED = ColumnChange(
    "filled", "n", "column n has a default, and a NULL may have come as that", "shop.orders"
)


def with_defaults(
    op: str, defaults: Mapping[str, Any], row: Mapping[str, Any], **others: Any
) -> bytes:
    """A change of a row whose schema names these columns' defaults; ``others`` are each field's."""
    value = wrapped(envelope(op, *((None, row) if op == "d" else (row, None))), FIELDS)
    for struct in value["schema"]["fields"][:2]:
        struct["fields"] = [
            field(name, kind) | ({"default": defaults[name]} | others if name in defaults else {})
            for name, kind in FIELDS.items()
        ]
    return record(value, key_with_schema({"id": row["id"]}, {"id": "int32"}))


def changes_of(*groups: tuple[bytes, ...], mode: Mode = Mode.UPSERT) -> list[ColumnChange]:
    """What one decoder tells, called once for each group."""
    decoder = DebeziumJson(FormatOptions()).table_decoder(mode, None)
    found: list[ColumnChange] = []
    for group in groups:
        assert decoder.decode(0, range(len(group)), group) is not None
        found += decoder.take_column_changes()
    return found


ROW = {"id": 1, "n": 123456789.125}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("op", ["c", "d"])
def test_an_optional_column_with_a_default_is_told_once(mode: Mode, op: str) -> None:
    """Whatever the value is: the first NULL may be the next row's."""
    records = [with_defaults(op, {"n": 123456789.125}, ROW | {"id": n}) for n in range(3)]
    assert changes_of((records[0],), (records[1], records[2]), mode=mode) == [FILLED]


@pytest.mark.parametrize("default", [0, "", False, "AAE=", {"a": 1}])
def test_any_default_but_null_counts(default: Any) -> None:
    """Also what a language might take for nothing."""
    assert changes_of((with_defaults("c", {"n": default}, ROW),)) == [FILLED]


def test_a_default_of_null_fills_nothing() -> None:
    """Nor is there a NULL in a column that takes none."""
    assert changes_of((with_defaults("c", {"n": None}, ROW),)) == []
    assert changes_of((with_defaults("c", {"n": 1.5}, ROW, optional=False),)) == []
    assert changes_of((with_defaults("c", {}, ROW),)) == []


def test_a_default_that_comes_later_is_told() -> None:
    """SET DEFAULT: the types are the same, the schema is another."""
    first, second = with_defaults("c", {}, ROW), with_defaults("u", {"n": 1.5}, ROW)
    assert changes_of((first,), (second,)) == [FILLED]


def test_a_null_in_the_record_that_tells_the_schema_shows_that_nulls_come() -> None:
    """``replace.null.with.default = false``: the schema's defaults say nothing then."""
    sent = with_defaults("c", {"n": 1.5}, {"id": 1, "n": None})
    assert changes_of((sent,), (with_defaults("c", {"n": 1.5}, ROW),)) == []


@pytest.mark.parametrize("optional", ["yes", 1, None, {}])
def test_a_schema_that_says_it_otherwise_is_read_as_before(optional: Any) -> None:
    """What is not Connect's word for it is no reason to refuse rows."""
    assert changes_of((with_defaults("c", {"n": 1.5}, ROW, optional=optional),)) == []


BINARIES = [
    ("BINARY(4) NOT NULL", bytes(4)), ("BINARY NOT NULL", bytes(1)), ("BINARY(4)", None),
    ("CHAR(3) BYTE NOT NULL", bytes(3)), ("VARBINARY(4) NOT NULL", b""),
    ("BINARY(4) DEFAULT x'22'", b"\x22\0\0\0"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "stored"), BINARIES)
def test_stored_rows_of_an_added_binary_are_as_those_that_come(
    definition: str, stored: Any
) -> None:
    """Debezium fills a BINARY up with zero bytes, which the binary log leaves away."""
    ddl = {"ddl": f"ALTER TABLE orders ADD c {definition}", "tableChanges": []}
    source = {"connector": "mysql", "db": "shop", "table": "orders"}
    (step,) = FORMAT.ddl(record({"source": source, "databaseName": "shop", **ddl}))[0].steps
    assert isinstance(step, AddColumn)
    assert step.default == stored
