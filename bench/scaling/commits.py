"""Commits a second that a catalog takes from so many writers, each with a table of its own."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from pyspark.sql import SparkSession

from bench.compare.measure import family
from changes.model.model import TargetName
from changes.sql.spark.schema import LakeColumn
from sparkwriter.iceberg.catalog import LakeCatalog

FOR_S = 4.0
WRITERS = (1, 2, 4, 8)
HISTORIES = (10, 300, 3600)
"""Snapshots: the fewest that are kept, five minutes and an hour of a write a second."""

_numbers = count()


@dataclass(frozen=True, slots=True)
class Rate:
    """What a number of writers reached, and what of it the catalog's server spent."""

    writers: int
    a_second: float
    server_cpu_ms: float
    """Of the server, for each commit."""


def measure(spark: SparkSession, catalog: str, server: int) -> list[Rate]:
    """The rate for each number of writers; ``server``: the process whose children serve."""
    _rate([_table(spark, catalog)], server)  # not yet compiled
    return [_rate([_table(spark, catalog) for _ in range(writers)], server) for writers in WRITERS]


def by_history(spark: SparkSession, catalog: str) -> Iterator[tuple[int, float, int]]:
    """What a commit takes into a table with so many snapshots, in seconds; and how many bytes of
    metadata it writes."""
    for snapshots in HISTORIES:
        table = _table(spark, catalog)
        together = table.newTransaction()
        for _ in range(snapshots):
            together.newFastAppend().set("binlogd.hwm", "{}").commit()
        together.commitTransaction()
        took = []
        for _ in range(7):
            begun = time.monotonic()
            _commit(table)
            took.append(time.monotonic() - begun)
        written = str(table.operations().current().metadataFileLocation())
        size = int(table.io().newInputFile(written).getLength())
        yield snapshots, statistics.median(took), size


def _table(spark: SparkSession, catalog: str) -> Any:
    """A new one, as Java has it."""
    lake, target = LakeCatalog(spark), TargetName(catalog, "commits", f"t{next(_numbers)}")
    lake.create(target, [LakeColumn("id", "long")], {"format-version": "3"}, ("a", "b"))
    table = lake.load(target)
    assert table is not None
    return table.table


def _rate(tables: list[Any], server: int) -> Rate:
    done = [0] * len(tables)
    end = time.monotonic() + FOR_S

    def write(number: int) -> None:
        while time.monotonic() < end:
            _commit(tables[number])
            done[number] += 1

    before, begun = _seconds(server), time.monotonic()
    _together([lambda number=number: write(number) for number in range(len(tables))])
    spent, took = _seconds(server) - before, time.monotonic() - begun
    return Rate(len(tables), sum(done) / took, 1000 * spent / sum(done))


def _together(tasks: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _commit(table: Any) -> None:
    table.newFastAppend().set("binlogd.hwm", "{}").commit()


def _seconds(root: int) -> float:
    return sum(process.cpu_s for process in family(root))
