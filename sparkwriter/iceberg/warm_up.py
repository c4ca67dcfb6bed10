"""A few writes into a scratch table, so that the first real ones find a JVM that has written.

On a cold JVM the first write costs 10 s and more on two cores (classes are loaded, plans and
their code compiled for the first time), all targets wait for it, and a daemon that restarts shows
old rows for that long. Done while nothing waits, it is part of Spark's start.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import structlog
from pyspark.sql import SparkSession

from actors.contract.ports import SinkUnavailable, TargetRefused
from actors.contract.writes import StagedBatch
from changes.model import OP, Column, KeyBound, Mode, TableSchema, TargetName
from offsets.fence import Fenced, Span
from offsets.position import NO_OFFSET, TopicPartition
from sparkwriter.iceberg.sink import IcebergWriter

CATALOG = "binlogd_warm_up"
"""The scratch catalog's name in the session: a folder, gone when the warm-up is over."""

LANE = TopicPartition("warm-up", 0)
TARGET = TargetName(CATALOG, "scratch", "rows")
SCHEMA = TableSchema(
    (
        Column("id", pa.int64()),
        Column("name", pa.string()),
        Column("price", pa.decimal128(10, 2)),
        Column("day", pa.date32()),
        Column("at", pa.timestamp("us", tz="UTC")),
    ),
    ("id",),
)
ROWS = 500
ROUNDS = 3
"""MERGEs after the first append: each is cheaper than the one before."""


def warm_up_catalog(folder: Path) -> dict[str, str]:
    """The properties with which the session must know ``CATALOG``."""
    return {"type": "hadoop", "warehouse": str(folder)}


def warm_up(spark: SparkSession, folder: Path) -> None:
    """Write, merge and delete in the scratch table, then remove it. Main thread, at the start.

    What goes wrong here is logged and harms nothing: the real writes will tell.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writer = IcebergWriter(spark)
    try:
        for batch in _batches(folder):
            writer.write(batch)
    except (Fenced, SinkUnavailable, TargetRefused) as error:
        structlog.get_logger().warning("warm_up_failed", reason=str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _batches(folder: Path) -> Iterator[StagedBatch]:
    """An append into the empty table, then MERGEs that insert, update and delete."""
    for number in range(ROUNDS + 1):
        first = number * ROWS // 2
        table = _rows(first, deletes=number > 0)
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        yield StagedBatch(
            batch_id=f"warm-up-{number}",
            target=TARGET,
            mode=Mode.UPSERT,
            schema=SCHEMA,
            lanes={LANE: Span(number - 1 if number else NO_OFFSET, number)},
            path=str(path),
            rows=ROWS,
            changes=ROWS,
            has_deletes=number > 0,
            bounds=(KeyBound("id", first, first + ROWS - 1),),
        )


def _rows(first: int, deletes: bool) -> pa.Table:
    ids = range(first, first + ROWS)
    return pa.table(
        {
            OP: ["D" if deletes and number % 10 == 0 else "U" for number in ids],
            "id": pa.array(ids, pa.int64()),
            "name": [f"row {number}" for number in ids],
            "price": pa.array([Decimal(number) for number in ids], pa.decimal128(10, 2)),
            "day": [date(2026, 1, 1)] * ROWS,
            "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * ROWS, pa.timestamp("us", tz="UTC")),
        }
    )
