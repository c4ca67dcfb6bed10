"""A write made in memory is published in one commit, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from changes.model.errors import LostRace, SinkUnavailable, TargetRefused
from changes.model.model import OP, KeyBound, TargetName
from changes.sql.spark import write_strategy as ways
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.publish import MAIN, publish_attempt
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import way_of

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("write", [Write.MERGE])]
LANE = TopicPartition("shop", 0)
Rows = Callable[..., list[tuple[object, ...]]]


def load(spark: SparkSession, target: TargetName, kind: type[Any] = LakeTable) -> Any:
    """The table as another process would load it, behind the given class."""
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return kind(spark.sparkContext._jvm, table.table)


def attempt_of(table: LakeTable, mark: int) -> LakeTable:
    """An attempt that moves the mark and nothing else."""
    attempt = table.begin()
    attempt.stamp(MAIN, HWM, f'{{"shop:0": {mark}}}')
    attempt.refresh()
    return attempt


@pytest.fixture
def begun(writer: IcebergWriter, staging: Any, orders: Any) -> Any:
    """The staging of a target that holds order 1 and the mark 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    return staging


@pytest.fixture(autouse=True)
def _by_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rows for us to look through: statements find what a batch replaces."""
    monkeypatch.setattr(ways, "SEEK_ROW_S", 1e9)


class Raced(LakeTable):
    """Between its look and its commit, something else commits."""

    between: Callable[[], object]

    def commit(self, change: Callable[[Any], object]) -> None:
        between, self.between = self.between, lambda: None
        between()
        super().commit(change)


class Deaf(LakeTable):
    """Its commits land, their replies do not."""

    def commit(self, change: Callable[[Any], object]) -> None:
        super().commit(change)
        raise Py4JError("the reply was lost")


def test_nobody_sees_an_attempt(begun, spark: SparkSession, writer) -> None:
    """What is committed to it changes nothing in the catalog."""
    table = load(spark, begun.target)
    before = table.head(MAIN)
    attempt = attempt_of(table, 99)
    assert attempt.head(MAIN) != before
    assert load(spark, begun.target).head(MAIN) == before
    assert writer.open(begun.target).hwms == {LANE: 1}


def test_zombie(writer, begun, spark: SparkSession, rows: Rows, orders) -> None:
    """An attempt from before another's publish can't land after it."""
    zombie = load(spark, begun.target)
    main = zombie.head(MAIN)
    attempt = attempt_of(zombie, 99)
    state = writer.write(begun.batch(orders(("U", 2, "b", 2)), 2))
    with pytest.raises(LostRace, match="main moved"):
        publish_attempt(zombie, attempt, main)
    assert writer.open(begun.target) == state
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]


def test_an_attempt_that_lost_leaves_no_file(
    writer, begun, spark, warehouse: Path, orders, rows: Rows
) -> None:
    """What it wrote goes with it; what the winner wrote stays, and what both stand on."""
    name = f"lake.{begun.target.namespace}.{begun.target.table}"
    late = begun.batch(orders(("U", 1, "late", 9), ("U", 3, "late", 9)), 2)
    other = IcebergWriter(spark)
    folder = warehouse / begun.target.namespace / begun.target.table

    def files() -> set[str]:
        return {path.name for path in folder.rglob("*") if path.suffix != ".crc"}

    def lose(table: LakeTable, sink: str, text: str) -> None:
        merge(table, sink, text)
        other.write(replace(late, path=None))
        after.update(files())

    after: set[str] = set()
    merge = writer._lake._statements._loose.merge
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer._lake._statements._loose, "merge", lose)
        with pytest.raises(LostRace):
            writer.write(replace(late, batch_id="late"))
    gone = {name for name in after if name.endswith((".puffin", "-deletes.puffin"))}
    assert gone
    assert not gone & files()
    assert not {name for name in files() if name.endswith(".parquet")} - {
        Path(row.file_path).name
        for row in spark.sql(f"SELECT file_path FROM {name}.files").collect()
    }
    assert rows(begun.target) == [(1, "a", 1)]


def test_a_removal_that_fails_leaves_no_file(
    writer, begun, warehouse: Path, orders, monkeypatch
) -> None:
    """The rows that were to come behind it are in the table's storage by then, and go again."""
    folder = warehouse / begun.target.namespace / begun.target.table
    before = set(folder.rglob("*.parquet"))
    written: list[set[Path]] = []

    def fail(table: LakeTable, sink: str, text: str) -> None:
        written.append(set(folder.rglob("*.parquet")))
        raise Py4JError("cancelled")

    monkeypatch.setattr(writer._lake._statements._loose, "merge", fail)
    with pytest.raises(SinkUnavailable, match="cancelled"):
        writer.write(begun.batch(orders(("U", 1, "b", 2)), 2))
    assert len(written[0] - before) == 1
    assert set(folder.rglob("*.parquet")) == before


