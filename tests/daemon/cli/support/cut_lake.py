"""A lake with cuts, as the daemon would have written them, for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.cuts_table import staged_row
from changes.model.model import OP, Column, Mode, TableSchema, TargetName
from offsets.cuts import HOUR_S, Cut, KeepCuts
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition
from sparkwriter.iceberg.sink import IcebergWriter

SHOP, CUTS = TopicPartition("shop", 0), TopicPartition("cuts", 0)
ORDERS, ITEMS = (TargetName("lake", "cut_shop", name) for name in ("orders", "items"))
TABLE = TargetName("lake", "cut_shop", "listed")
FIRST = 1_800_000_000 + 60
"""A minute behind a full hour."""
SECOND, THIRD = FIRST + 60, FIRST + 2 * HOUR_S
WITHDRAWAL = THIRD + 60
SCHEMA = TableSchema((Column("id", pa.int64()), Column("n", pa.int32())), ("id",))


class CutLake:
    """Writes tables and rows of cuts, each write one offset further."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._writer, self._folder = IcebergWriter(spark), folder
        self._at: dict[TargetName, int] = {}

    def write(self, target: TargetName, rows: pa.Table, schema: TableSchema = SCHEMA) -> str:
        after = self._at.get(target, NO_OFFSET)
        through = self._at[target] = after + 1
        path = self._folder / f"{target.table}-{through}.parquet"
        pq.write_table(rows, path)
        lane = CUTS if target == TABLE else SHOP
        batch = StagedBatch(
            f"{target.table}-{through}", target, Mode.UPSERT, schema, {lane: Span(after, through)},
            path=str(path), rows=rows.num_rows,
        )  # fmt: skip
        return str(self._writer.write(batch).version)

    def numbers(self, target: TargetName, *numbers: int) -> str:
        ids = range(len(numbers))
        columns = {"id": pa.array(ids, pa.int64()), "n": pa.array(numbers, pa.int32())}
        return self.write(target, pa.table({OP: ["U" for _ in ids], **columns}))

    def cut(self, cut: Cut) -> Cut:
        for name, version in cut.versions.items():
            target = TargetName.parse(name)
            self._writer.tag(target, version, cut.number, KeepCuts(HOUR_S, 1))
        rows, schema = staged_row(cut)
        self.write(TABLE, rows, schema)
        return cut
