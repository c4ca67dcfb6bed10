"""The costs in ``changes/sql/spark/write_strategy.py``, each measured: what a write takes by size
and by way.

Each way is forced, for batches of two sizes into tables of two sizes; the costs are what fits them
best. Processor time counts, which other work on the machine lengthens little: it is the clock's
time of one thread of ours, and of a job's parts on one core. ``BENCH_WAYS_ROWS`` sets the tables.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table as Lines

from actors.runtime.jars import lake_jars
from actors.runtime.java import find_java
from bench.fit import least_squares
from bench.kept import keep
from bench.test_write import Table
from changes.sql.spark import write_strategy as ways
from changes.sql.spark.write_strategy import BatchFacts, WriteWay
from sparkwriter.iceberg import statements
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.stored_keys import KeySet
from sparkwriter.session.session import start_session

SIZES = [int(rows) for rows in os.environ.get("BENCH_WAYS_ROWS", "500000,4000000").split(",")]
BATCHES = (10_000, 200_000)
ROUNDS = 3
MEASURED = (WriteWay.APPEND, WriteWay.INSERT, WriteWay.VECTOR, WriteWay.REPLACE)


class Point(NamedTuple):
    """One write: what decided, what it took by the clock, and of processor time."""

    stored: int
    files: int
    rows: int
    clock_s: float
    cpu_s: float


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the daemon has it by config.toml."""
    folder = tmp_path_factory.mktemp("lake")
    os.environ["JAVA_HOME"] = str(find_java().home)
    lake = {
        "type": "jdbc", "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
        "jdbc.schema-version": "V1", "warehouse": str(folder / "warehouse"),
    }  # fmt: skip
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    places = folder / "spark.log", folder / "scratch"
    session = start_session(conf, "local[2]", lake_jars(), {"lake": lake}, *places)
    yield session
    session.stop()


@dataclass
class Forced:
    """In place of ``ways.choose``: the way is given, and what would have decided is kept."""

    way: WriteWay | None = None
    stored: int = 0
    files: int = 0

    def __call__(self, facts: BatchFacts) -> WriteWay:
        self.stored, self.files = facts.stored or 0, facts.files
        return self.way or ways.choose(facts)


@pytest.fixture(scope="module")
def points(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[WriteWay, list[Point]]:
    """All writes, each way in turn so that other work on the machine meets them alike."""
    found: dict[WriteWay, list[Point]] = {way: [] for way in MEASURED}
    rng, forced, new = random.Random(7), Forced(), count(max(SIZES), max(BATCHES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "choose", forced)
        other = Table(spark, tmp_path_factory.mktemp("staged"), Write.MERGE, 0)
        for size in SIZES:
            forced.way = None
            into = Table(spark, tmp_path_factory.mktemp("staged"), Write.MERGE, size)
            for rows in BATCHES:
                for number in range(ROUNDS + 1):
                    for way in MEASURED:
                        forced.way, end = way, next(new)
                        if way in (WriteWay.APPEND, WriteWay.INSERT):
                            took = other.write(range(end, end + rows))
                        else:
                            took = into.write(rng.sample(range(size), rows))
                        point = Point(forced.stored, forced.files, rows, took.clock, took.cpu)
                        found[way] += [point] if number else []  # the first one warms up
                into.compact()  # large files without deletions
    return found


def test_costs(points: dict[WriteWay, list[Point]], benchmark: BenchmarkFixture) -> None:
    """What fits the writes best, beside what the daemon reckons with."""
    vector, append = points[WriteWay.VECTOR], points[WriteWay.APPEND]
    replace, insert = points[WriteWay.REPLACE], points[WriteWay.INSERT]
    _, lay = fitted(append, lambda point: [point.rows])
    tables = [(point.files + (point.stored >> 20)) * point.rows for point in vector]
    known = [count * ways.SEEK_TABLE_ROW_S for count in tables]
    vector = [p._replace(cpu_s=p.cpu_s - s) for p, s in zip(vector, known, strict=True)]
    _, seek, each = fitted(vector, lambda point: [point.stored, point.rows])
    job, job_row, job_each = fitted(replace, lambda point: [point.stored, point.rows])
    added, insert_each = fitted(insert, lambda point: [point.rows])
    measured = {
        "SEEK_ROW_S": seek, "SEEK_TABLE_ROW_S": table_row_s(), "SEEK_BATCH_ROW_S": each - lay,
        "LAY_ROW_S": lay,
        "JOB_S": job, "JOB_ROW_S": job_row, "JOB_BATCH_ROW_S": job_each - lay,
        "INSERT_S": added, "INSERT_ROW_S": insert_each,
    }  # fmt: skip
    lines = Lines("cost", "measured", "in ways.py")
    for name, seconds in measured.items():
        lines.add_row(name, f"{seconds:.3g}", f"{getattr(ways, name):.3g}")
    Console(width=100).print(lines)
    show(points)
    keep(benchmark, {"load": os.getloadavg()[0], **measured})


def fitted(points: list[Point], facts: Callable[[Point], list[float]]) -> list[float]:
    """Seconds of a write as such, then for each one of its facts."""
    rows = [[1.0, *facts(point)] for point in points]
    return least_squares(rows, [point.cpu_s for point in points])


def reckoned(way: WriteWay, point: Point) -> float:
    """What the costs in ways.py say of a write, in seconds of one core."""
    lay = point.rows * ways.LAY_ROW_S
    if way is WriteWay.APPEND:
        return lay
    if way is WriteWay.INSERT:
        return ways.INSERT_S + point.rows * ways.INSERT_ROW_S
    if way is WriteWay.REPLACE:
        job = ways.JOB_S + point.stored * ways.JOB_ROW_S + point.rows * ways.JOB_BATCH_ROW_S
        return job + lay
    tables = point.files + (point.stored >> 20)
    each = tables * ways.SEEK_TABLE_ROW_S + ways.SEEK_BATCH_ROW_S
    return point.stored * ways.SEEK_ROW_S + point.rows * each + lay


def table_row_s() -> float:
    """A key of a batch is put into the table that stored keys are looked up in."""
    keys = pa.array(random.Random(7).sample(range(10_000_000), max(BATCHES)))
    stored = pa.chunked_array([pa.array([0])])
    key_set = KeySet([pa.chunked_array([keys])])
    begun = time.process_time()
    for _ in range(10):
        key_set.has([stored])
    return (time.process_time() - begun) / 10 / len(keys)


def show(points: dict[WriteWay, list[Point]]) -> None:
    """The medians of what was measured."""
    lines = Lines("way", "stored rows", "files", "batch", "clock s", "processor s", "ways.py")
    for way, those in points.items():
        for at in range(0, len(those), ROUNDS):
            some = those[at : at + ROUNDS]
            stored = statistics.median(point.stored for point in some)
            clock = statistics.median(point.clock_s for point in some)
            cpu = statistics.median(point.cpu_s for point in some)
            shown = (
                f"{stored:,.0f}",
                str(some[0].files),
                f"{some[0].rows:,}",
                f"{clock:.2f}",
                f"{cpu:.2f}",
            )
            lines.add_row(way.value, *shown)
    Console(width=100).print(lines)
