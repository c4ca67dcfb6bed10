"""Old snapshots and dead branches go with their files; marks, live branches and rows stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from changes.model.model import TargetName
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.ownership import Owner, this_process
from sparkwriter.iceberg.publish import MAIN, create_branch, publish_branch
from sparkwriter.iceberg.section import MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep

pytestmark = [pytest.mark.integration, pytest.mark.long]
LANE = TopicPartition("shop", 0)
STATE = "0123456789ab"
ME = this_process(STATE)
DEAD = replace(ME, started=ME.started - 1)
FOREIGN = Owner("ba9876543210", "f" * 12, 1, 1)
HOUR_S = 3600.0
Rows = Callable[..., list[tuple[object, ...]]]


class Clock:
    """The time of day when it was made, put forward by hand."""

    def __init__(self) -> None:
        self._made = time.time()
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return self._made + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def upkeep(clock: Clock) -> Upkeep:
    """Snapshots live for an hour, two at least; looked at every second."""
    settings = MaintenanceSection.model_construct(
        expire_snapshots_older_than_s=HOUR_S, retain_last=2, interval_s=1.0
    )
    return Upkeep(ME, settings, clock)


@pytest.fixture
def kept(spark: SparkSession, upkeep: Upkeep) -> IcebergWriter:
    """A writer whose tables are kept small."""
    return IcebergWriter(spark, upkeep)


@pytest.fixture
def files(warehouse: Path, target: TargetName) -> Callable[[str], set[str]]:
    """The target's files on disk, ``data`` or ``metadata``, but for checksum files."""

    def find(kind: str) -> set[str]:
        found = (warehouse / target.namespace / target.table / kind).iterdir()
        return {file.name for file in found if not file.name.endswith(".crc")}

    return find


def load(spark: SparkSession, target: TargetName, kind: type[LakeTable] = LakeTable) -> LakeTable:
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return kind(spark.sparkContext._jvm, table.table)


def attempt(
    spark: SparkSession, target: TargetName, owner: Owner, created_s: float, row: int
) -> str:
    """A branch as an attempt leaves it that dies before its publish, with one row of its own."""
    table = load(spark, target)
    main = table.head(MAIN)
    assert main is not None
    branch = owner.branch(created_s)
    create_branch(table, branch, main)
    name = ".".join(f"`{part}`" for part in (*target, f"branch_{branch}"))
    spark.sql(f"INSERT INTO {name} VALUES ({row}, 'attempt', 0)")
    return branch


def names(kinds: set[str], suffix: str) -> set[str]:
    return {name for name in kinds if name.endswith(suffix)}


def test_sixty_writes(kept, staging, orders, clock, spark, files, rows: Rows) -> None:
    """Snapshots, metadata, manifests and data stay bounded; rows and marks are what was written."""
    clock.ahead_s = 2 * HOUR_S  # what was just made is old already
    for number in range(60):
        # Every third with a row; the others, marks alone, make as many snapshots.
        row = orders(("U", number % 2, "v", number)) if number % 3 == 0 else None
        kept.write(staging.batch(row, number))
        clock.ahead_s += 0.25
    assert load(spark, staging.target).snapshots() <= 2 + 4 + 1
    json_files = names(files("metadata"), ".metadata.json")
    assert len(json_files) <= 31, sorted(json_files)
    lists = {name for name in files("metadata") if name.startswith("snap-")}
    assert len(lists) == load(spark, staging.target).snapshots()
    assert rows(staging.target) == [(0, "v", 54), (1, "v", 57)]
    assert kept.open(staging.target).hwms == {LANE: 59}


@pytest.mark.parametrize("write", [Write.MERGE])
def test_files_shrink(kept, upkeep, staging, orders, clock, spark, files, rows: Rows) -> None:
    """What only old snapshots need goes from the disk: data, deletion vectors, manifest lists."""
    clock.ahead_s = -10 * HOUR_S  # not due to expire anything yet
    kept.write(staging.batch(orders(*(("U", row, "v", 0) for row in range(6))), 0))
    for number in range(1, 6):
        kept.write(staging.batch(orders(("U", number, "w", number)), number))
    name = f"{staging.target.namespace}.{staging.target.table}"
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    for number in range(6, 8):
        kept.write(staging.batch(None, number))
    data, metadata = files("data"), files("metadata")
    assert len(names(data, ".puffin")) == 5
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, load(spark, staging.target))
    assert files("data") < data
    assert len(files("data")) == 1
    assert names(files("metadata"), ".avro") < names(metadata, ".avro")
    assert load(spark, staging.target).snapshots() == 2
    assert rows(staging.target) == [(0, "v", 0), *((n, "w", n) for n in range(1, 6))]


