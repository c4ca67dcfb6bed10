"""An empty table is written the cheapest way, and emptiness is not believed of anybody."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from changes.model.model import TargetName
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import way_of

pytestmark = pytest.mark.integration
Rows = Callable[..., list[tuple[object, ...]]]


def put_summary_on_main(spark: SparkSession, target: TargetName, **summary: str) -> None:
    """Commit main's files once more, as another tool would, with entries of its own."""
    table = LakeCatalog(spark).load(target)
    assert table is not None
    parser = spark.sparkContext._jvm.org.apache.iceberg.SnapshotParser
    main = table.head(MAIN)
    said = json.loads(parser.toJson(table.metadata.snapshot(main)))
    said |= {
        "snapshot-id": main ^ 1,
        "parent-snapshot-id": main,
        "sequence-number": int(table.metadata.lastSequenceNumber()) + 1,
        "first-row-id": int(table.metadata.nextRowId()),
        "added-rows": 0,
        "timestamp-ms": said["timestamp-ms"] + 1,
        "summary": {"operation": "replace", **summary},
    }
    snapshot = parser.fromJson(json.dumps(said))
    table.commit(lambda builder: builder.setBranchSnapshot(snapshot, MAIN))


def test_a_summary_that_says_empty_is_not_believed(
    writer: IcebergWriter, staging, orders, rows: Rows, spark: SparkSession
) -> None:
    """Of a table with rows: they would be there twice, and deletes would find nothing."""
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    put_summary_on_main(spark, staging.target, **{"total-data-files": "0", "total-records": "0"})
    writer.write(staging.batch(orders(("U", 1, "A", 1), ("D", 2, None, None)), 2))
    assert rows(staging.target) == [(1, "A", 1)]


@pytest.mark.parametrize("write", [Write.MERGE], ids=["merge"])
def test_a_table_without_files_is_empty(
    writer: IcebergWriter, staging, orders, rows: Rows, spark: SparkSession
) -> None:
    """At its first write, and again once all of its files are gone."""
    assert way_of(writer, staging.batch(orders(("U", 1, "a", 1)), 1)) == "append"
    spark.sql(f"DELETE FROM {'.'.join(staging.target)}")
    assert way_of(writer, staging.batch(orders(("U", 1, "b", 1)), 2)) == "append"
    assert rows(staging.target) == [(1, "b", 1)]
