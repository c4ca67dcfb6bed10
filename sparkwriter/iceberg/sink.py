"""The Iceberg sink of one writer: the kit's loop over Iceberg's tables, and tables that change
places."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import structlog
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import OP, Column, KeyBound, Mode, TableSchema, TargetName
from offsets.cuts import KeepCuts
from offsets.fence import Fenced, Span
from offsets.position import NO_OFFSET, TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.probe import check_warehouse
from sparkwriter.iceberg.refusals import explain
from sparkwriter.iceberg.staged_source import SharedStaging
from sparkwriter.iceberg.store import IcebergStore
from sparkwriter.iceberg.swap import remove_table, swap_tables
from sparkwriter.iceberg.tags import say_through, tag_version, untag_above
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.kit.together import TogetherWriter
from sparkwriter.session.java_api import JavaFailure


class IcebergWriter(TogetherWriter[Seen]):
    """``sparkwriter.session.living_sink.SessionSink`` for Iceberg tables. Used on one thread."""

    def __init__(
        self,
        spark: SparkSession,
        upkeep: Upkeep | None = None,
        compactions: Compactions | None = None,
        shared_staging: SharedStaging | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._lake = IcebergStore(spark, upkeep, compactions, shared_staging, settings)
        super().__init__(self._lake)

    def cancel(self) -> None:
        """See ``IcebergStore.cancel``."""
        self._lake.cancel()

    def swap(self, swap: Swap) -> TargetState:
        """Have a rebuilt table take the old one's name. See ``actors.contract.ports.Swaps``."""
        with self._lake.call(swap.old):
            return swap_tables(self._lake.catalog, swap, self._lake.upkeep.new_branch)

    def remove(self, target: TargetName) -> None:
        """Remove what a rebuild made that was given up. See ``actors.contract.ports.Swaps``."""
        with self._lake.call(target):
            self._lake.look(target)  # refuses what is not ours
            remove_table(self._lake.catalog, target)

    def tag(self, target: TargetName, version: str, number: int, keep: KeepCuts) -> None:
        """Name a snapshot as a cut's. See ``actors.contract.ports.Tags``."""
        with self._lake.call(target):
            tag_version(self._lake.catalog, target, version, number, keep)

    def untag(self, target: TargetName, above: int) -> None:
        """Remove the tags of later cuts. See ``actors.contract.ports.Tags``."""
        with self._lake.call(target):
            untag_above(self._lake.catalog, target, above)

    def say_through(self, target: TargetName, moments: Mapping[str, str]) -> bool:
        """Put moments of gates beside a table. See ``actors.contract.ports.Tags``."""
        with self._lake.call(target):
            return say_through(self._lake.catalog, target, moments)


def check_catalog(spark: SparkSession, sink: str, properties: Mapping[str, str]) -> None:
    """Raise SinkUnavailable, in one line with sink and path, where the sink can't be used.

    For the start: makes a local warehouse folder, probes that it can be written, opens the
    catalog and asks it for its namespaces.
    """
    check_warehouse(sink, properties)
    try:
        LakeCatalog(spark).check(sink)
    except JavaFailure as error:
        place = properties.get("uri") or properties.get("warehouse") or "without uri"
        why = explain(error, sink, properties)
        raise SinkUnavailable(f"sink {sink}: can't open the catalog {place}: {why}") from error


# A few writes into a scratch table, so that the first real ones find a JVM that has written.

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
