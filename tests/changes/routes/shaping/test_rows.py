"""Rows of the database itself, in the shape of a route."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.model import Column, TableName, TableSchema
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape
from changes.routes.shaping.statements import shaped_rows

SCHEMA = TableSchema((Column("id", pa.int64()), Column("v", pa.string())), ("id",))
TABLE = TableName("shop", "t")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["10", None, "x"]})


def test_rows_are_those_that_the_stream_would_show() -> None:
    shape = Shape(
        filter="id <> 2",
        computed=(("c", "id * 2"),),
        masks=(("v", "keep_last(1)"),),
        rename=(("v", "w"),),
        delete="hard",
    )
    schema, rows = shaped_rows(shape, SCHEMA, ROWS, TABLE)
    assert rows.to_pylist() == [{"id": 1, "w": "*0", "c": 2}, {"id": 3, "w": "*", "c": 6}]
    assert [column.name for column in schema.columns] == rows.column_names
    assert schema.keys == ("id",)


def test_deleted_rows_are_not_in_the_database() -> None:
    _, rows = shaped_rows(Shape(delete="soft"), SCHEMA, ROWS, TABLE)
    assert rows["_DELETED"].to_pylist() == [False, False, False]


def test_a_row_without_a_result_is_named() -> None:
    """There is no record to set aside."""
    with pytest.raises(ShapeRefused, match=r"computed\.c: .*x.*, in the row \{'id': 3\}"):
        shaped_rows(Shape(computed=(("c", "CAST(v AS bigint)"),)), SCHEMA, ROWS, TABLE)
