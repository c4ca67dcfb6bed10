"""A cluster's executors do the large work, whichever it is, and see nothing of the driver's disk.

Spark counts the tasks that each executor has done; on a lake of servers the workers are another
user's, who can't read a test's folder (``Cluster.apart``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch, Swap
from changes.model.model import (
    HAS_PREFIX,
    OP,
    POSITION,
    AddColumn,
    ChangeColumn,
    Column,
    KeyBound,
    Mode,
    TableSchema,
    TargetName,
    TruncateTable,
)
from changes.model.positions import position_text, with_ends
from changes.sql.spark import write_strategy as ways
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.staged_source import SharedStaging
from sparkwriter.iceberg.upkeep import Upkeep
from tests.lake.lakes import Lake
from tests.lake.servers.cluster import can_part
from tests.sparkwriter.conftest import LANE, Staging, way_of

pytestmark = [pytest.mark.lake, pytest.mark.integration]

OTHER = TopicPartition("shop", 1)
COLUMNS = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
_names = count()
Change = tuple[str, int, str | None, int | None]


class Far:
    """One table, its writer on the cluster, and how many tasks executors have done for it."""

    def __init__(self, spark: SparkSession, shared: SharedStaging, folder: Path) -> None:
        self.spark, self.shared = spark, shared
        self.target = TargetName("lake", "far", f"t{next(_names)}")
        self.staging = Staging(folder, self.target, TableSchema(COLUMNS, ("id",)))
        self.writer = IcebergWriter(spark, shared_staging=shared)

    def batch(self, through: int, *changes: Change, **more: Any) -> StagedBatch:
        """Staged on the driver's disk."""
        return self.staging.batch(rows_of(changes), through, **more)

    def rows(self, columns: str = "*", table: str = "") -> list[tuple[object, ...]]:
        """As another session reads them, by its executors."""
        sink, namespace, name = self.target
        where = f"`{sink}`.`{namespace}`.`{table or name}`"
        found = self.spark.newSession().sql(f"SELECT {columns} FROM {where} ORDER BY 1")
        return [tuple(row) for row in found.collect()]

    def tasks(self) -> dict[str, int]:
        """The tasks that have ended well, by who did them."""
        context: Any = self.spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        found = context.statusStore().executorList(False)
        each = (found.apply(number) for number in range(found.size()))
        return {str(one.id()): int(one.completedTasks()) for one in each}

    def by_executors(self, act: Callable[[], Any]) -> Any:
        """What ``act`` gives, for which executors alone did tasks."""
        before = self.tasks()
        given = act()
        done = {name: tasks - before.get(name, 0) for name, tasks in self.tasks().items()}
        assert sum(done.values()) > done.get("driver", 0) == 0, done
        return given


def rows_of(changes: Sequence[Change]) -> pa.Table:
    ops, ids, notes, numbers = zip(*changes, strict=True)
    kinds = (pa.string(), pa.int64(), pa.string(), pa.int32())
    arrays = map(pa.array, (ops, ids, notes, numbers), kinds)
    return pa.table(dict(zip((OP, "id", "note", "n"), arrays, strict=True)))


@pytest.fixture
def far(
    spark_master: str, request: pytest.FixtureRequest, lake: Lake, tmp_path: Path
) -> Iterator[Far]:
    """A table that holds orders 1 and 2, its mark at 1. No copy of a staged file stays."""
    if spark_master.startswith("local"):
        pytest.skip("Spark runs in one process")
    spark: SparkSession = request.getfixturevalue("spark")
    shared = SharedStaging(f"{lake.staging}/{next(_names)}")
    made = Far(spark, shared, tmp_path)
    made.writer.write(made.batch(1, ("U", 1, "a", 1), ("U", 2, "b", 2)))
    yield made
    table = LakeCatalog(spark).load(made.target)
    assert table is not None
    assert copies(table.operations.io(), shared) == []


def copies(io: Any, shared: SharedStaging) -> list[str]:
    """What is in the shared staging area."""
    try:
        found = io.listPrefix(f"{shared.folder}/").iterator()
        return [str(found.next().location()) for _ in iter(found.hasNext, False)]
    except Py4JError:  # a file system has no such folder until a file is in it
        return []


