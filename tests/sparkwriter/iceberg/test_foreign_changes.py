"""What others do to a target by hand: refused where a write would do harm, else told once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from changes.model.errors import TargetRefused
from changes.model.model import HAS_PREFIX, Mode, TruncateTable
from changes.sql.spark.words import dotted
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.section import MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from tests.sparkwriter.conftest import LANE, Staging

Rows = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def held(writer, staging: Staging, orders) -> Staging:
    """A table of two rows, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    return staging


@pytest.mark.parametrize("change", ["RENAME COLUMN id TO order_id", "DROP COLUMN id"])
def test_a_key_column_that_is_gone(
    spark: SparkSession, writer, held: Staging, orders, rows: Rows, change: str
) -> None:
    """Added again it would be null in each row: rows would double, and no delete find one."""
    before = rows(held.target)
    spark.sql(f"ALTER TABLE {dotted(*held.target)} {change}")
    with pytest.raises(TargetRefused, match=r"column id, .* was renamed or dropped by another"):
        writer.write(held.batch(orders(("U", 1, "A", 1), ("D", 2, None, None)), 2))
    if change.startswith("RENAME"):
        assert rows(held.target) == before
        spark.sql(f"ALTER TABLE {dotted(*held.target)} RENAME COLUMN order_id TO id")
        writer.write(held.batch(orders(("U", 1, "A", 1), ("D", 2, None, None)), 2, after=1))
        assert rows(held.target) == [(1, "A", 1)]


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_changelogs_own_column_that_is_gone(spark: SparkSession, writer, staging) -> None:
    """Its rows could not be told from those that are written again."""
    log = pa.table(
        {
            "_op": ["I"],
            "_partition": pa.array([0], pa.int32()),
            "_offset": pa.array([1], pa.int64()),
            "_index": pa.array([0], pa.int32()),
            "id": pa.array([1], pa.int64()),
            "note": ["a"],
            "n": pa.array([1], pa.int32()),
        }
    )
    writer.write(staging.batch(log, 1, mode=Mode.APPEND))
    spark.sql(f"ALTER TABLE {dotted(*staging.target)} RENAME COLUMN _offset TO place")
    with pytest.raises(TargetRefused, match="column _offset, by which"):
        writer.write(staging.batch(log, 2, mode=Mode.APPEND))


def require(spark: SparkSession, held: Staging, *columns: str) -> None:
    """As an engine does that allows NOT NULL on a column with rows."""
    table = LakeCatalog(spark).load(held.target)
    assert table is not None
    update = table.table.updateSchema().allowIncompatibleChanges()
    for column in columns:
        update.requireColumn(column)
    update.commit()


def test_a_null_in_a_column_that_others_made_not_null(
    spark: SparkSession, writer, held: Staging, orders, rows: Rows
) -> None:
    """Written, nobody could read the table any more. A deletion brings no value, and needs none."""
    require(spark, held, "id", "note")
    writer.write(held.batch(orders(("U", 3, "c", None), ("D", 2, None, None)), 2))
    assert rows(held.target) == [(1, "a", 10), (3, "c", None)]
    for values in ([("U", 4, None, 1)], [("U", 5, "e", 1), ("U", 1, None, 1)]):
        with pytest.raises(TargetRefused, match="column note is NOT NULL in the lake"):
            writer.write(held.batch(orders(*values), 3, after=2))
    assert rows(held.target) == [(1, "a", 10), (3, "c", None)]
    spark.sql(f"ALTER TABLE {dotted(*held.target)} ALTER COLUMN note DROP NOT NULL")
    writer.write(held.batch(orders(("U", 4, None, 1)), 3, after=2))
    assert rows(held.target)[-1] == (4, None, 1)


def test_a_not_null_column_that_the_changes_lack(
    spark: SparkSession, writer, held: Staging, orders, rows: Rows
) -> None:
    """As a whole, or in a row that may be new."""
    require(spark, held, "note")
    table = orders(("U", 9, None, 1))
    with pytest.raises(TargetRefused, match="column note is NOT NULL"):
        writer.write(held.batch(table.drop_columns(["note"]), 2))
    partial = table.append_column(HAS_PREFIX + "note", pa.array([False]))
    with pytest.raises(TargetRefused, match="column note is NOT NULL"):
        writer.write(held.batch(partial, 2, after=1, partial=["note"]))
    gone = orders(("D", 1, None, None)).drop_columns(["note"])
    writer.write(held.batch(gone, 2, after=1))
    assert rows(held.target) == [(2, "b", 20)]


