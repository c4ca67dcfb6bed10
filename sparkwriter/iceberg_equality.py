"""Writing by equality delete: two files and one commit through the session's Iceberg API, no job.

Spark SQL has no statement for it. The cost does not depend on the table's size; readers pay, until
the deletes are compacted away (``iceberg_compact``).
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow.parquet as pq
import structlog
from pyspark.sql import SparkSession

from actors.ports import StagedBatch
from changes.model import TargetName, Write
from sparkwriter.equality_files import EqualityPlan, Laid, lay_files, merge_instead, plan_equality
from sparkwriter.iceberg_direct import Update
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
        self._told: set[tuple[TargetName, str]] = set()

    def plan(self, seen: Seen, batch: StagedBatch, path: str) -> EqualityPlan | None:
        """How the batch is to be written so, None where it is not wanted or can't be.

        Where it can't, the log says why, once for each reason and target.
        """
        if batch.write is not Write.EQUALITY:
            return None
        fields, empty = seen.table.fields(), is_empty(seen)
        why = special(seen)
        why = why or merge_instead(batch, fields, pq.read_schema(path).names, empty=empty)
        if why is None:
            return plan_equality(batch, fields, empty=empty)
        if (batch.target, why) not in self._told:
            self._told.add((batch.target, why))
            log.info("merged_instead", target=str(batch.target), reason=why)
        return None

    def update(
        self, table: LakeTable, plan: EqualityPlan, path: str, stamp: str, *, deletes: bool = True
    ) -> Update:
        """The batch's files in the table's storage, as an update that is yet to be published.

        Without ``deletes`` its rows alone: the stored rows of its keys are gone already.
        """
        local = [Path(f"{path}.{what}") for what in ("rows", "keys")]
        try:
            rows, keys = lay_files(plan, path, *local, with_keys=deletes)
            if not rows.rows and not keys.rows:
                return Update(table.table.newFastAppend().set(HWM, stamp))
            delta, files = table.table.newRowDelta().set(HWM, stamp), []
            if keys.rows:
                ids = [key.id for key in plan.keys if key.id is not None]
                files.append(self._delete_file(table, keys, ids))
                delta.addDeletes(files[-1])
            if rows.rows:
                builder = self._java.data_files.builder(table.metadata.spec())
                files.append(self._uploaded(table, rows, builder))
                delta.addRows(files[-1])
            return Update(delta, tuple(str(file.location()) for file in files))
        finally:
            for file in local:
                file.unlink(missing_ok=True)

    def _delete_file(self, table: LakeTable, keys: Laid, ids: list[int]) -> Java:
        array = self._gateway.new_array(self._jvm.int, len(ids))
        for at, id_ in enumerate(ids):
            array[at] = id_
        builder = self._java.file_metadata.deleteFileBuilder(table.metadata.spec())
        return self._uploaded(table, keys, builder.ofEqualityDeletes(array))

    def _uploaded(self, table: LakeTable, laid: Laid, builder: Java) -> Java:
        """The file in the table's own storage, whichever that is, and what describes it.

        Its metrics are read from the local copy: on an object store that spares requests.
        """
        java, lake = self._java, table.table
        place = lake.locationProvider().newDataLocation(f"binlogd-{uuid4()}.parquet")
        local = java.local_input(str(laid.path))
        out = lake.io().newOutputFile(place).create()
        try:
            size = java.copy(java.path(str(laid.path)), out)
        finally:
            out.close()
        metrics = java.metrics(local, java.metrics_config(lake))
        described = builder.withPath(place).withFormat("PARQUET").withFileSizeInBytes(size)
        return described.withMetrics(metrics).build()

    @cached_property
    def _java(self) -> _Java:
        """Looked up once: each name on the way to a class is a call into the JVM."""
        iceberg, file = self._jvm.org.apache.iceberg, self._jvm.java.io.File
        return _Java(
            data_files=iceberg.DataFiles,
            file_metadata=iceberg.FileMetadata,
            local_input=iceberg.Files.localInput,
            metrics=iceberg.parquet.ParquetUtil.fileMetrics,
            metrics_config=iceberg.MetricsConfig.forTable,
            copy=self._jvm.java.nio.file.Files.copy,
            path=lambda text: file(text).toPath(),
        )


class _Java(NamedTuple):
    data_files: Java
    file_metadata: Java
    local_input: Java
    metrics: Java
    metrics_config: Java
    copy: Java
    path: Java


def special(seen: Seen) -> str | None:
    """Why the target can't take a file that Iceberg's own writer did not make."""
    if seen.positions is not None:
        return "the target keeps source positions"
    if not seen.table.metadata.spec().isUnpartitioned():
        return "the table is partitioned"
    if seen.table.property("encryption.key-id") is not None:
        return "the table is encrypted"
    if not seen.table.metadata.sortOrder().isUnsorted():
        return "the table has a sort order"
    if (seen.table.property("write.format.default") or "parquet").lower() != "parquet":
        return "the table's files are not Parquet"
    return None


def is_empty(seen: Seen) -> bool:
    """Whether the target holds no row."""
    return seen.table.summary(seen.main, "total-data-files") == "0"