@pytest.fixture
def by_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for rows is dear for us."""
    monkeypatch.setattr(ways, "SEEK_ROW_S", 1e9)


@pytest.fixture
def cheap_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job costs nothing."""
    for cost in ("JOB_S", "JOB_ROW_S", "JOB_BATCH_ROW_S", "INSERT_S", "INSERT_ROW_S"):
        monkeypatch.setattr(ways, cost, 0.0)


def test_executors_see_no_staged_file(far: Far, lake: Lake, tmp_path: Path) -> None:
    """The proof of the others: had a plan the driver's path, it would fail."""
    if lake.storage == "folder" or not can_part():
        pytest.skip("the workers are this user's: they may read what it has")
    path = str(tmp_path / "staged.parquet")
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(Exception, match=r"FileNotFoundException|AccessControl|Permission denied"):
        far.spark.read.schema("id BIGINT").parquet(path).collect()


def test_merge(far: Far) -> None:
    """Rows that lack a column, and a delete."""
    partial = rows_of([("U", 1, "A", None), ("D", 2, None, None), ("U", 3, "c", 3)])
    partial = partial.append_column(f"{HAS_PREFIX}n", pa.array([False, True, True]))
    batch = far.staging.batch(partial, 2, partial=["n"])
    assert far.by_executors(lambda: way_of(far.writer, batch)) == "merge"
    assert far.rows() == [(1, "A", 1), (3, "c", 3)]


def test_replace(far: Far, by_job: None) -> None:
    """A job deletes the rows of the batch's keys, and we add its rows."""
    batch = far.batch(2, ("U", 1, "A", 9), ("D", 2, None, None))
    assert far.by_executors(lambda: way_of(far.writer, batch)) == "replace"
    assert far.rows() == [(1, "A", 9)]


def test_insert(far: Far, cheap_jobs: None) -> None:
    """Keys beyond those of the table, added by a job whose tasks share the staged file."""
    keys = range(10, 40_010)
    batch = far.batch(
        2,
        *(("U", key, f"{random.Random(key).random()}", key) for key in keys),
        bounds=[KeyBound("id", keys[0], keys[-1])],
    )
    assert batch.path is not None
    pq.write_table(pq.read_table(batch.path), batch.path, row_group_size=10_000)
    before = far.tasks()
    added = replace(batch, has_deletes=False)
    assert far.by_executors(lambda: way_of(far.writer, added)) == "insert"
    assert all(
        tasks > before.get(name, 0) for name, tasks in far.tasks().items() if name != "driver"
    )
    assert far.rows("count(*), max(id)") == [(40_002, 40_009)]


def test_jobs(far: Far, by_job: None, cheap_jobs: None) -> None:
    """One deletes, another adds."""
    batch = far.batch(2, ("U", 1, "A", 9), ("U", 5, "e", 5), ("D", 2, None, None))
    assert far.by_executors(lambda: way_of(far.writer, batch)) == "jobs"
    assert far.rows() == [(1, "A", 9), (5, "e", 5)]


def test_positions(far: Far) -> None:
    """Two lanes of one table: an older insert of the second does not bring a deleted row back."""
    far.target = far.staging.target = far.target._replace(table=f"{far.target.table}_lanes")

    def write(lane: TopicPartition, through: int, *changes: tuple[int, str, int]) -> None:
        table = rows_of([(op, key, "x", at) for at, op, key in changes])
        texts = pa.array([position_text(at) for at, _, _ in changes])
        table = table.append_column(POSITION, with_ends(texts, table[OP].combine_chunks()))
        batch = far.staging.batch(table, through, after=through - 1, lane=lane)
        far.writer.write(replace(batch, positions="postgres-lsn"))

    write(LANE, 0, (10, "U", 1), (11, "U", 2))
    far.by_executors(lambda: write(LANE, 1, (20, "D", 1)))
    far.by_executors(lambda: write(OTHER, 0, (15, "U", 1), (12, "U", 2), (5, "U", 3)))
    assert far.rows("id, n") == [(2, 12), (3, 5)]


