"""A rebuilt table takes the old one's name, wherever it broke off before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from actors.contract.ports import SwapTooEarly
from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.sink import IcebergWriter

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
Rows = Callable[..., list[tuple[object, ...]]]


class Dies(LakeCatalog):
    """The process is gone after so many changes of names."""

    def __init__(self, spark: SparkSession, after: int) -> None:
        super().__init__(spark)
        self.left = after

    def rename(self, old: TargetName, new: TargetName) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, target: TargetName) -> None:
        self._count()
        super().remove(target)

    def _count(self) -> None:
        if self.left == 0:
            raise SinkUnavailable("gone")
        self.left -= 1


@pytest.fixture
def filled(writer: IcebergWriter, staging: Any, orders: Any) -> Swap:
    """The old table with a wrong row, the new one with the right rows and more of the log."""
    old = staging.target
    writer.write(staging.batch(orders(("U", 1, "wrong", 0)), 5))
    new = old._replace(table=f"{old.table}__rebuild")
    staging.target = new
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 8, after=-1))
    return Swap(old, new, old._replace(table=f"{old.table}__before"), {LANE: 9})


def tables(spark: SparkSession, swap: Swap) -> set[str]:
    found = spark.sql(f"SHOW TABLES IN {swap.old.sink}.{swap.old.namespace}").collect()
    return {row.tableName for row in found if row.tableName.startswith(swap.old.table)}


def test_the_new_table_has_the_name_and_the_marks(spark, writer, filled, rows: Rows) -> None:
    """And the old one is gone with its files; done again it stays so."""
    for _ in range(2):
        state = writer.swap(filled)
        assert state.hwms == {LANE: 8}
        assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]
        assert tables(spark, filled) == {filled.old.table}


def test_the_old_one_may_be_kept(spark, writer, filled, rows: Rows) -> None:
    """Under another name, as it was."""
    writer.swap(replace(filled, keep_old=True))
    assert rows(filled.aside) == [(1, "wrong", 0)]
    assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]


@pytest.mark.parametrize("steps", range(4))
def test_it_breaks_off_anywhere_and_is_repeated(spark, filled, rows: Rows, steps: int) -> None:
    """Each step is found done, whatever came of it before."""
    broken = IcebergWriter(spark)
    broken._lake.catalog = Dies(spark, steps)
    with pytest.raises(SinkUnavailable, match="gone"):
        broken.swap(filled)
    IcebergWriter(spark).swap(filled)
    assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]
    assert tables(spark, filled) == {filled.old.table}


def test_what_the_old_one_has_more_is_waited_for(spark, writer, filled, rows: Rows) -> None:
    """It would be read by nobody again."""
    with pytest.raises(SwapTooEarly) as early:
        writer.swap(replace(filled, frontiers={LANE: 5}))
    assert early.value.marks == {LANE: 5}
    assert rows(filled.old) == [(1, "wrong", 0)]


def test_marks_do_not_go_back(writer, staging, filled, orders) -> None:
    """The old table's last messages had no row, and the new one's marks stop before them."""
    staging.target = filled.old
    writer.write(staging.batch(None, 11, after=5))
    state = writer.swap(replace(filled, frontiers={LANE: 12}))
    assert state.hwms == {LANE: 11}
    assert writer.open(filled.old).hwms == {LANE: 11}


def test_a_table_without_rows_in_the_log_stays(spark, writer, filled, rows: Rows) -> None:
    """There is nothing to put in its place."""
    writer.remove(filled.new)
    with pytest.raises(TargetRefused, match="the log holds no row of it"):
        writer.swap(filled)
    assert rows(filled.old) == [(1, "wrong", 0)]


def test_anothers_table_is_not_moved(spark, writer, filled) -> None:
    """Whoever made it has not asked for it."""
    name = f"{filled.old.sink}.{filled.old.namespace}.{filled.old.table}"
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    with pytest.raises(TargetRefused, match="not made by binlogd"):
        writer.swap(filled)


def test_where_the_old_one_was_lost_the_new_one_comes(spark, writer, filled, rows: Rows) -> None:
    """Somebody dropped it: that may be why it is rebuilt."""
    spark.sql(f"DROP TABLE {filled.old.sink}.{filled.old.namespace}.{filled.old.table}")
    writer.swap(filled)
    assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]


def test_writing_goes_on_from_the_new_marks(spark, writer, staging, filled, orders, rows) -> None:
    """What the new table has is dropped, what it has not is added."""
    writer.swap(filled)
    staging.target = filled.old
    writer.write(staging.batch(orders(("U", 3, "c", 3)), 10, after=8))
    assert rows(filled.old)[-1] == (3, "c", 3)
