"""Tables that say through when gates have found them complete."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.tags import VALID_THROUGH

pytestmark = pytest.mark.integration
FIRST, SECOND = "2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z"


@pytest.fixture
def written(writer, staging, orders) -> TargetName:
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    found: TargetName = staging.target
    return found


@pytest.fixture
def said(spark: SparkSession, written: TargetName) -> Callable[[], dict[str, str]]:
    """By gate, as Spark shows it."""
    name = ".".join(f"`{part}`" for part in written)

    def show() -> dict[str, str]:
        rows = spark.newSession().sql(f"SHOW TBLPROPERTIES {name}").collect()
        return {
            row.key.removeprefix(VALID_THROUGH): row.value
            for row in rows
            if row.key.startswith(VALID_THROUGH)
        }

    return show


def commits(spark: SparkSession, target: TargetName) -> int:
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return int(table.metadata.previousFiles().size())


def test_a_table_says_of_these_gates_and_of_no_others(spark, writer, written, said) -> None:
    """In one commit each; done again it is none. What others set stays."""
    assert writer.say_through(written, {"day": FIRST, "hour": FIRST})
    assert said() == {"day": FIRST, "hour": FIRST}
    before = commits(spark, written)
    assert writer.say_through(written, {"day": FIRST, "hour": FIRST})
    assert commits(spark, written) == before
    name = ".".join(f"`{part}`" for part in written)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('binlogd.valid-throughput' = 'mine')")
    before = commits(spark, written)
    assert writer.say_through(written, {"day": SECOND})
    assert (said(), commits(spark, written)) == ({"day": SECOND}, before + 1)
    assert writer.say_through(written, {})
    assert said() == {}
    table = LakeCatalog(spark).load(written)
    assert table is not None
    assert table.property("binlogd.valid-throughput") == "mine"


def test_it_stays_over_writes_and_is_in_no_write_s_way(writer, staging, orders, written, said):
    """Rows and marks are what they were: another write finds its own."""
    before = writer.open(written)
    writer.say_through(written, {"day": FIRST})
    after = writer.open(written)
    assert (after.version, after.hwms) == (before.version, before.hwms)
    writer.write(staging.batch(orders(("U", 2, "b", 2)), 2))
    assert said() == {"day": FIRST}


def test_a_write_amid_it_is_no_reason_to_fail(
    spark, writer, staging, orders, written, said, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, lost = LakeTable.commit, []

    def raced(table: LakeTable, change) -> None:
        if not lost:
            lost.append(True)
            writer.write(staging.batch(orders(("U", 3, "c", 2)), 2))
        commit(table, change)

    monkeypatch.setattr(LakeTable, "commit", raced)
    assert writer.say_through(written, {"day": FIRST})
    assert said() == {"day": FIRST}
    name = ".".join(f"`{part}`" for part in written)
    assert spark.newSession().sql(f"SELECT id FROM {name}").count() == 2


def test_no_table_and_another_s_table(spark, writer, target) -> None:
    assert not writer.say_through(target, {"day": FIRST})
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {target.sink}.{target.namespace}")
    spark.sql(f"CREATE TABLE {'.'.join(target)} USING iceberg AS SELECT 1 AS id")
    with pytest.raises(TargetRefused, match="not made by binlogd"):
        writer.say_through(target, {"day": FIRST})