def test_main_moves_between_look_and_commit(writer, begun, spark, rows: Rows, orders) -> None:
    """A publish that was fine when looked at loses to one that commits first, which stays."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    attempt = attempt_of(table, 99)
    batch = begun.batch(orders(("U", 2, "b", 2)), 2)
    table.between = lambda: writer.write(batch)
    with pytest.raises(LostRace, match="main moved"):
        publish_attempt(table, attempt, main)
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]
    assert writer.open(begun.target).hwms == {LANE: 2}


def test_main_moved_before_the_attempt(writer, begun, spark, rows: Rows, orders) -> None:
    """What was made from a newer main than was looked at is not taken for the write's own."""
    catalog = writer._lake.catalog  # of all tests: nothing may stay on it
    look = catalog.load
    other = IcebergWriter(spark)
    ahead = begun.batch(orders(("U", 1, "b", 2)), 2)
    late = replace(ahead, batch_id="late")

    def load_then_lose(target: TargetName) -> LakeTable | None:
        del catalog.load
        table = look(target)
        other.write(ahead)
        return table

    catalog.load = load_then_lose
    with pytest.raises(LostRace, match="main moved"):
        writer.write(late)
    assert writer.write(late).covered
    assert rows(begun.target) == [(1, "b", 2)]


def test_unrelated_commit_between(writer, begun, spark: SparkSession) -> None:
    """A commit that leaves main where it is only makes the publish look again, and both stay."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    attempt = attempt_of(table, 3)
    name = ".".join(begun.target)
    table.between = lambda: spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    publish_attempt(table, attempt, main)
    assert writer.open(begun.target).hwms == {LANE: 3}
    assert load(spark, begun.target).property("a") == "b"


def test_reply_that_is_lost(writer, begun, spark: SparkSession) -> None:
    """A publish that landed is found to have, though its commit seemed to fail."""
    table = load(spark, begun.target, Deaf)
    main = table.head(MAIN)
    head = publish_attempt(table, attempt_of(table, 4), main)
    assert load(spark, begun.target).head(MAIN) == head
    assert writer.open(begun.target).hwms == {LANE: 4}


def test_jobs_delete_and_add(writer, begun, orders, rows, spark, monkeypatch) -> None:
    """Where the session's cores add rows sooner, too, a second job does it, in the same commit."""
    monkeypatch.setattr(ways, "INSERT_S", 0.0)
    monkeypatch.setattr(ways, "INSERT_ROW_S", 0.0)
    batch = begun.batch(orders(("U", 1, "b", 2), ("U", 2, "c", None), ("D", 3, None, None)), 2)
    assert way_of(writer, batch) == "jobs"
    assert rows(begun.target) == [(1, "b", 2), (2, "c", None)]
    assert writer.open(begun.target).hwms == {LANE: 2}
    deletes = begun.batch(orders(("D", 1, None, None)), 3)
    assert way_of(writer, deletes) == "jobs"
    assert rows(begun.target) == [(2, "c", None)]
    assert writer.open(begun.target).hwms == {LANE: 3}


