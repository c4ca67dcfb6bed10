"""Alibaba DTS's Avro records: both layouts, rows, values, statements."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.engine.format import RowChange, Statement
from changes.model.model import (
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    AddColumn,
    BadMessage,
    BadRecord,
    Column,
    Ddl,
    Kind,
    Mode,
    TableName,
    TruncateTable,
)
from changes.routes.fold import fold
from daemon.cli.decode import decode_files
from tests.changes.formats.avro_records import integer, long, record, text
from tests.changes.formats.json_messages import decode, made, rows
from tests.changes.formats.mutator import bad_place, mutants, read

AVRO = "aliyun-dts-avro"
ORDERS = TableName("shop", "orders")
ROW = [integer(1), text("a")]


def explained(value: bytes) -> RowChange:
    (change,) = made(AVRO).explain(value)
    assert isinstance(change, RowChange)
    return change


@pytest.mark.parametrize("born", [None, 0, 1696984408, -1])
def test_both_layouts(born: int | None) -> None:
    """A record may end with bornTimestamp, or before it."""
    value = record(after=ROW, born=born)
    assert made(AVRO).peek(value).table == ORDERS
    assert rows(AVRO, value, record(after=ROW)) == [{OP: "U", "id": 1, "name": "a"}] * 2


@pytest.mark.parametrize("rest", [b"\x00\x00", b"\x80", b"\x80" * 10 + b"\x00"])
def test_bytes_that_are_left(rest: bytes) -> None:
    """What follows the record and is no number is a third layout: refused, not passed over."""
    with pytest.raises(BadRecord, match="left behind the record, which are no bornTimestamp"):
        decode(AVRO, record(after=ROW) + rest)


def test_the_first_bad_record_is_reported() -> None:
    """Also where its value shows that only when its column is made."""
    misfit = record(after=[integer("x"), text("a")])
    with pytest.raises(BadRecord) as error:
        decode(AVRO, record(after=ROW), misfit, record(after=ROW) + b"\x00\x00")
    assert error.value.index == 1


def test_rows() -> None:
    """Inserts and updates are rows, a delete ends its key."""
    found = rows(
        AVRO,
        record("INSERT", ROW),
        record("UPDATE", [integer(1), "NULL"], ROW),
        record("DELETE", None, [integer(1), "NULL"]),
    )
    assert [(row[OP], row["id"], row["name"]) for row in found] == [
        ("U", 1, "a"),
        ("U", 1, None),
        ("D", 1, None),
    ]


def test_absent_is_not_null() -> None:
    """NONE keeps the stored value, NULL overwrites it."""
    values = [
        record("INSERT", ROW),
        record("UPDATE", [integer(1), "NONE"], [integer(1), "NONE"]),
    ]
    assert rows(AVRO, *values)[1][HAS_PREFIX + "name"] is False
    changes = decode(AVRO, *values)
    assert fold(changes.table, ("id",)).to_pylist() == [{OP: "U", "id": 1, "name": "a"}]


def test_key_change() -> None:
    """Another key after than before ends the old one."""
    value = record("UPDATE", [integer(2), text("a")], ROW)
    found = rows(AVRO, value)
    assert [(row[OP], row["id"]) for row in found] == [("D", 1), ("U", 2)]
    assert found[1][FROM_PREFIX + "id"] == 1
    change = explained(value)
    assert (change.op, change.key, change.before) == ("U", {"id": 2}, {"id": 1, "name": "a"})
    assert change.ts_ms == 1696984408000


def test_order_of_the_fields() -> None:
    """Images follow the record's own fields, whatever order the record before had."""
    other = record("INSERT", [text("b"), integer(2)], fields=[("name", 253), ("id", 8)])
    found = rows(AVRO, record("INSERT", ROW), other)
    assert [(row["id"], row["name"]) for row in found] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("tags", [{}, {"pk_uk_info": '{"uk1":["name"]}'}, {"pk_uk_info": ""}])
def test_table_without_a_primary_key(tags: dict[str, str]) -> None:
    """It is a changelog: another unique key may be null."""
    changes = decode(AVRO, record("INSERT", ROW, tags=tags))
    assert changes.mode is Mode.APPEND


@pytest.mark.parametrize("tag", ["[", '["id"]', '{"PRIMARY":"id"}'])
def test_key_that_is_none(tag: str) -> None:
    """A tag that can't be read is refused, for it would make a changelog of a table."""
    with pytest.raises(BadRecord, match=r"shop\.orders: the tag pk_uk_info"):
        decode(AVRO, record("INSERT", ROW, tags={"pk_uk_info": tag}))


@pytest.mark.parametrize(
    "operation",
    ["BEGIN", "COMMIT", "ROLLBACK", "HEARTBEAT", "CHECKPOINT", "NOOP", "CONTROL", "FINISH"],
)
def test_marks(operation: str) -> None:
    """They have nothing to apply."""
    value = record(operation, fields=None, name=None)
    assert made(AVRO).peek(value).kind is Kind.NOTHING
    assert made(AVRO).explain(value) == ()


def ddl(sql: str | None, name: str = "shop", **others: Any) -> bytes:
    return record("DDL", sql, fields=None, name=name, **others)


