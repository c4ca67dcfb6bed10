"""When a row became visible, from a table's history."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from bench.compare.fresh import delays_s, visible_at

pytestmark = pytest.mark.long


def test_a_snapshot_is_visible_when_main_leads_to_it() -> None:
    """Not when it was made: a branch is moved to main as a whole."""
    parents = {1: None, 2: 1, 3: 2, 4: 3}
    assert visible_at([(100, 1), (200, 3)], parents) == {1: 100, 2: 200, 3: 200}


def test_it_stays_visible_since_the_first_time() -> None:
    """Rolled back and led to again: the first time counts."""
    assert visible_at([(100, 1), (200, 2), (300, 1), (400, 2)], {1: None, 2: 1}) == {1: 100, 2: 200}


def test_an_expired_parent_ends_the_walk() -> None:
    """Its own time is told by its own entry, if there is one."""
    assert visible_at([(200, 9)], {9: 8}) == {8: 200, 9: 200}


def test_each_row_version_has_the_delay_until_its_own_commit(spark: SparkSession) -> None:
    """An insert, an update by MERGE, and a compaction, which makes nothing visible."""
    table = "lake.fresh.rows"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.fresh")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, sent BIGINT) USING iceberg TBLPROPERTIES"
        " ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')"
    )
    first = time.time_ns() // 1_000_000 - 5_000
    spark.sql(f"INSERT INTO {table} VALUES (1, {first}), (2, {first - 1_000})")
    second = time.time_ns() // 1_000_000 - 50_000
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 1L AS id, {second}L AS sent) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{table}',"
              " options => map('rewrite-all', 'true'))")  # fmt: skip
    ended = time.time_ns() // 1_000_000
    delays = sorted(delays_s(spark, [table]))
    assert len(delays) == 3
    one, two, updated = delays
    assert two - one == pytest.approx(1.0)
    assert 5.0 <= one <= (ended - first) / 1000
    assert 50.0 <= updated <= (ended - second) / 1000
