"""Every sink keeps the shape of its rows, and takes rows of no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import OP, AddColumn, Column, TableSchema
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.store import Absent
from sparkwriter.kit.writer import TargetWriter

ONE = Shape(columns=("id", "note", "n"))
TWO = Shape(columns=("id", "note", "n", "x"))


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def table(writer, staging, orders) -> Any:
    """A table of the first shape, its mark at 1."""
    batch = staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1)
    writer.write(replace(batch, shape=ONE.fingerprint))
    return staging


def kept(sink, target) -> str:
    """What a new look shows."""
    found = sink.store().look(target)
    assert not isinstance(found, Absent)
    return str(found.shape)


@pytest.mark.parametrize("other", [Shape(columns=("id",)), Shape(rename=(("n", "m"),))])
def test_rows_of_another_shape_are_refused(sink, writer, table, rows, orders, other) -> None:
    """With the command that fills the table again; a shape is not lost by other writes."""
    writer.write(replace(table.batch(None, 2), shape=ONE.fingerprint))
    batch = replace(table.batch(orders(("U", 3, "c", 30)), 3), shape=other.fingerprint)
    with pytest.raises(TargetRefused, match=r"\((columns|columns, rename)\).*tables rebuild"):
        writer.write(batch)
    assert rows(table.target) == [(1, "a", 10), (2, "b", 20)]
    assert kept(sink, table.target) == ONE.fingerprint


def test_a_table_without_a_shape_takes_none(writer, staging, orders) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 10)), 1))
    batch = staging.batch(orders(("U", 2, "b", 20)), 2)
    with pytest.raises(TargetRefused, match="another route"):
        writer.write(replace(batch, shape=ONE.fingerprint))


def test_added_columns_go_on_and_are_told(sink, writer, table, rows) -> None:
    """Rows of before are null in them, and the table says so."""
    columns = (*table.schema.columns, Column("x", pa.string()))
    wide = pa.table(
        {OP: ["U"], "id": [3], "note": ["c"], "n": pa.array([3], pa.int32()), "x": ["new"]}
    )
    schema = TableSchema(columns, ("id",))
    batch = replace(table.batch(wide, 2, schema=schema), shape=TWO.fingerprint)
    state = writer.write(batch)
    assert rows(table.target) == [(1, "a", 10, None), (2, "b", 20, None), (3, "c", 3, "new")]
    assert state.rows_may_differ is not None
    assert "its route shows more columns" in state.rows_may_differ
    assert kept(sink, table.target) == TWO.fingerprint


def test_statements_keep_the_shape(sink, writer, table) -> None:
    """And those of another shape are refused."""
    ddl = [[AddColumn(Column("y", pa.int64()))]]
    other = Shape(rename=(("n", "m"),)).fingerprint
    with pytest.raises(TargetRefused, match="tables rebuild"):
        writer.write(replace(table.batch(None, 2, ddl=ddl), shape=other))
    table.after = 1
    writer.write(replace(table.batch(None, 2, ddl=ddl), shape=ONE.fingerprint))
    assert kept(sink, table.target) == ONE.fingerprint
