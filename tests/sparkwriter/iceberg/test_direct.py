"""An update that is published in one commit is fenced like one that is published by a branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from changes.model.errors import LostRace, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.position import TopicPartition
from sparkwriter.iceberg.direct import Update, publish_update
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.iceberg.test_fence import LANE, Deaf, Raced, load

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("write", [Write.EQUALITY]),
]
OTHER = TopicPartition("shop", 1)
Rows = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def begun(writer: IcebergWriter, staging: Any, orders: Any) -> Any:
    """The staging of a target that holds order 1 and the mark 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    return staging


def stamped(table: LakeTable, mark: int) -> Any:
    """An update without files that moves the mark."""
    return Update(table.table.newFastAppend().set(HWM, f'{{"shop:0": {mark}}}'))


def test_main_moves_between_look_and_commit(
    writer: IcebergWriter, begun, spark: SparkSession, rows: Rows, orders
) -> None:
    """It loses to one that commits first, which stays; it is not put on top of that."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    assert main is not None
    batch = begun.batch(orders(("U", 2, "b", 2)), 2)
    table.between = lambda: writer.write(batch)  # type: ignore[attr-defined]
    with pytest.raises(LostRace, match="main moved"):
        publish_update(table, main, stamped(table, 99))
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]
    assert writer.open(begun.target).hwms == {LANE: 2}
    with pytest.raises(LostRace, match="main moved"):
        publish_update(table, main, stamped(table, 99))


def test_an_unrelated_commit_between(writer: IcebergWriter, begun, spark: SparkSession) -> None:
    """One that leaves main where it is only makes it try again, and both stay."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    assert main is not None
    name = ".".join(begun.target)
    alter = f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')"
    table.between = lambda: spark.sql(alter)  # type: ignore[attr-defined]
    head = publish_update(table, main, stamped(table, 3))
    assert writer.open(begun.target).version == str(head)
    assert writer.open(begun.target).hwms == {LANE: 3}
    assert load(spark, begun.target).property("a") == "b"


def test_a_table_that_is_removed_between(begun, spark: SparkSession) -> None:
    """It is tried again later, as one that was gone before."""
    table = load(spark, begun.target)
    main = table.head(MAIN)
    assert main is not None
    update = stamped(table, 2)
    spark.sql(f"DROP TABLE {'.'.join(begun.target)}")
    with pytest.raises(SinkUnavailable, match="somebody has removed or renamed the table"):
        publish_update(table, main, update)


def test_a_reply_that_is_lost(writer: IcebergWriter, begun, spark: SparkSession) -> None:
    """What landed is found to have, though its commit seemed to fail; it lands once."""
    table = load(spark, begun.target, Deaf)
    main, before = table.head(MAIN), table.snapshots()
    assert main is not None
    head = publish_update(table, main, stamped(table, 4))
    assert writer.open(begun.target).hwms == {LANE: 4}
    table.refresh()
    assert (table.head(MAIN), table.parent(head), table.snapshots()) == (head, main, before + 1)


class Closed(LakeTable):
    """A catalog that takes nothing."""

    def commit(self, change: Callable[[Any], object]) -> None:
        raise Py4JError("read only")


def test_a_catalog_that_takes_nothing(writer: IcebergWriter, begun, spark: SparkSession) -> None:
    """It may be tried again later; readers saw nothing."""
    table = load(spark, begun.target, Closed)
    main = table.head(MAIN)
    assert main is not None
    with pytest.raises(SinkUnavailable, match="takes no commit: Py4JError: read only"):
        publish_update(table, main, stamped(table, 5))
    assert writer.open(begun.target).hwms == {LANE: 1}


def test_a_write_that_was_overtaken(
    spark: SparkSession, begun, rows: Rows, orders, monkeypatch
) -> None:
    """It loses, looks again, and leaves what the other wrote."""
    late = IcebergWriter(spark)
    real = late._lake._equality.update

    def overtaken(*args: Any) -> Any:
        monkeypatch.undo()
        spark.sql(f"INSERT INTO {'.'.join(begun.target)} VALUES (5, 'other', 5)")
        return real(*args)

    monkeypatch.setattr(late._lake._equality, "update", overtaken)
    batch = begun.batch(orders(("U", 1, "b", 2), ("U", 2, "b", 2)), 2, after=1)
    with pytest.raises(LostRace, match="main moved"):
        late.write(batch)
    late.write(batch)
    assert rows(begun.target) == [(1, "b", 2), (2, "b", 2), (5, "other", 5)]
    assert late.open(begun.target).hwms == {LANE: 2}


def files(warehouse: Path, target: TargetName) -> set[str]:
    """The table's files, but for those of its metadata that the catalog names."""
    found = (warehouse / target.namespace / target.table).rglob("*")
    return {file.name for file in found if file.suffix in {".parquet", ".avro"}}


def test_what_lost_its_race_leaves_no_file(
    spark: SparkSession, writer: IcebergWriter, begun, warehouse: Path, orders, monkeypatch
) -> None:
    """Neither of those written before main moved, nor of the snapshot that was made of them."""
    late, real, after = IcebergWriter(spark), LakeTable.commit, set[str]()

    def overtaken(table: LakeTable, change: Callable[[Any], object]) -> None:
        monkeypatch.undo()
        writer.write(begun.batch(None, 7, after=-1, lane=OTHER))
        after.update(files(warehouse, begun.target))
        real(table, change)

    batch = begun.batch(orders(("U", 1, "late", 9)), 2, after=1)
    before = files(warehouse, begun.target)
    monkeypatch.setattr(LakeTable, "commit", overtaken)
    with pytest.raises(LostRace, match="main moved"):
        late.write(batch)
    left = files(warehouse, begun.target)
    assert {name for name in left if name.endswith(".parquet")} <= before
    assert len(after - left) == 5  # rows, keys, a manifest of each, their list
    with pytest.raises(TargetRefused, match="no order between them"):
        late.write(batch)
    assert late.open(begun.target).hwms == {LANE: 1, OTHER: 7}


def test_what_landed_unheard_and_was_overtaken_keeps_its_files(
    spark: SparkSession, writer: IcebergWriter, begun, rows: Rows, orders, monkeypatch
) -> None:
    """Main shows neither what was expected nor the write itself, but stands on it."""
    late, real = IcebergWriter(spark), LakeTable.commit

    def deaf(table: LakeTable, change: Callable[[Any], object]) -> None:
        monkeypatch.undo()
        real(table, change)
        writer.write(begun.batch(None, 7, after=-1, lane=OTHER))
        raise Py4JError("connection reset")

    batch = begun.batch(orders(("U", 2, "b", 2)), 2, after=1)
    monkeypatch.setattr(LakeTable, "commit", deaf)
    with pytest.raises(LostRace, match="main moved"):
        late.write(batch)
    assert late.write(batch).covered
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]


class Threads:
    """An update that notes who is to do its work."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def scanManifestsWith(self, threads: Any) -> Threads:
        """Java's."""
        self.given.append(str(threads.getClass().getSimpleName()))
        return self

    def writeManifestsWith(self, threads: Any, number: int) -> Threads:
        """Java's."""
        self.given.append(str(threads.getClass().getSimpleName()))
        return self


def test_who_reads_and_writes_manifests(
    begun, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk the thread that commits: Iceberg's pool is waited for in steps of 10 ms."""
    near, far = Threads(), Threads()
    load(spark, begun.target).in_turn(near)
    assert near.given == ["DirectExecutorService"] * 2
    monkeypatch.setattr(LakeTable, "is_local", False)
    load(spark, begun.target).in_turn(far)
    assert far.given == []