@contextmanager
def told() -> Iterator[list[dict[str, Any]]]:
    """The warnings of others' snapshots."""
    found: list[dict[str, Any]] = []
    with capture_logs() as logs:
        yield found
    found += [dict(entry) for entry in logs if entry["event"] == "foreign_snapshot"]


def head(spark: SparkSession, held: Staging) -> int | None:
    table = LakeCatalog(spark).load(held.target)
    assert table is not None
    return table.head("main")


def by_hand(spark: SparkSession, held: Staging, statement: str) -> int | None:
    """What a person runs; gives the snapshot."""
    spark.sql(statement.format(dotted(*held.target)))
    return head(spark, held)


STATEMENTS = (
    ("DELETE FROM {} WHERE id = 1", "delete"),
    ("INSERT OVERWRITE {} VALUES (7, 'x', 7)", "overwrite"),
    ("INSERT INTO {} VALUES (7, 'x', 7)", "append"),
    ("TRUNCATE TABLE {}", "delete"),
)


@pytest.mark.parametrize(("statement", "operation"), STATEMENTS)
@pytest.mark.parametrize("write", [Write.MERGE])
def test_rows_that_others_changed_are_told_of_once(
    spark: SparkSession, held: Staging, orders, statement: str, operation: str
) -> None:
    """By the snapshot, what it did and who; by all writers of the process together."""
    made = by_hand(spark, held, statement)
    upkeep = Upkeep(anonymous(), MaintenanceSection())
    one, two = IcebergWriter(spark, upkeep), IcebergWriter(spark, upkeep)
    with told() as first:
        one.open(held.target)
        two.open(held.target)
        two.write(held.batch(orders(("U", 5, "e", 5)), 2))
        one.write(held.batch(orders(("U", 6, "f", 6)), 3))
    (warning,) = first
    assert (warning["target"], warning["snapshot"]) == (str(held.target), made)
    assert (warning["operation"], warning["log_level"]) == (operation, "warning")
    assert "spark" in warning["by"]
    assert "tables rebuild" in warning["what"]


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_statement_hides_no_foreign_snapshot(spark: SparkSession, held: Staging) -> None:
    """It is looked at before a DDL is published on it, as before rows."""
    by_hand(spark, held, "INSERT INTO {} VALUES (7, 'x', 7)")
    with told() as found:
        IcebergWriter(spark).write(held.batch(None, 2, ddl=[[TruncateTable()]]))
    assert len(found) == 1


@pytest.mark.parametrize("write", [Write.MERGE])
def test_upkeep_hides_no_foreign_snapshot(spark: SparkSession, writer, held: Staging) -> None:
    """It puts the mark on top before it expires what is below."""
    by_hand(spark, held, "INSERT INTO {} VALUES (7, 'x', 7)")
    upkeep = Upkeep(
        anonymous(),
        MaintenanceSection.model_construct(expire_snapshots_older_than_s=0.0, retain_last=1),
    )
    table = LakeCatalog(spark).load(held.target)
    assert table is not None
    with told() as found:
        upkeep.run(held.target, table)
    assert len(found) == 1


@pytest.mark.parametrize("write", [Write.MERGE])
def test_marks_put_back_hide_no_foreign_snapshot(
    spark: SparkSession, writer, held: Staging, orders
) -> None:
    """Where others expired the snapshot that carried them."""
    state = writer.write(held.batch(orders(("U", 5, "e", 5)), 2))
    by_hand(spark, held, "INSERT INTO {} VALUES (7, 'x', 7)")
    name = f"{held.target.namespace}.{held.target.table}"
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )
    recorded = TargetMark(state.version, {LANE: 2})
    with told() as found:
        assert IcebergWriter(spark).open(held.target, recorded).hwms == {LANE: 2}
    assert len(found) == 1


@pytest.mark.parametrize("write", [Write.MERGE])
def test_our_own_and_compactions_are_no_news(
    spark: SparkSession, writer, held: Staging, orders
) -> None:
    """Nor is another member's write: it carries marks."""
    writer.write(held.batch(orders(("U", 3, "c", 1)), 2))
    name = f"{held.target.namespace}.{held.target.table}"
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    with told() as found:
        other = IcebergWriter(spark)
        other.open(held.target)
        other.write(replace(held.batch(orders(("U", 4, "d", 1)), 3), group="g"))
    assert found == []
