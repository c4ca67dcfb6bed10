"""A target is of one table of the source: two whose names lead to it are told apart by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import DropTable, TableName, TruncateTable
from changes.sql.spark.words import dotted
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.ownership import SOURCE
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import LANE, Staging

Rows = Callable[..., list[tuple[object, ...]]]
FIRST, SECOND = TableName("shop", "eu_orders"), TableName("shop_eu", "orders")
BOTH = r"of the table shop\.eu_orders, and shop_eu\.orders leads to the same target"

pytestmark = pytest.mark.parametrize("write", [Write.MERGE])


def of(table: TableName | None, batch: StagedBatch, **more: Any) -> StagedBatch:
    """The batch as one of that table."""
    return replace(batch, table=table, **more)


@pytest.fixture
def held(writer, staging: Staging, orders) -> Staging:
    """A target of the first table, with a row."""
    writer.write(of(FIRST, staging.batch(orders(("U", 1, "a", 10)), 1)))
    return staging


@pytest.fixture
def source(spark: SparkSession) -> Callable[[Staging], object]:
    """Read what a target says of itself."""
    catalog = LakeCatalog(spark)

    def read(staging: Staging) -> object:
        table = catalog.load(staging.target)
        assert table is not None
        return json.loads(table.property(SOURCE) or "null")

    return read


def test_rows_of_another_table_are_refused(
    spark: SparkSession, writer, held: Staging, orders, rows: Rows, source
) -> None:
    """Both are named, by a writer that never saw the first one too; nothing is changed."""
    assert source(held) == ["shop", "eu_orders"]
    batch = of(SECOND, held.batch(orders(("U", 1, "B", 2)), 2))
    for other in (writer, IcebergWriter(spark)):
        with pytest.raises(TargetRefused, match=BOTH):
            other.write(batch)
    assert rows(held.target) == [(1, "a", 10)]
    writer.write(of(FIRST, held.batch(orders(("U", 2, "b", 20)), 2, after=1)))
    assert rows(held.target) == [(1, "a", 10), (2, "b", 20)]


def test_statements_of_another_table_are_refused(writer, held: Staging, rows: Rows, source) -> None:
    """Its TRUNCATE may be the first thing that comes of it."""
    for step in (TruncateTable(), DropTable(), DropTable(keep=True)):
        with pytest.raises(TargetRefused, match=BOTH):
            writer.write(of(SECOND, held.batch(None, 2, after=1, ddl=[[step]])))
    assert rows(held.target) == [(1, "a", 10)]
    writer.write(of(FIRST, held.batch(None, 2, after=1, ddl=[[TruncateTable()]])))
    assert rows(held.target) == []
    assert source(held) == ["shop", "eu_orders"]


def test_two_members_that_race_at_the_first_write(
    spark: SparkSession, writer, staging: Staging, orders, rows: Rows, source, monkeypatch
) -> None:
    """Both saw that there is no table. One makes it, the other finds whose it is."""
    first = of(FIRST, staging.batch(orders(("U", 1, "a", 10)), 1, after=-1))
    lane = TopicPartition("shop", 1)
    second = of(SECOND, staging.batch(orders(("U", 1, "B", 2)), 1, after=-1, lane=lane))
    real, made = LakeCatalog.create, []

    def create(self: LakeCatalog, *given: Any) -> None:
        if not made:
            made.append(True)
            IcebergWriter(spark).write(first)
        real(self, *given)

    monkeypatch.setattr(LakeCatalog, "create", create)
    with pytest.raises(TargetRefused, match=BOTH):
        writer.write(second)
    assert (rows(staging.target), source(staging)) == ([(1, "a", 10)], ["shop", "eu_orders"])


def test_a_table_made_by_an_earlier_version(writer, staging: Staging, orders, source) -> None:
    """It takes the first table that writes, rows or a statement; several are no matter."""
    writer.write(staging.batch(orders(("U", 1, "a", 10)), 1))
    writer.write(of(None, staging.batch(orders(("U", 2, "b", 10)), 2)))
    assert source(staging) is None
    writer.write(of(FIRST, staging.batch(orders(("U", 3, "c", 10)), 3)))
    assert source(staging) == ["shop", "eu_orders"]
    with pytest.raises(TargetRefused, match=BOTH):
        writer.write(of(SECOND, staging.batch(orders(("U", 3, "C", 10)), 4)))


def test_a_statement_comes_first(writer, staging: Staging, orders, source) -> None:
    """Of an earlier version's table: whose statement it was is kept as well."""
    writer.write(staging.batch(orders(("U", 1, "a", 10)), 1))
    writer.write(of(FIRST, staging.batch(None, 2, ddl=[[TruncateTable()]])))
    assert source(staging) == ["shop", "eu_orders"]


