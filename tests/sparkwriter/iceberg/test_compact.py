"""Compaction: readers have less to do, and see the same rows; the marks stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from changes.model.model import TargetName
from offsets.fence import Fenced
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions, Compactor, Jobs
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
Rows = Callable[..., list[tuple[object, ...]]]
SETTINGS = CompactionSection.model_construct(max_deletes=4, small_files=6)


@pytest.fixture
def compactions() -> Compactions:
    return Compactions(SETTINGS)


@pytest.fixture
def compacting(spark: SparkSession, compactions: Compactions) -> IcebergWriter:
    """A writer that compacts after a few writes."""
    return IcebergWriter(spark, Upkeep(anonymous(), MaintenanceSection()), compactions)


def load(spark: SparkSession, target: TargetName) -> LakeTable:
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return table


def deletes_of(spark: SparkSession, target: TargetName) -> list[int]:
    """Of each file of rows, how many files of deletions a reader applies to it."""
    found = load(spark, target).table.newScan().planFiles().iterator()
    counts = []
    while found.hasNext():
        counts.append(int(found.next().deletes().size()))
    return counts


def count(spark: SparkSession, target: TargetName, files: str) -> int:
    return spark.sql(f"SELECT * FROM {'.'.join(target)}.{files}").count()


def test_reads_stay_within_the_bound(
    compacting: IcebergWriter, staging, orders, spark: SparkSession, rows: Rows, write: Write
) -> None:
    """Whatever is written: no file of rows has more deletions to apply, and files stay few."""
    held: dict[int, tuple[str, int]] = {}
    with capture_logs() as logs:
        for number in range(20):
            changed = {number % 3: "u", 3 + number: "i"}
            held |= {key: (note, number) for key, note in changed.items()}
            gone = [key for key in (number - 4,) if key > 2 and held.pop(key, None)]
            batch = [("U", key, *held[key]) for key in changed]
            batch += [("D", key, None, None) for key in gone]
            compacting.write(staging.batch(orders(*batch), number))
            assert max(deletes_of(spark, staging.target), default=0) <= SETTINGS.max_deletes
    assert rows(staging.target) == [(key, *value) for key, value in sorted(held.items())]
    assert compacting.open(staging.target).hwms == {LANE: 19}
    told = [entry for entry in logs if entry["event"] == "compacted"]
    assert len(told) >= 2, logs
    assert all(entry["files_after"] < entry["files_before"] for entry in told)
    assert not [entry for entry in logs if entry["event"] == "compaction_failed"]
    assert count(spark, staging.target, "data_files") <= SETTINGS.small_files + 3


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_few_deletions_of_many_keys(
    spark: SparkSession, staging, orders, rows: Rows, write: Write
) -> None:
    """What a reader holds in memory is bounded, too: the keys of one file of deletions do."""
    some = Compactions(CompactionSection.model_construct(max_deletes=100, max_deleted_keys=20))
    compacting = IcebergWriter(spark, Upkeep(anonymous(), MaintenanceSection()), some)
    compacting.write(staging.batch(orders(*[("U", n, "old", 0) for n in range(50)]), 0))
    compacting.write(staging.batch(orders(*[("U", n, "new", 1) for n in range(15)]), 1))
    assert count(spark, staging.target, "delete_files") == 0
    assert rows(staging.target) == [(n, *(("new", 1) if n < 15 else ("old", 0))) for n in range(50)]


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_deletions_that_nothing_needs_go(
    compacting: IcebergWriter, staging, orders, spark: SparkSession, rows: Rows
) -> None:
    """Those of keys that were new, though no file is written anew; the marks are in the commit."""
    compacting.write(staging.batch(orders(*[("U", n, "old", 0) for n in range(50)]), 0))
    for number in range(1, 4):
        compacting.write(staging.batch(orders(("U", 100 + number, "new", number)), number))
    assert count(spark, staging.target, "delete_files") == 0
    table = load(spark, staging.target)
    head = table.head(MAIN)
    assert head is not None
    assert table.summary(head, HWM) == '{"shop:0": 3}'
    assert len(rows(staging.target)) == 53


def test_a_writer_that_came_first(
    compacting: IcebergWriter,
    writer: IcebergWriter,
    staging,
    orders,
    spark: SparkSession,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another's publish while files are written anew stands; the compaction is given up, told."""
    real = Compactor._written

    def overtaken(self: Compactor, *args: Any) -> Any:
        made = real(self, *args)
        writer.write(staging.batch(orders(("U", 77, "other", 1)), 77))
        return made

    monkeypatch.setattr(Compactor, "_written", overtaken)
    with capture_logs() as logs:
        for number in range(6):
            changed = ("U", 1, "a", number), ("U", 100 + number, "new", number)
            compacting.write(staging.batch(orders(*changed), number))
            if [entry for entry in logs if entry["event"] == "compaction_failed"]:
                break
    assert (77, "other", 1) in rows(staging.target)
    assert writer.open(staging.target).hwms == {LANE: 77}
    (told,) = [entry for entry in logs if entry["event"] == "compaction_failed"]
    assert "main moved" in told["reason"]
    refs = spark.sql(f"SELECT name FROM {'.'.join(staging.target)}.refs").collect()
    assert [row.name for row in refs] == ["main"]
    monkeypatch.undo()
    with pytest.raises(Fenced):
        compacting.write(staging.batch(orders(("U", 1, "late", 0)), 9, after=5))


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_a_failure_is_told_and_tried_again(
    compacting: IcebergWriter,
    staging,
    orders,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The write that it followed stands; after as many writes again it is done."""

    def broken(self: Compactor, *args: Any) -> Any:
        raise Py4JError("disk full")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(Compactor, "_written", broken)
        for number in range(4):
            compacting.write(staging.batch(orders(("U", 1, "a", number)), number))
    assert [entry["reason"] for entry in logs if entry["event"] == "compaction_failed"]
    assert compacting.open(staging.target).hwms == {LANE: 3}
    before = count(spark, staging.target, "delete_files")
    for number in range(4, 7):
        compacting.write(staging.batch(orders(("U", 1, "a", number)), number))
    assert count(spark, staging.target, "delete_files") < before


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_a_stop_ends_a_compaction_that_runs(
    compacting: IcebergWriter,
    compactions: Compactions,
    staging,
    orders,
    spark: SparkSession,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its jobs are cancelled, its write has been published, and no other one begins."""

    def begin(what: str) -> None:
        compacting._lake._begin_jobs(what)
        compactions.stop()  # from here on the jobs of this group are cancelled as they begin

    monkeypatch.setattr(compacting._lake._compactor, "_jobs", Jobs(begin, compacting.cancel))
    with capture_logs() as logs:
        for number in range(8):
            compacting.write(staging.batch(orders(("U", 1, "a", number)), number))
    assert [entry["event"] for entry in logs if "compact" in entry["event"]] == [
        "compaction_stopped"
    ]
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert rows(staging.target) == [(1, "a", 7)]
    assert count(spark, staging.target, "delete_files") == 7


def test_a_table_partitioned_by_hand(
    compacting: IcebergWriter, staging, orders, spark: SparkSession, rows: Rows
) -> None:
    """It is written and compacted as others are; files from before it was are in no partition."""
    compacting.write(staging.batch(orders(("U", 0, "a", 0)), 0))
    spark.sql(f"ALTER TABLE {'.'.join(staging.target)} ADD PARTITION FIELD bucket(4, id)")
    with capture_logs() as logs:
        for number in range(1, 8):
            compacting.write(staging.batch(orders(("U", number % 3, "a", number)), number))
    told = {entry["event"] for entry in logs}
    assert not told & {"compaction_failed", "merged_instead"}, logs
    assert rows(staging.target) == [(0, "a", 6), (1, "a", 7), (2, "a", 5)]