def test_a_deletion_vector_stays_with_the_file_it_shares(
    kept, upkeep, staging, orders, clock, spark, rows: Rows
) -> None:
    """One file has the vectors of two data files; one of them is replaced, the other is needed."""
    clock.ahead_s = -10 * HOUR_S  # not due to expire anything yet
    spark.conf.set("spark.sql.shuffle.partitions", "1")  # one task: one file of vectors
    try:
        for number, row in enumerate((1, 2, 1, 2)):
            pair = orders(("U", row, "v", number), ("U", row + 2, "v", number))
            kept.write(staging.batch(pair, number))
        both = orders(("U", 1, "w", 4), ("U", 2, "w", 4))
        kept.write(staging.batch(both, 4))
        kept.write(staging.batch(orders(("U", 3, "x", 5)), 5))
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    for number in (6, 7, 8):
        kept.write(staging.batch(None, number))
    expected = [(1, "w", 4), (2, "w", 4), (3, "x", 5), (4, "v", 3)]
    assert rows(staging.target) == expected
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, load(spark, staging.target))
    assert load(spark, staging.target).snapshots() == 2
    assert rows(staging.target) == expected


def test_nothing_is_old(kept, upkeep, staging, orders, spark) -> None:
    """Young snapshots stay, and there is no commit."""
    for number in range(4):
        kept.write(staging.batch(orders(("U", 1, "v", number)), number))
    table = load(spark, staging.target)
    metadata, snapshots = table.metadata.metadataFileLocation(), table.snapshots()
    upkeep.run(staging.target, table)
    assert load(spark, staging.target).metadata.metadataFileLocation() == metadata
    assert table.snapshots() == snapshots


def test_interval(kept, upkeep, staging, orders, clock, spark) -> None:
    """Between two looks at a table the interval passes, however many writes come."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    ran: list[float] = []
    upkeep.run = lambda target, table: ran.append(clock.ahead_s)
    for ahead_s in (0.0, 0.0, 100.0, 100.0, 200.0):
        clock.ahead_s = ahead_s
        upkeep.written(staging.target, load(spark, staging.target))
    assert ran == [100.0, 200.0]


def test_foreign_compaction_then_expiry_then_restart(
    kept, upkeep, staging, orders, clock, spark, rows: Rows
) -> None:
    """Others' snapshots on top carry no mark: it is put on top again before anything expires."""
    for number in range(3):
        kept.write(staging.batch(orders(("U", number, "v", number)), number))
    name = f"{staging.target.namespace}.{staging.target.table}"
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    for number in range(7, 10):
        spark.sql(f"INSERT INTO lake.{name} VALUES ({number}, 'x', {number})")
    table = load(spark, staging.target)
    assert table.summary(table.head(MAIN), HWM) is None
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, table)
    # The harshest that somebody else's maintenance can do now.
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', "
        "older_than => TIMESTAMP '9999-01-01', retain_last => 1)"
    )
    again = IcebergWriter(spark)
    assert again.open(staging.target).hwms == {LANE: 2}
    again.write(staging.batch(orders(("U", 9, "ours", 9)), 3))
    assert [row[0] for row in rows(staging.target)] == [0, 1, 2, 7, 8, 9]


def test_others_commit_between_stamp_and_expiry(
    kept, upkeep, staging, orders, clock, spark, monkeypatch
) -> None:
    """However much others put on top before our expiry's commit, the marks stay readable."""
    for number in range(3):
        kept.write(staging.batch(orders(("U", number, "v", number)), number))
    expire = LakeTable.expire

    def late(table: LakeTable, older_than_ms: int, retain_last: int) -> None:
        for number in range(3):
            name = ".".join(staging.target)
            spark.sql(f"INSERT INTO {name} VALUES (5{number}, 'x', 0)")
        expire(table, older_than_ms, retain_last)

    monkeypatch.setattr(LakeTable, "expire", late)
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, load(spark, staging.target))
    assert kept.open(staging.target).hwms == {LANE: 2}
    assert load(spark, staging.target).snapshots() == 4