def test_a_person_says_that_it_has_another_name(
    spark: SparkSession, writer, held: Staging, orders, source
) -> None:
    """The way out that the refusal names."""
    spark.sql(f"ALTER TABLE {dotted(*held.target)} UNSET TBLPROPERTIES ('{SOURCE}')")
    writer.write(of(SECOND, held.batch(orders(("U", 2, "b", 20)), 2)))
    assert source(held) == ["shop_eu", "orders"]


def test_a_renaming_that_leads_to_the_same_target(
    writer, held: Staging, orders, rows: Rows, source
) -> None:
    """RENAME TABLE shop.eu_orders TO shop_eu.orders: the rows stay, the table is another."""
    batch = of(FIRST, held.batch(None, 2), becomes=SECOND)
    assert not writer.write(batch).covered
    assert writer.write(batch).covered
    assert source(held) == ["shop_eu", "orders"]
    writer.write(of(SECOND, held.batch(orders(("U", 2, "b", 20)), 3)))
    assert rows(held.target) == [(1, "a", 10), (2, "b", 20)]
    with pytest.raises(TargetRefused, match=r"of the table shop_eu\.orders, and shop\.eu_orders"):
        writer.write(of(FIRST, held.batch(orders(("U", 3, "c", 3)), 4)))


def test_a_dropped_table_makes_room(writer, held: Staging, orders, rows: Rows, source) -> None:
    """What the source has dropped is kept, and is no matter to the table that comes next."""
    writer.write(of(FIRST, held.batch(None, 2, ddl=[[DropTable(keep=True)]])))
    writer.write(of(SECOND, held.batch(orders(("U", 7, "new", 7)), 3)))
    assert rows(held.target) == [(7, "new", 7)]
    assert source(held) == ["shop_eu", "orders"]


def ends(held: Staging) -> tuple[Staging, StagedBatch, StagedBatch]:
    """Both ends of RENAME TABLE shop.eu_orders TO shop.old, to another target."""
    new = Staging(held.folder, held.target._replace(table=f"{held.target.table}_old"), held.schema)
    old = TableName("shop", "old")
    moves = of(FIRST, held.batch(None, 2, moves_to=new.target), becomes=old)
    return new, moves, new.batch(None, 2, takes_from=held.target)


def rename(writer, moves: StagedBatch, takes: StagedBatch) -> None:
    """Both lanes come to the statement."""
    with pytest.raises(SinkUnavailable, match="has its name"):
        writer.write(takes)
    writer.write(moves)
    writer.write(takes)


def test_a_renaming_moves_it_along(writer, held: Staging, orders, rows: Rows, source) -> None:
    """The table under its new name is of the new name; the old one is free for any."""
    new, moves, takes = ends(held)
    rename(writer, moves, takes)
    assert source(new) == ["shop", "old"]
    writer.write(of(TableName("shop", "old"), new.batch(orders(("U", 2, "b", 2)), 3)))
    with pytest.raises(TargetRefused, match=r"of the table shop\.old, and shop\.eu_orders"):
        writer.write(of(FIRST, new.batch(orders(("U", 2, "x", 2)), 4)))
    writer.write(of(SECOND, held.batch(orders(("U", 9, "z", 9)), 3)))
    assert (source(held), rows(held.target)) == (["shop_eu", "orders"], [(9, "z", 9)])


def test_a_renaming_of_another_table_is_refused(writer, held: Staging, rows: Rows, source) -> None:
    """RENAME TABLE shop_eu.orders TO shop.old, where the target is the other one's."""
    _, moves, _ = ends(held)
    with pytest.raises(TargetRefused, match=BOTH):
        writer.write(replace(moves, table=SECOND))
    assert (source(held), len(rows(held.target))) == (["shop", "eu_orders"], 1)


class Crash(Exception):
    """The process is gone."""


def test_a_crash_amid_a_renaming(
    writer, held: Staging, monkeypatch: pytest.MonkeyPatch, source
) -> None:
    """Under its old name the table is of the old name still, so the renaming can be repeated."""
    new, moves, takes = ends(held)

    def dies(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(LakeCatalog, "rename", dies)
        with pytest.raises(Crash):
            rename(writer, moves, takes)
    assert source(held) == ["shop", "eu_orders"]
    writer.write(moves)
    writer.write(takes)
    assert source(new) == ["shop", "old"]


def test_marks_that_are_moved_leave_it(writer, held: Staging, source) -> None:
    """`offsets reset` is of no table."""
    writer.reset(held.target, MarkMoves({LANE: 0}))
    assert source(held) == ["shop", "eu_orders"]
