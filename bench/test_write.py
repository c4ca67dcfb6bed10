"""One write into a table that is there: both ways, and what readers pay until compaction.

``BENCH_TABLE_ROWS=500000,5000000`` sets the sizes of the tables, ``BENCH_ROUNDS=8`` how often each
write is made. Processor time is told beside the clock's: other work on the machine does not
lengthen it.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pytest_benchmark.fixture import BenchmarkFixture

from actors.contract.writes import StagedBatch
from actors.runtime.jars import lake_jars
from actors.runtime.java import find_java
from changes.model.model import OP, Column, KeyBound, Mode, TableSchema, TargetName
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions, Compactor, Jobs
from sparkwriter.iceberg.ownership import ForeignSnapshots, anonymous
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.session.session import start_session

SIZES = [int(text) for text in os.environ.get("BENCH_TABLE_ROWS", "500000,5000000").split(",")]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "8"))
LANE = TopicPartition("bench", 0)
SCHEMA = TableSchema(
    (
        Column("id", pa.int64()),
        Column("name", pa.string()),
        Column("email", pa.string()),
        Column("amount", pa.decimal128(10, 2)),
        Column("qty", pa.int32()),
        Column("created", pa.timestamp("us")),
    ),
    ("id",),
)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the daemon has it, over a lake of its own."""
    folder = tmp_path_factory.mktemp("lake")
    os.environ["JAVA_HOME"] = str(find_java().home)
    lake = {
        "type": "jdbc", "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
        "jdbc.schema-version": "V1", "warehouse": str(folder / "warehouse"),
    }  # fmt: skip
    log_file, scratch = folder / "spark.log", folder / "scratch"
    session = start_session({}, "local[2]", lake_jars(), {"lake": lake}, log_file, scratch)
    yield session
    session.stop()


def rows_of(keys: Sequence[int], seed: int) -> pa.Table:
    """Rows of about 100 bytes."""
    numbers = pa.array([key % 1000 + seed for key in keys], pa.int32())
    created = pa.array([key * 1_000_000 + seed for key in keys], pa.timestamp("us"))
    return pa.table(
        {
            OP: pa.array(["U"] * len(keys)),
            "id": pa.array(keys, pa.int64()),
            "name": pa.array([f"customer {key}" for key in keys]),
            "email": pa.array([f"u{key}.{seed}@example.com" for key in keys]),
            "amount": numbers.cast(pa.decimal128(12, 2)).cast(SCHEMA.columns[3].type),
            "qty": numbers,
            "created": created,
        }
    )


class Took(NamedTuple):
    """Seconds by the clock, and of processor time in the JVM and here."""

    clock: float
    cpu: float


class Table:
    """One table that is written in one way; nothing is compacted unless asked for."""

    def __init__(self, spark: SparkSession, folder: Path, way: Write, size: int) -> None:
        self.spark, self.size, self._way = spark, size, way
        self._staged = folder / "staged.parquet"
        self.target = TargetName("lake", "bench", f"{way.value}_{size}")
        self._mark = NO_OFFSET
        upkeep = Upkeep(anonymous(), MaintenanceSection())
        never = Compactions(CompactionSection.model_construct(enabled=False))
        self._writer = IcebergWriter(spark, upkeep, never)
        # As a table is that grew: its files follow the keys.
        for first in range(0, size, 500_000):
            self.write(range(first, min(first + 500_000, size)))

    def timed(self, act: Callable[[], object]) -> Took:
        """What it takes."""
        clock, cpu = time.monotonic(), self._cpu()
        act()
        return Took(round(time.monotonic() - clock, 2), round(self._cpu() - cpu, 2))

    def _cpu(self) -> float:
        context: Any = self.spark.sparkContext
        stat = Path(f"/proc/{context._gateway.proc.pid}/stat").read_text().rpartition(")")[2]
        ticks = sum(map(int, stat.split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()

    def write(self, keys: Sequence[int]) -> Took:
        """Write these keys."""
        pq.write_table(rows_of(keys, self._mark + 1), self._staged)
        batch = StagedBatch(
            str(self._mark), self.target, Mode.UPSERT, SCHEMA,
            {LANE: Span(self._mark, self._mark + 1)}, str(self._staged), len(keys),
            bounds=(KeyBound("id", min(keys), max(keys)),), options=(("write", self._way.value),),
        )  # fmt: skip
        took = self.timed(lambda: self._writer.write(batch))
        self._mark += 1
        return took

    def scan(self) -> Took:
        """Read every column of every row: the cheapest of three."""
        frame = self.spark.newSession().table(".".join(self.target))
        writer = frame.write.format("noop").mode("overwrite")
        return min((self.timed(writer.save) for _ in range(3)), key=lambda took: took.cpu)

    def compact(self) -> Took:
        """Write anew every file that has a deletion."""
        table = LakeCatalog(self.spark).load(self.target)
        assert table is not None
        settings = CompactionSection.model_construct(max_deletes=1, round_bytes=1 << 40)
        jobs = Jobs(lambda what: None, lambda: None)
        compactor = Compactor(self.spark, jobs, Compactions(settings), ForeignSnapshots())
        return self.timed(lambda: compactor.run(self.target, table))


@pytest.fixture(scope="module")
def table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Write, int], Table]:
    """A table of that size, filled at its first use."""
    made: dict[tuple[Write, int], Table] = {}

    def find(way: Write, size: int) -> Table:
        if (way, size) not in made:
            made[way, size] = Table(spark, tmp_path_factory.mktemp("staged"), way, size)
        return made[way, size]

    return find