def test_a_write_is_one_commit(writer, begun, orders, spark, warehouse: Path) -> None:
    """One metadata file a write, whichever way it goes; no branch; the last snapshot is stamped."""
    folder = warehouse / begun.target.namespace / begun.target.table / "metadata"
    partial = orders(("U", 1, None, 7), ("U", 4, "d", 4)).append_column(
        "__binlogd_has_note", pa.array([False, True])
    )
    batches = (
        ("append", begun.batch(orders(("U", 9, "i", 9)), 2, bounds=[KeyBound("id", 9, 9)])),
        ("replace", begun.batch(orders(("U", 9, "j", 1), ("D", 1, None, None)), 3)),
        ("merge", begun.batch(partial, 4, partial=["note"])),
    )
    for way, batch in batches:
        # Not known to be new where a delete may be in it.
        batch = replace(batch, has_deletes=way != "append")
        before = len(list(folder.glob("*.metadata.json")))
        assert way_of(writer, batch) == way
        assert len(list(folder.glob("*.metadata.json"))) == before + 1
    table = load(spark, begun.target)
    assert table.branches() == (MAIN,)
    assert table.summary(table.head(MAIN) or 0, HWM) is not None


@pytest.mark.parametrize(
    ("bounds", "way"),
    [
        ([KeyBound("ID", 2, 3)], "append"),
        ([KeyBound("id", -5, 0)], "append"),
        ([KeyBound("id", 0, 1)], "replace"),
        ([KeyBound("id", 1, 2)], "replace"),
        ([], "replace"),
    ],
)
def test_keys_beyond_every_file_are_new(writer, begun, orders, rows: Rows, bounds, way) -> None:
    """Where no file's range meets the batch's, nothing is looked for; at its very edge it is."""
    low, high = (bounds[0].lower, bounds[0].upper) if bounds else (1, 1)
    table = orders(("U", low, "x", 0), ("U", high, "y", 0)).slice(0, 2 if low < high else 1)
    batch = replace(begun.batch(table, 2, bounds=bounds), has_deletes=False)
    assert way_of(writer, batch) == way
    ids = [row[0] for row in rows(begun.target)]
    assert sorted(ids) == sorted({1, low, high})


def test_a_replayed_batch_is_not_new(writer, begun, orders, rows: Rows) -> None:
    """The same rows once more, as after a reset: found in the files, and replaced."""
    for through in (2, 3):
        table = orders(("U", 5, "e", through), ("U", 6, "f", through))
        batch = begun.batch(table, through, bounds=[KeyBound("id", 5, 6)])
        writer.write(replace(batch, has_deletes=False))
    assert rows(begun.target) == [(1, "a", 1), (5, "e", 3), (6, "f", 3)]


def test_a_value_that_does_not_fit_leaves_nothing(writer, begun, rows: Rows, orders) -> None:
    """It is found out after the deletion: readers saw none of that, and the key can be written."""
    bad = pa.table({OP: ["U"], "id": [1], "note": ["x"], "n": pa.array([2**40], "i8")})
    with pytest.raises(TargetRefused, match="n: "):
        writer.write(begun.batch(bad, 2))
    assert rows(begun.target) == [(1, "a", 1)]
    writer.write(begun.batch(orders(("U", 1, "b", 2)), 2, after=1))
    assert rows(begun.target) == [(1, "b", 2)]


def test_random_batches_against_a_dictionary(writer, begun, rows: Rows, orders) -> None:
    """Whatever the ways that are taken, the table is what the batches say."""
    chance, held = random.Random(33), {1: ("a", 1)}
    for number in range(2, 14):
        ids = chance.sample(range(number * 4), chance.randrange(1, 6))
        changes = [(chance.choice("UUD"), key, f"v{number}", number) for key in ids]
        deletes = any(op == "D" for op, *_ in changes)
        bounds = [KeyBound("id", min(ids), max(ids))]
        batch = begun.batch(orders(*changes), number, bounds=bounds)
        writer.write(replace(batch, has_deletes=deletes))
        for op, key, note, n in changes:
            if op == "D":
                held.pop(key, None)
            else:
                held[key] = (note, n)
    assert rows(begun.target) == sorted((key, *rest) for key, rest in held.items())
