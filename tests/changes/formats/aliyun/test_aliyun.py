"""Alibaba DTS's Avro records: both layouts, rows, values, statements."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.model.model import (
    HAS_PREFIX,
    OP,
    AddColumn,
    BadRecord,
    Column,
    TableName,
)
from changes.routes.fold import fold
from daemon.cli.decode import decode_files
from tests.changes.formats.aliyun.messages import integer, record, text
from tests.changes.formats.json_messages import decode, made, rows
from tests.changes.formats.mutator import bad_place, mutants, read

AVRO = "aliyun-dts-avro"
ORDERS = TableName("shop", "orders")
ROW = [integer(1), text("a")]


def test_the_first_bad_record_is_reported() -> None:
    """Also where its value shows that only when its column is made."""
    misfit = record(after=[integer("x"), text("a")])
    with pytest.raises(BadRecord) as error:
        decode(AVRO, record(after=ROW), misfit, record(after=ROW) + b"\x00\x00")
    assert error.value.index == 1


def test_absent_is_not_null() -> None:
    """NONE keeps the stored value, NULL overwrites it."""
    values = [
        record("INSERT", ROW),
        record("UPDATE", [integer(1), "NONE"], [integer(1), "NONE"]),
    ]
    assert rows(AVRO, *values)[1][HAS_PREFIX + "name"] is False
    changes = decode(AVRO, *values)
    assert fold(changes.table, ("id",)).to_pylist() == [{OP: "U", "id": 1, "name": "a"}]


def ddl(sql: str | None, name: str = "shop", **others: Any) -> bytes:
    return record("DDL", sql, fields=None, name=name, **others)


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
