"""Columns with a default in targets of several tables, which get the statement by turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from actors.contract.writes import StagedBatch
from changes.model.model import AddColumn, Column, DropColumn, TableName
from tests.sparkwriter.conftest import Staging

pytestmark = pytest.mark.integration
Rows = Callable[..., list[tuple[object, ...]]]
MORE = Column("more", pa.int32())


@pytest.fixture
def shards(writer, staging: Staging, orders) -> Staging:
    """A row of each of two tables; one of them has got a column with a default since."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    writer.write(staging.batch(None, 2, ddl=[[AddColumn(MORE, 5)]]))
    return staging


def of_one(batch: StagedBatch) -> StagedBatch:
    return replace(batch, table=TableName("shop", "orders"))


def test_a_row_of_a_table_that_has_the_column_later_shows_its_default(
    writer, shards: Staging, rows: Rows, orders
) -> None:
    """As at the source, once that table has had the statement: before, nobody can look."""
    writer.write(shards.batch(orders(("U", 3, "c", 30), ("U", 1, "z", 11)), 3))
    state = writer.write(shards.batch(None, 4, ddl=[[AddColumn(MORE, 5)]]))
    assert rows(shards.target, "id, note, more") == [(1, "z", 5), (2, "b", 5), (3, "c", 5)]
    assert state.rows_may_differ is None


@pytest.mark.parametrize("default", [6, None, "six"])
def test_another_default_for_the_other_table_marks_the_target(
    writer, shards: Staging, default: object
) -> None:
    """Its stored rows show that of the first one."""
    kind = pa.string() if isinstance(default, str) else pa.int32()
    late = AddColumn(Column("MORE", kind), default)
    mark = writer.write(shards.batch(None, 3, ddl=[[late]])).rows_may_differ
    assert mark == "ADD COLUMN MORE with another default than stored rows show at offset 3"


def test_a_table_that_is_alone_has_neither(writer, shards: Staging, rows: Rows, orders) -> None:
    """Its rows lack what it has dropped, and what it adds again was never in the lake's rows."""
    writer.write(of_one(shards.batch(None, 3, ddl=[[DropColumn("more", keep=True)]])))
    writer.write(of_one(shards.batch(orders(("U", 3, "c", 30)), 4)))
    assert rows(shards.target, "id, more") == [(1, 5), (2, 5), (3, None)]
    state = writer.write(of_one(shards.batch(None, 5, ddl=[[AddColumn(MORE, 7)]])))
    assert state.rows_may_differ is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "it's \u20ac`"),
        (pa.bool_(), True),
        (pa.int64(), -(2**63)),
        (pa.float32(), 0.1),
        (pa.float64(), 1e300),
        (pa.decimal128(20, 3), Decimal("-1.500")),
        (pa.date32(), date(2026, 2, 3)),
        (pa.timestamp("us"), datetime(2026, 2, 3, 4, 5, 6, 7)),
        (pa.binary(), b"\x00\xff'"),
    ],
)
def test_each_type_of_a_default(
    writer, staging: Staging, rows: Rows, orders, kind: pa.DataType, value: object
) -> None:
    """New rows show what stored ones do, and the same statement again is no other default."""
    writer.write(staging.batch(orders(("U", 1, "a", 10)), 1))
    add = AddColumn(Column("more", kind), value)
    writer.write(staging.batch(None, 2, ddl=[[add]]))
    writer.write(staging.batch(orders(("U", 2, "b", 20)), 3))
    state = writer.write(staging.batch(None, 4, ddl=[[add]]))
    stored, new = (more for _, more in rows(staging.target, "id, more"))
    assert (stored == new, state.rows_may_differ) == (True, None)
