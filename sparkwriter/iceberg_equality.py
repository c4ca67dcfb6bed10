"""Writing by equality delete: two files and one commit through the session's Iceberg API, no job.

Spark SQL has no statement for it. The cost does not depend on the table's size; readers pay, until
the deletes are compacted away (``iceberg_compact``).
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import structlog
from pyspark.sql import SparkSession

from actors.ports import StagedBatch
from changes.model import TargetName, Write
from sparkwriter.equality_files import Laid, lay_files, merge_instead, plan_equality
from sparkwriter.iceberg_java import Java, LakeTable
from sparkwriter.iceberg_look import Seen
from sparkwriter.iceberg_marks import HWM

log: Any = structlog.get_logger(__name__)


class EqualityWrites:
    """The equality writes of one writer; called on its thread.

    Raises one of JavaFailure, TargetRefused, OSError, ArrowException.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Java = spark.sparkContext._gateway
        self._jvm: Java = spark.sparkContext._jvm
        self._merged: dict[TargetName, str] = {}

    def takes(self, seen: Seen, batch: StagedBatch, path: str) -> bool:
        """Whether the batch is to be written so, and can be. Where it can't, the log says why,
        once for each reason and target."""
        if batch.write is not Write.EQUALITY:
            return False
        why = self._merge_instead(seen, batch, path)
        if why is None:
            self._merged.pop(batch.target, None)
        elif self._merged.get(batch.target) != why:
            self._merged[batch.target] = why
            log.info("merged_instead", target=str(batch.target), reason=why)
        return why is None

    def run(self, seen: Seen, batch: StagedBatch, path: str, branch: str, stamp: str) -> None:
        """Commit the batch to the branch, stamped. No rows and no keys: nothing is committed."""
        table = seen.table
        plan = plan_equality(batch, table.fields(), empty=_is_empty(seen))
        local = [Path(f"{path}.{what}") for what in ("rows", "keys")]
        try:
            rows, keys = lay_files(plan, path, *local)
            if not rows.rows and not keys.rows:
                return
            table.refresh()
            delta = table.table.newRowDelta()
            if keys.rows:
                ids = [key.id for key in plan.keys if key.id is not None]
                delta.addDeletes(self._delete_file(table, keys, ids))
            if rows.rows:
                builder = self._iceberg.DataFiles.builder(table.metadata.spec())
                delta.addRows(self._uploaded(table, rows, builder))
            delta.set(HWM, stamp).toBranch(branch).commit()
        finally:
            for file in local:
                file.unlink(missing_ok=True)

    def _merge_instead(self, seen: Seen, batch: StagedBatch, path: str) -> str | None:
        table = seen.table
        if seen.positions is not None:
            return "the target keeps source positions"
        if not table.metadata.spec().isUnpartitioned():
            return "the table is partitioned"
        if table.property("encryption.key-id") is not None:
            return "the table is encrypted"
        staged = pq.read_schema(path).names
        return merge_instead(batch, table.fields(), staged, empty=_is_empty(seen))

    def _delete_file(self, table: LakeTable, keys: Laid, ids: list[int]) -> Java:
        array = self._gateway.new_array(self._jvm.int, len(ids))
        for at, id_ in enumerate(ids):
            array[at] = id_
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.metadata.spec())
        return self._uploaded(table, keys, builder.ofEqualityDeletes(array))

    def _uploaded(self, table: LakeTable, laid: Laid, builder: Java) -> Java:
        """The file in the table's own storage, whichever that is, and what describes it.

        Its metrics are read from the local copy: on an object store that spares requests.
        """
        name = f"binlogd-{uuid4()}.parquet"
        place = table.table.locationProvider().newDataLocation(name)
        out = table.table.io().newOutputFile(place).create()
        try:
            size = self._jvm.java.nio.file.Files.copy(
                self._jvm.java.io.File(str(laid.path)).toPath(), out
            )
        finally:
            out.close()
        iceberg = self._iceberg
        config = iceberg.MetricsConfig.forTable(table.table)
        local = iceberg.Files.localInput(str(laid.path))
        metrics = iceberg.parquet.ParquetUtil.fileMetrics(local, config)
        described = builder.withPath(place).withFormat("PARQUET").withFileSizeInBytes(size)
        return described.withMetrics(metrics).build()

    @cached_property
    def _iceberg(self) -> Java:
        return self._jvm.org.apache.iceberg


def _is_empty(seen: Seen) -> bool:
    return seen.table.summary(seen.main, "total-data-files") == "0"
