"""GoldenGate's messages: rows by their images, key changes, truncation."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import RowChange, Statement
from changes.model.model import (
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    BadMessage,
    BadRecord,
    Ddl,
    FormatOptions,
    Kind,
    Mode,
    TableName,
    TruncateTable,
)
from changes.routes.fold import fold
from tests.changes.formats.json_messages import Number, decode, made, ogg, rows

OGG = "ogg-json"
ORDERS = TableName("SHOP", "ORDERS")


def explained(value: bytes) -> RowChange:
    (change,) = made(OGG).explain(value)
    assert isinstance(change, RowChange)
    return change


def test_rows() -> None:
    """An insert has its row after, a delete before, an update both."""
    found = rows(
        OGG,
        ogg("I", {"id": 1, "v": Number("1.50")}),
        ogg("U", {"id": 1, "v": None}, {"id": 1, "v": Number("1.50")}),
        ogg("D", None, {"id": 1, "v": None}),
    )
    assert [(row[OP], row["id"], row["v"]) for row in found] == [
        ("U", "1", "1.50"),
        ("U", "1", None),
        ("D", "1", None),
    ]


def test_explicit_null_images() -> None:
    """An image that is null is one that is not there."""
    value = ogg("D", None, {"id": 1})[:-1] + b',"after":null}'
    assert rows(OGG, ogg("I", {"id": 1}), value, value)[1][OP] == "D"


@pytest.mark.parametrize("op", ["U", "PK"])
def test_key_change(op: str) -> None:
    """Another key after than before: the old one ends, the new one has the row."""
    value = ogg(op, {"id": 2, "v": "x"}, {"id": 1, "v": "x"})
    changes = decode(OGG, value, value)
    found = changes.table.to_pylist()
    assert [(row[OP], row["id"]) for row in found] == [("D", "1"), ("U", "2")] * 2
    assert found[1][FROM_PREFIX + "id"] == "1"
    assert changes.count == 2
    assert explained(value).before == {"id": 1, "v": "x"}


def test_partial_key_change_in_one_batch() -> None:
    """What a changed key's row lacks is what the old key's row had."""
    values = [
        ogg("I", {"id": 1, "a": 1, "b": 2}),
        ogg("U", {"id": 2, "a": 5}, {"id": 1, "a": 1}),
    ]
    changes = decode(OGG, *values)
    found = {row["id"]: row for row in fold(changes.table, changes.schema.keys).to_pylist()}
    assert (found["2"]["a"], found["2"]["b"]) == ("5", "2")
    assert found["1"][OP] == "D"


def test_column_that_an_update_lacks_keeps_its_value() -> None:
    """A compressed update has the key and what changed; what it lacks is unchanged, not null."""
    found = rows(OGG, ogg("I", {"id": 1, "a": 1}), ogg("U", {"id": 1}, {"id": 1, "a": 1}))
    assert (found[1]["a"], found[1][HAS_PREFIX + "a"]) == (None, False)


def test_delete_that_holds_only_the_key() -> None:
    """The key is all that a delete needs."""
    found = rows(OGG, ogg("I", {"id": 1, "a": 1}), ogg("D", None, {"id": 1}))
    assert found[1][OP] == "D"


def test_changelog() -> None:
    """Without a key each change is a row: after for I and U, before for D."""
    values = [
        ogg("I", {"a": 1}, primary_keys=None),
        ogg("U", {"a": 2}, {"a": 1}, primary_keys=None),
        ogg("D", None, {"a": 2}, primary_keys=None),
    ]
    changes = decode(OGG, *values)
    assert changes.mode is Mode.APPEND
    found = [(row["_op"], row["a"]) for row in changes.table.to_pylist()]
    assert found == [("I", "1"), ("U", "2"), ("D", "2")]


def test_truncate() -> None:
    """T is a statement: no row is left."""
    format_ = made(OGG)
    assert format_.peek(ogg("T")).kind is Kind.DDL
    sql = "TRUNCATE TABLE SHOP.ORDERS"
    assert format_.ddl(ogg("T")) == (Ddl(ORDERS, sql, (TruncateTable(),)),)
    assert format_.explain(ogg("T")) == (Statement(ORDERS, sql, 1589384406000),)


@pytest.mark.parametrize(
    ("name", "table"),
    [("S.T", TableName("S", "T")), ("PDB.S.T", TableName("PDB.S", "T"))],
)
def test_table_names(name: str, table: TableName) -> None:
    """The last part is the table, what comes before it the schema, with its container."""
    assert made(OGG).peek(ogg("I", {"id": 1}, table=name)).table == table


def test_table_without_a_schema() -> None:
    """It needs the option that names one."""
    value = ogg("I", {"id": 1}, table="T")
    assert made(OGG, default_database="S").peek(value).table == TableName("S", "T")
    with pytest.raises(BadMessage, match=r"table 'T': SCHEMA\.TABLE is required"):
        made(OGG).peek(value)


@pytest.mark.parametrize("value", [None, b""])
def test_tombstone(value: bytes | None) -> None:
    """Nothing to apply."""
    assert [head.kind for head in made(OGG).heads([value])] == [Kind.NOTHING]
    assert made(OGG).explain(value) == ()


@pytest.mark.parametrize(
    ("op_ts", "ts_ms"),
    [
        ("2020-05-13 15:40:06.123456", 1589377206123),
        ("2020-05-13T15:40:06.000000", 1589377206000),
        ("2020-05-13T15:40:06Z", 1589384406000),
        ("", None),
        (None, None),
    ],
)
def test_moment(op_ts: Any, ts_ms: int | None) -> None:
    """The database's clock is read in the configured zone, unless it says its own."""
    format_ = FORMATS[OGG](FormatOptions(time_zone="Europe/Amsterdam"))
    (change,) = format_.explain(ogg("I", {"id": 1}, op_ts=op_ts))
    assert change.ts_ms == ts_ms


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[", "not a GoldenGate message"),
        (b'{"table":"S.T","op_type":"X"}', "of unknown op_type 'X'"),
        (b'{"table":"S.T"}', "without op_type"),
    ],
)
def test_bad_messages(value: bytes, reason: str) -> None:
    """What is no message of GoldenGate's is refused with what is wrong."""
    with pytest.raises(BadMessage, match=reason):
        list(made(OGG).heads([value]))


@pytest.mark.parametrize(("op", "image"), [("I", "after"), ("U", "after"), ("D", "before")])
def test_message_without_its_image(op: str, image: str) -> None:
    """A change whose row is not there is refused, also behind good ones."""
    said = rf"SHOP\.ORDERS: a message of op_type {op} without {image}"
    with pytest.raises(BadRecord, match=said) as error:
        decode(OGG, ogg("I", {"id": 1}), ogg("I", {"id": 2}), ogg(op))
    assert error.value.index == 2
