"""Partitioned tables: the quick ways write them, rows move between partitions, and every reader
that prunes finds them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import HAS_PREFIX, OP, Column, KeyBound, TableSchema, TargetName
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.partitions import MOST_PARTITIONS
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from tests.sparkwriter.conftest import Staging, way_of

AT_ONCE = MaintenanceSection(expire_snapshots_older_than_s=0, retain_last=1, interval_s=0)

pytestmark = pytest.mark.integration

COLUMNS = (
    Column("id", pa.int32()),
    Column("At", pa.timestamp("us")),
    Column("region", pa.string()),
    Column("n", pa.int32()),
)
SCHEMA = TableSchema(COLUMNS, ("id",))
PARTITIONS = ["days(at)", "region", "bucket(2, ID)", "truncate(10, n)"]
REGIONS = [None, "", "a/b", "a=b", "__HIVE_DEFAULT_PARTITION__", "null", "ß %2F", "."]
TIMES = [
    None,
    datetime(1, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59),
]


class Row(NamedTuple):
    """A row of the target."""

    id: int
    at: datetime | None
    region: str | None
    n: int | None


def laid_out(batch: StagedBatch, **keys: Any) -> StagedBatch:
    """The batch of a route with these keys."""
    options = [(key, json.dumps(value)) for key, value in keys.items()]
    return replace(batch, options=(*batch.options, *options))


def table_of(rows: Iterable[Row], gone: Iterable[int] = ()) -> pa.Table:
    """A staged file of rows, and of keys that are deleted."""
    given = [*rows, *(Row(key, None, None, None) for key in gone)]
    count = len(given) - len(list(gone))
    ops = ["U"] * count + ["D"] * (len(given) - count)
    columns = zip(COLUMNS, zip(*given, strict=True), strict=True)
    return pa.table({OP: ops} | {c.name: pa.array(values, c.type) for c, values in columns})


def random_row(rng: random.Random, key: int) -> Row:
    return Row(key, rng.choice(TIMES), rng.choice(REGIONS), rng.choice([None, -1, 0, 9, 10]))


@pytest.mark.parametrize("write", [Write.MERGE, Write.EQUALITY])
def test_rows_move_between_partitions(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    """Hostile values, times before 1970; compacted and expired between; found by each value."""
    target = TargetName("lake", "sink", f"parted_{write.value}")
    staging = Staging(tmp_path, target, SCHEMA, write)
    compactions = Compactions(CompactionSection.model_construct(max_deletes=4, small_files=4))
    upkeep = Upkeep(anonymous(), AT_ONCE)
    writer = IcebergWriter(spark, upkeep, compactions)
    rng, held = random.Random(write.value), dict[int, Row]()
    logs = list[Any]()
    for number in range(10):
        keys = rng.sample(range(20), rng.randint(1, 8))
        gone = {key for key in keys if rng.random() < 0.2}
        rows = [random_row(rng, key) for key in keys if key not in gone]
        held = {key: row for key, row in held.items() if key not in gone}
        held |= {row.id: row for row in rows}
        batch = staging.batch(
            table_of(rows, gone), number, bounds=[KeyBound("id", min(keys), max(keys))]
        )
        with capture_logs() as told:
            writer.write(laid_out(batch, partition_by=PARTITIONS, sort_by=["n desc", "id"]))
        logs += [entry for entry in told if entry["event"].startswith("compact")]
    # A file of deleted keys counts in every partition, so those are soon worth it.
    events = {entry["event"] for entry in logs}
    assert events == {"compacted"} or (write is Write.MERGE and not events), logs
    session = spark.newSession()
    found = session.sql(f"SELECT * FROM {'.'.join(target)}").collect()
    assert sorted(Row(*row) for row in found) == sorted(held.values(), key=lambda row: row.id)
    for column, values in (("region", REGIONS), ("at", TIMES), ("id", held), ("n", [None, -1, 9])):
        for value in values:
            # A time as a parameter would be of the Julian calendar before 1582.
            said = f"TIMESTAMP_NTZ '{value}'" if isinstance(value, datetime) else ":value"
            given = {} if isinstance(value, datetime) else {"value": value}
            asked = f"SELECT id FROM {'.'.join(target)} WHERE {column} <=> {said}"
            named = session.sql(asked, given)
            expected = {row.id for row in held.values() if getattr(row, column) == value}
            assert {row.id for row in named.collect()} == expected, (column, value)


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_write_needs_no_job(writer: IcebergWriter, staging: Staging, spark: SparkSession) -> None:
    """A row leaves its partition by a vector in the old one and a file in the new one."""
    staging.schema, staging.target = SCHEMA, TargetName("lake", "sink", "parted_quick")
    keys = {"partition_by": ["days(at)"], "table_properties": {"shop.owner": "a 'b'"}}
    day = datetime(2024, 2, 29)
    first = [Row(key, day + timedelta(days=key), "x", key) for key in range(4)]
    assert way_of(writer, laid_out(staging.batch(table_of(first), 0), **keys)) == "append"
    moved = Row(1, day, None, None)
    batch = staging.batch(table_of([moved], [2]), 1, bounds=[KeyBound("id", 1, 2)])
    assert way_of(writer, laid_out(batch, **keys)) == "vector"
    name = ".".join(staging.target)
    session = spark.newSession()
    rows = session.sql(f"SELECT * FROM {name} ORDER BY id").collect()
    assert [Row(*row) for row in rows] == [first[0], moved, first[3]]
    files = session.sql(f"SELECT partition.at_day FROM {name}.files").collect()
    assert sorted(str(row[0]) for row in files if row[0] is not None) == [
        "2024-02-29",
        "2024-02-29",
        "2024-03-03",
    ]
    shown = session.sql(f"SHOW TBLPROPERTIES {name}('shop.owner')").collect()
    assert [row.value for row in shown] == ["a 'b'"]


def test_a_row_that_lacks_columns_stays_in_its_partition(
    writer: IcebergWriter, staging: Staging, spark: SparkSession
) -> None:
    """Or moves, where the column that it carries is that of the partition."""
    staging.schema, staging.target = (
        SCHEMA,
        TargetName("lake", "sink", f"parted_partial_{staging.write.value}"),
    )
    first = table_of([Row(1, None, "a", 1), Row(2, None, "b", 2)])
    writer.write(laid_out(staging.batch(first, 0), partition_by=["region"]))
    rows = table_of([Row(1, None, None, 5), Row(2, None, "a", None)])
    rows = rows.append_column(HAS_PREFIX + "region", pa.array([False, True]))
    rows = rows.append_column(HAS_PREFIX + "n", pa.array([True, False]))
    batch = staging.batch(rows, 1, partial=("region", "n"))
    writer.write(laid_out(batch, partition_by=["region"]))
    found = spark.newSession().sql(
        f"SELECT * FROM {'.'.join(staging.target)} WHERE region = 'a' ORDER BY id"
    )
    assert [Row(*row) for row in found.collect()] == [Row(1, None, "a", 5), Row(2, None, "a", 2)]


@pytest.mark.parametrize("write", [Write.MERGE, Write.EQUALITY])
def test_a_partition_of_each_row(
    spark: SparkSession, tmp_path: Path, writer: IcebergWriter, write: Write
) -> None:
    """More partitions than files are worth: a job writes them, with the same result."""
    target = TargetName("lake", "sink", f"parted_each_{write.value}")
    staging = Staging(tmp_path, target, SCHEMA, write)
    count = MOST_PARTITIONS + 1
    for number in range(2):
        rows = [Row(key, None, "x", key + number) for key in range(count)]
        batch = laid_out(staging.batch(table_of(rows), number), partition_by=["n"])
        assert way_of(writer, batch) == ("insert" if number == 0 else "replace")
    found = spark.newSession().sql(f"SELECT * FROM {'.'.join(target)} ORDER BY id").collect()
    assert [Row(*row) for row in found] == rows


def test_another_partitioning_is_refused(
    writer: IcebergWriter, staging: Staging, spark: SparkSession
) -> None:
    """Somebody's own, and a route's that asks for another."""
    staging.schema, staging.target = (
        SCHEMA,
        TargetName("lake", "sink", f"parted_by_others_{staging.write.value}"),
    )
    rows = table_of([Row(1, None, "a", 1)])
    writer.write(staging.batch(rows, 0))
    batch = laid_out(staging.batch(rows, 1), partition_by=["region"])
    with pytest.raises(TargetRefused, match="partition_by asks for region, the table has"):
        writer.write(batch)
    spark.newSession().sql(f"ALTER TABLE {'.'.join(staging.target)} ADD PARTITION FIELD region")
    writer.write(batch)
    with pytest.raises(TargetRefused, match=r"asks for days\(At\), the table has region"):
        writer.write(laid_out(staging.batch(rows, 2, after=1), partition_by=["days(At)"]))
    with pytest.raises(TargetRefused, match="sort_by asks for n, the table has"):
        writer.write(laid_out(staging.batch(rows, 2, after=1), sort_by=["n"]))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"partition_by": ["days(n)"]}, r"days\(n\) does not fit a column of type int32"),
        ({"partition_by": ["what"]}, "partition_by names column what"),
        ({"sort_by": ["what desc"]}, "sort_by names column what"),
    ],
)
def test_a_layout_that_no_table_can_have(
    writer: IcebergWriter, staging: Staging, keys: dict[str, list[str]], why: str
) -> None:
    staging.schema, staging.target = SCHEMA, TargetName("lake", "sink", "parted_never")
    with pytest.raises(TargetRefused, match=why):
        writer.write(laid_out(staging.batch(table_of([Row(1, None, "a", 1)]), 0), **keys))