@pytest.mark.parametrize("keys", [1_000, 50_000])
@pytest.mark.parametrize("way", list(Write), ids=lambda way: way.value)
@pytest.mark.parametrize("size", SIZES)
def test_write(
    benchmark: BenchmarkFixture,
    table: Callable[[Write, int], Table],
    size: int,
    way: Write,
    keys: int,
) -> None:
    """Updates of any keys of the table, spread over all its files."""
    rng = random.Random(7)
    into = table(way, size)

    def batch() -> tuple[tuple[list[int]], dict[str, object]]:
        return (rng.sample(range(size), keys),), {}

    clean, cpu = into.scan(), []
    benchmark.pedantic(
        lambda keys: cpu.append(into.write(keys).cpu), setup=batch, rounds=ROUNDS, warmup_rounds=2
    )
    benchmark.extra_info |= {
        "write_cpu_s": round(statistics.median(cpu[-ROUNDS:]), 3), "scan_before_s": clean,
        "scan_after_writes_s": into.scan(), "compaction_s": into.compact(),
        "scan_compacted_s": into.scan(),
    }  # fmt: skip
    print({"clock_s": round(benchmark.stats.stats.median, 3), **benchmark.extra_info}, flush=True)


@pytest.fixture(scope="module")
def unused() -> Iterator[int]:
    """How far above a table's first keys the next stretch of new ones begins."""
    return itertools.count(0, 50_000)


@pytest.mark.parametrize("keys", [1_000, 50_000])
@pytest.mark.parametrize("kind", ["new", "recent", "any"])
@pytest.mark.parametrize("size", SIZES)
def test_merge_by_kind(
    benchmark: BenchmarkFixture,
    table: Callable[[Write, int], Table],
    size: int,
    kind: str,
    keys: int,
    unused: Iterator[int],
) -> None:
    """A tenth new keys and updates of the newest or of any; or new keys alone."""
    rng = random.Random(33)
    into = table(Write.MERGE, size)
    of = {"new": range(0), "recent": range(size - min(size, 2 * keys), size), "any": range(size)}

    def batch() -> tuple[tuple[list[int]], dict[str, object]]:
        end, old = size + next(unused), min(keys * 9 // 10, len(of[kind]))
        new = range(end, end + (keys - old if kind == "new" else keys // 10))
        return ([*rng.sample(of[kind], old), *new],), {}

    cpu: list[float] = []
    benchmark.pedantic(
        lambda keys: cpu.append(into.write(keys).cpu), setup=batch, rounds=ROUNDS, warmup_rounds=2
    )
    benchmark.extra_info["write_cpu_s"] = round(statistics.median(cpu[-ROUNDS:]), 3)