def test_statements() -> None:
    """The row after is the statement; unqualified names are of the record's database."""
    sql = "TRUNCATE TABLE orders"
    assert made(AVRO).peek(ddl(sql)).kind is Kind.DDL
    assert made(AVRO).ddl(ddl(sql)) == (Ddl(ORDERS, sql, (TruncateTable(),)),)
    assert made(AVRO).explain(ddl(sql)) == (Statement(ORDERS, sql, 1696984408000),)
    with pytest.raises(BadMessage, match="a DDL record without its statement"):
        made(AVRO).ddl(ddl(None))


def test_new_columns_are_as_rows_have_them() -> None:
    """What rows don't tell is text, or left to the first row."""
    sql = "ALTER TABLE orders ADD a int, ADD b decimal(5,2) DEFAULT 1, ADD c blob, ADD d bit(1)"
    (found,) = made(AVRO).ddl(ddl(sql + ", ADD e bigint unsigned"))
    assert found.steps == (
        AddColumn(Column("a", pa.int32())),
        AddColumn(Column("b", pa.string()), "1.00"),
        AddColumn(Column("c", pa.string())),
        AddColumn(Column("d", pa.int64())),
    )
    (refused,) = made(AVRO).ddl(ddl("ALTER TABLE orders ADD e bigint unsigned DEFAULT 1"))
    assert refused.refused is not None


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("db.t", TableName("db", "t")),
        ("db.public.t", TableName("db.public", "t")),
        ("db.a\\u002Eb", TableName("db", "a.b")),
    ],
)
def test_table_names(name: str, table: TableName) -> None:
    """A schema between belongs to the database's name; dots inside names are escaped."""
    assert made(AVRO).peek(record(after=ROW, name=name)).table == table


@pytest.mark.parametrize("name", [None, "", "db", "a.b.c.d", "db."])
def test_row_without_a_table(name: str | None) -> None:
    """A row that names no table is refused."""
    with pytest.raises(BadMessage, match=r"about .*: DATABASE\.TABLE is required"):
        made(AVRO).peek(record(after=ROW, name=name))


@pytest.mark.parametrize("value", [None, b""])
def test_empty_message(value: bytes | None) -> None:
    """Nothing to apply."""
    assert [head.kind for head in made(AVRO).heads([value])] == [Kind.NOTHING]
    assert made(AVRO).explain(value) == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (record("UPDATE", None, ROW), "a record of operation UPDATE without afterImages"),
        (record("DELETE", ROW, None), "a record of operation DELETE without beforeImages"),
        (record("INSERT", ROW[:1]), "1 values for 2 fields"),
        (record("INSERT", ROW, fields=[("id", 8), ("id", 8)]), "two fields of one name"),
        (record("INSERT", ["NONE", text("a")]), "key column id is missing"),
        (record("INSERT", ["NULL", text("a")]), "key column id is null"),
    ],
)
def test_rows_that_can_not_be(value: bytes, said: str) -> None:
    """They are refused at their place, with the table's name."""
    with pytest.raises(BadRecord, match=rf"shop\.orders: {said}") as error:
        decode(AVRO, record("INSERT", ROW), value)
    assert error.value.index == 1


def test_damaged_records() -> None:
    """Only BadMessage and BadRecord come out, alone as among good ones."""
    good = [
        record("INSERT", ROW),
        record("UPDATE", [integer(2), text("b")], ROW, born=7),
        record("DELETE", None, ROW),
        ddl("ALTER TABLE orders ADD a int DEFAULT 1", "shop.orders"),
    ]
    for value in mutants(good, 3_000, seed=8):
        read(made(AVRO), value)
        assert bad_place(made(AVRO), [good[0], value, good[0]]) in (None, 1)


def test_lengths_beyond_the_message() -> None:
    """A length that promises more than there is costs no memory."""
    beginning = long(0) * 3
    for length in (2**31, 2**62, -1, -(2**62)):
        with pytest.raises(BadMessage, match="a text of"):
            made(AVRO).peek(beginning + long(length) + b"x")
    whole = record("INSERT", ROW, tags={})
    at = whole.index(b"utf8mb4") - 1
    for length in (2**31, 2**62, -(2**62)):
        with pytest.raises(BadRecord, match="not a record of Alibaba DTS"):
            decode(AVRO, whole[:at] + long(length) + whole[at + 1 :])


def test_shown_by_decode(tmp_path: Path) -> None:
    """``binlogd decode`` takes a file of one record, and a file of several behind their lengths."""
    value = record("INSERT", ROW)
    prefix = bytes((len(value) & 0x7F | 0x80, len(value) >> 7))
    (tmp_path / "one").write_bytes(value)
    (tmp_path / "several").write_bytes((prefix + value) * 2)
    out, errors = io.StringIO(), io.StringIO()
    files = [str(tmp_path / "one"), str(tmp_path / "several")]
    assert decode_files(files, made(AVRO), out, errors), errors.getvalue()
    shown = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["after"] for line in shown] == [{"id": 1, "name": "a"}] * 3


def test_bad_record_shown_by_decode(tmp_path: Path) -> None:
    """A file that holds no record is told with its name and the record's number."""
    (tmp_path / "bad").write_bytes(b"\x00\x00")
    out, errors = io.StringIO(), io.StringIO()
    assert not decode_files([str(tmp_path / "bad")], made(AVRO), out, errors)
    assert errors.getvalue().startswith(f"{tmp_path}/bad:1: not a record of Alibaba DTS: ")