def test_write_of_another_during_the_expiry(
    kept, upkeep, staging, orders, clock, spark, rows: Rows, monkeypatch
) -> None:
    """A publish whose branch is written already lands though the history was cut meanwhile."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    kept.write(staging.batch(orders(("U", 1, "v", 1)), 1))
    clock.ahead_s = 2 * HOUR_S
    monkeypatch.setattr(
        "sparkwriter.iceberg.store.publish_branch",
        lambda table, *refs: (
            upkeep_of_another.run(staging.target, load(spark, staging.target)),
            publish_branch(table, *refs),
        ),
    )
    upkeep_of_another = Upkeep(
        FOREIGN,
        MaintenanceSection.model_construct(
            expire_snapshots_older_than_s=HOUR_S, retain_last=1, interval_s=1.0
        ),
        clock,
    )
    IcebergWriter(spark).write(staging.batch(orders(("U", 2, "w", 2)), 2))
    assert rows(staging.target) == [(1, "v", 1), (2, "w", 2)]
    assert kept.open(staging.target).hwms == {LANE: 2}


def test_dead_branches_go_at_the_first_opening(kept, staging, orders, spark, clock) -> None:
    """The dead run's branch and the old foreign one go; the live, the young, the users' stay."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    now = clock()
    attempt(spark, staging.target, DEAD, now, 7)
    attempt(spark, staging.target, FOREIGN, now - 25 * HOUR_S, 8)
    live = {
        attempt(spark, staging.target, replace(ME, state="ba9876543210"), now - 99 * HOUR_S, 9),
        attempt(spark, staging.target, FOREIGN, now - 23 * HOUR_S, 10),
    }
    load_table = load(spark, staging.target)
    create_branch(load_table, "audit", load_table.head(MAIN))
    kept.open(staging.target)
    assert set(load(spark, staging.target).branches()) == {MAIN, "audit", *live}


def test_later_openings_look_no_more(kept, staging, orders, spark, clock) -> None:
    """Only the first opening pays; what dies later goes with the next upkeep."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    kept.open(staging.target)
    left = attempt(spark, staging.target, DEAD, clock(), 7)
    kept.open(staging.target)
    assert left in load(spark, staging.target).branches()
    clock.ahead_s += 2
    kept.write(staging.batch(orders(("U", 1, "v", 1)), 1))
    assert load(spark, staging.target).branches() == (MAIN,)


def test_our_own_branch_that_could_not_be_dropped(kept, staging, orders, spark, clock) -> None:
    """It goes with the next upkeep, which comes between two writes of the target."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    attempt(spark, staging.target, ME, clock(), 7)
    clock.ahead_s += 2
    kept.write(staging.batch(orders(("U", 1, "v", 1)), 1))
    assert load(spark, staging.target).branches() == (MAIN,)


def test_files_of_a_dead_branch_go(kept, upkeep, staging, orders, spark, clock, files) -> None:
    """Its rows' file was never in main: it goes from the disk when its snapshot expires."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    ours = files("data")
    attempt(spark, staging.target, DEAD, clock(), 7)
    assert ours < files("data")
    kept.open(staging.target)
    assert ours < files("data")
    kept.write(staging.batch(None, 1))
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, load(spark, staging.target))
    assert files("data") == ours


def test_files_of_a_failed_write_go(kept, upkeep, staging, orders, spark, clock, files) -> None:
    """A write that was fenced at its publish leaves nothing for ever either."""
    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    table = load(spark, staging.target)
    main, branch = table.head(MAIN), upkeep.new_branch()
    create_branch(table, branch, main)
    name = ".".join(f"`{part}`" for part in (*staging.target, f"branch_{branch}"))
    spark.sql(f"INSERT INTO {name} VALUES (7, 'late', 0)")
    kept.write(staging.batch(orders(("U", 1, "v", 1)), 1))
    lost = files("data")
    clock.ahead_s = 2 * HOUR_S
    upkeep.run(staging.target, table)
    assert len(files("data")) < len(lost)
    assert not any("late" in str(row) for row in spark.table(".".join(staging.target)).collect())


def test_expiry_that_fails(kept, staging, orders, clock, monkeypatch) -> None:
    """The write it came after stands; the failure is one line, and the next upkeep tries again."""

    def locked(table: LakeTable, older_than_ms: int, retain_last: int) -> None:
        raise Py4JError("the catalog is locked")

    kept.write(staging.batch(orders(("U", 1, "v", 0)), 0))
    monkeypatch.setattr(LakeTable, "expire", locked)
    clock.ahead_s = 2 * HOUR_S
    with capture_logs() as logs:
        state = kept.write(staging.batch(orders(("U", 1, "v", 1)), 1))
    assert state.hwms == {LANE: 1}
    (failed,) = [event for event in logs if event["event"] == "upkeep_failed"]
    assert "the catalog is locked" in failed["reason"]
    monkeypatch.undo()
    clock.ahead_s += 2
    with capture_logs() as logs:
        kept.write(staging.batch(orders(("U", 1, "v", 2)), 2))
    assert "snapshots_expired" in [event["event"] for event in logs]


def test_files_are_shared_with_another_table(kept, upkeep, staging, orders, clock, spark) -> None:
    """A table whose owner switched collection off keeps its snapshots."""
    for number in range(3):
        kept.write(staging.batch(orders(("U", 1, "v", number)), number))
    name = ".".join(staging.target)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('gc.enabled' = 'false')")
    clock.ahead_s = 2 * HOUR_S
    table = load(spark, staging.target)
    before = table.snapshots()
    upkeep.run(staging.target, table)
    assert table.snapshots() == before