def test_statements(far: Far, by_job: None) -> None:
    """A column is added, one is widened, and the rows that a job writes next have both."""
    wider = ChangeColumn("n", Column("n", pa.int64()))
    added = AddColumn(Column("more", pa.int32()), 7)
    far.writer.write(far.staging.batch(None, 2, ddl=[[added], [wider]]))
    assert far.rows() == [(1, "a", 1, 7), (2, "b", 2, 7)]
    table = rows_of([("U", 1, "A", 3)]).append_column("more", pa.array([4], pa.int32()))
    table = table.set_column(3, "n", pa.array([2**40], pa.int64()))
    far.staging.schema = TableSchema(
        (*COLUMNS[:2], Column("n", pa.int64()), Column("more", pa.int32())), ("id",)
    )
    far.by_executors(lambda: far.writer.write(far.staging.batch(table, 3)))
    assert far.rows() == [(1, "A", 2**40, 4), (2, "b", 2, 7)]
    far.writer.write(far.staging.batch(None, 4, ddl=[[TruncateTable()]]))
    assert far.rows() == []


def test_compaction(far: Far) -> None:
    """Small files become one, by tasks; the rows and the marks stay."""
    settings = CompactionSection.model_construct(small_files=3, max_deletes=4)
    upkeep = Upkeep(anonymous(), MaintenanceSection())
    far.writer = IcebergWriter(far.spark, upkeep, Compactions(settings), far.shared)

    def writes() -> None:
        for number in range(2, 8):
            far.writer.write(far.batch(number, ("U", number, "v", number)))

    far.by_executors(writes)
    files = far.spark.sql(f"SELECT 1 FROM {'.'.join(far.target)}.files").count()
    assert files < 6
    assert far.rows("id, n") == [(1, 1), *((number, number) for number in range(2, 8))]
    assert far.writer.open(far.target).hwms == {LANE: 7}


def test_expiry(far: Far, by_job: None) -> None:
    """The history is cut; what executors wrote and is needed stays."""
    for number in range(2, 6):
        far.writer.write(far.batch(number, ("U", 1, f"v{number}", number)))
    table = LakeCatalog(far.spark).load(far.target)
    assert table is not None
    upkeep = Upkeep(
        anonymous(),
        MaintenanceSection.model_construct(expire_snapshots_older_than_s=-1.0, retain_last=1),
    )
    upkeep.run(far.target, table)
    assert table.snapshots() == 1
    assert far.rows() == [(1, "v5", 5), (2, "b", 2)]


def test_swap(far: Far, by_job: None) -> None:
    """A rebuilt table, filled by jobs, takes the name."""
    old, new = far.target, far.target._replace(table=f"{far.target.table}__rebuild")
    far.staging.target = new
    far.writer.write(far.batch(5, ("U", 1, "wrong", 0), after=-1))
    far.by_executors(lambda: far.writer.write(far.batch(8, ("U", 1, "z", 26))))
    aside = old._replace(table=f"{old.table}__before")
    state = far.writer.swap(Swap(old, new, aside, {LANE: 9}))
    assert (state.hwms, far.rows()) == ({LANE: 8}, [(1, "z", 26)])


def test_reset(far: Far) -> None:
    """A changelog's rows above the new mark go, by a job where a file holds others, too."""
    places = range(4)
    table = pa.table({
        "_op": ["I"] * 4, "_partition": pa.array([0] * 4, pa.int32()),
        "_offset": pa.array(places, pa.int64()), "_index": pa.array([0] * 4, pa.int32()),
        "note": [str(place) for place in places],
    })  # fmt: skip
    far.target = far.staging.target = far.target._replace(table=f"{far.target.table}_log")
    schema = TableSchema((Column("note", pa.string()),), ())
    batch = far.staging.batch(table, 3, after=-1, mode=Mode.APPEND, schema=schema)
    far.writer.write(batch)
    moves = MarkMoves(lower={LANE: 1})
    state = far.by_executors(lambda: far.writer.reset(far.target, moves))
    assert (state.hwms, far.rows("note")) == ({LANE: 1}, [("0",), ("1",)])
