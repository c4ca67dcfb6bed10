"""A staged file as a relation that a statement reads, also where executors can't see its disk.

On one machine Spark reads the file where it lies. On a cluster it is first put into the shared
staging area, by the table's own ``FileIO``, and read from there as a table that no catalog knows:
so whatever storage the lake is in, executors need nothing beyond what they need for the lake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import structlog
from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from changes.sql.spark.schema import iceberg_type
from changes.sql.spark.words import quote
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.plan import read_schema
from sparkwriter.iceberg.publish import remove_files
from sparkwriter.session.java_api import Java, JavaFailure, JavaNames, java_classes, reason

# SQL on a table that no catalog knows: a write's own view of a table, which it alone may change.


class LooseTables:
    """Runs statements of one session; on the thread that uses it. Raises one of JavaFailure."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        self._jvm: Java = JavaNames(spark.sparkContext._jvm)

    def merge(self, table: LakeTable, sink: str, text: str) -> None:
        """Run a ``MERGE INTO`` with the table, which is of the catalog ``sink``, as its target."""
        java = self._java
        parsed = self._session.sessionState().sqlParser().parsePlan(text)
        # Its alias stays around it: the conditions name that.
        target = parsed.targetTable().withNewChildren(java.seq([self._relation(table, sink)]))
        self._run(parsed.withNewChildren(java.seq([target, parsed.sourceTable()])))

    def append(self, table: LakeTable, sink: str, query: str) -> None:
        """Add the rows of a ``SELECT`` whose columns are the table's, in its order.

        The table is of the catalog ``sink``.
        """
        java = self._java
        rows = self._session.sessionState().sqlParser().parsePlan(query)
        self._run(java.append(self._relation(table, sink), rows, java.options()))

    def all_rows(self, table: LakeTable, sink: str) -> Java:
        """The rows of the table, which is of the catalog ``sink``, as Java's Dataset."""
        return self._java.run(self._session, self._relation(table, sink))

    def rows(self, table: Java, tasks: str, sink: str) -> Java:
        """The rows of the files that Iceberg's ``ScanTaskSetManager`` has under the name ``tasks``,
        as Java's Dataset. The table is Iceberg's, the catalog one that Spark knows."""
        java = self._java
        catalog = self._session.sessionState().catalogManager().catalog(sink)
        relation = java.relation(java.task_table(table, tasks), java.some(catalog), java.none())
        return java.run(self._session, relation)

    def _relation(self, table: LakeTable, sink: str) -> Java:
        """The table as it is now: a relation shows the snapshot that it was made at.

        Its catalog has the functions by which a table may be partitioned. Without a name of its
        own the table is never looked up there.
        """
        java = self._java
        catalog = self._session.sessionState().catalogManager().catalog(sink)
        return java.relation(java.spark_table(table.table), java.some(catalog), java.none())

    def _run(self, plan: Java) -> None:
        self._java.run(self._session, plan)  # what changes a table runs at once

    @cached_property
    def _java(self) -> _Java:
        """Looked up once: each name on the way to a class is a call into the JVM."""
        sql = self._jvm.org.apache.spark.sql
        append = _object(sql.catalyst.plans.logical, "AppendData")
        return _Java(
            seq=self._jvm.org.apache.spark.api.python.PythonUtils.toSeq,
            spark_table=self._jvm.org.apache.iceberg.spark.source.SparkTable,
            task_table=self._jvm.org.apache.iceberg.spark.source.SparkRewriteTable,
            relation=_object(sql.execution.datasources.v2, "DataSourceV2Relation").create,
            some=self._jvm.scala.Option.apply,
            none=self._jvm.scala.Option.empty,
            append=append.byPosition,
            options=getattr(append, "byPosition$default$3"),
            run=_object(sql.classic, "Dataset").ofRows,
        )


class _Java(NamedTuple):
    seq: Java
    spark_table: Java
    task_table: Java
    relation: Java
    some: Java
    none: Java
    append: Java
    options: Java
    run: Java


def _object(package: Java, name: str) -> Java:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SharedStaging:
    """A folder that executors reach, of this daemon alone: its URI.

    ``run`` begins the names of this process's files. Any other file there is a dead run's.
    """

    folder: str
    run: str = field(default_factory=lambda: f"run-{uuid4().hex[:12]}")


class StagedSource:
    """Staged files for the statements of one writer; called on its thread.

    ``shared``: None where executors see this machine's disk.
    """

    def __init__(
        self, spark: SparkSession, loose: LooseTables, shared: SharedStaging | None
    ) -> None:
        self._spark = spark
        self._jvm: Java = JavaNames(spark.sparkContext._jvm)
        self._gateway: Java = spark.sparkContext._gateway
        self._loose = loose
        self._shared = shared
        self._swept = False

    @contextmanager
    def view(self, table: LakeTable, sink: str, path: str, staged: pa.Schema) -> Iterator[str]:
        """The staged file under a quoted name that a statement can read; gone afterwards.

        ``table`` is the one that will be written, of the catalog ``sink``. Raises one of
        JavaFailure, OSError.
        """
        view = f"binlogd_{uuid4().hex}"
        if self._shared is None:
            # The path is one file's name: no sign in it is a pattern.
            reader = self._spark.read.schema(read_schema(staged))
            reader.option("__globPaths__", "false").parquet(path).createTempView(view)
            try:
                yield quote(view)
            finally:
                self._spark.catalog.dropTempView(view)
            return
        with self._reachable(self._shared, table, sink, path, staged) as rows:
            rows.createTempView(view)
            try:
                yield quote(view)
            finally:
                self._spark.catalog.dropTempView(view)

    @contextmanager
    def _reachable(
        self, shared: SharedStaging, table: LakeTable, sink: str, path: str, staged: pa.Schema
    ) -> Iterator[Java]:
        """The file's rows as Java's Dataset, read from a copy that executors reach."""
        io = table.operations.io()
        self._sweep(shared, io)
        place = f"{shared.folder}/{shared.run}-{uuid4()}.parquet"
        try:
            out = io.newOutputFile(place).createOrOverwrite()
            try:
                self._jvm.java.nio.file.Files.copy(self._jvm.java.io.File(path).toPath(), out)
            finally:
                out.close()
            unnamed = self._table(io, staged, shared.folder, Path(path).stat().st_size)
            with self._tasks(unnamed, Path(path), place) as tasks:
                yield self._loose.rows(unnamed, tasks, sink)
        finally:
            remove_files(table, [place])

    def _sweep(self, shared: SharedStaging, io: Java) -> None:
        """Remove what dead runs of this daemon left, once, where the storage can list a folder.

        A failure is logged: what is left costs room, no write depends on it.
        """
        prefixes = "org.apache.iceberg.io.SupportsPrefixOperations"
        if self._swept or not is_instance_of(self._gateway, io, prefixes):
            return
        self._swept = True
        try:
            found = io.listPrefix(f"{shared.folder}/").iterator()
            while found.hasNext():
                location = str(found.next().location())
                if not location.rpartition("/")[2].startswith(shared.run):
                    io.deleteFile(location)
        except JavaFailure as error:
            # The folder comes with its first file; storages say so in errors of their own.
            if not any(name.endswith("NotFoundException") for name in java_classes(error)):
                log.warning("staged_files_left_behind", folder=shared.folder, reason=reason(error))

    def _table(self, io: Java, staged: pa.Schema, location: str, size: int) -> Java:
        """A table of the file's columns that is in memory only. Their ids count from 1, as Iceberg
        numbers the columns of a file that carries none. Its rows are read by as many tasks as run
        at once, where the file has as many groups of rows: for Iceberg's own 128 MB it is one."""
        split = str(1 + size // int(self._spark.sparkContext.defaultParallelism))
        properties = {"read.split.target-size": split, "read.split.open-file-cost": split}
        iceberg = self._jvm.org.apache.iceberg
        fields = [
            {"id": number, "name": field.name, "required": False, "type": iceberg_type(field.type)}
            for number, field in enumerate(staged, start=1)
        ]
        schema = iceberg.SchemaParser.fromJson(
            json.dumps({"type": "struct", "schema-id": 0, "fields": fields})
        )
        spec = iceberg.PartitionSpec.unpartitioned()
        metadata = iceberg.TableMetadata.newTableMetadata(schema, spec, location, properties)
        return iceberg.BaseTable(iceberg.StaticTableOperations(metadata, io), "binlogd_staged")

    @contextmanager
    def _tasks(self, table: Java, local: Path, place: str) -> Iterator[str]:
        """Have Iceberg know what to read of the table: the file at ``place``, whose copy ``local``
        is. Gives the name under which it knows that."""
        iceberg, name = self._jvm.org.apache.iceberg, f"binlogd-{uuid4()}"
        spec = table.spec()
        described = iceberg.DataFiles.builder(spec).withPath(place).withFormat("PARQUET")
        described = described.withFileSizeInBytes(local.stat().st_size)
        described = described.withRecordCount(pq.read_metadata(local).num_rows)
        evaluator = iceberg.expressions.ResidualEvaluator.unpartitioned(
            iceberg.expressions.Expressions.alwaysTrue()
        )
        task = iceberg.BaseFileScanTask(
            described.build(),
            self._gateway.new_array(iceberg.DeleteFile, 0),
            iceberg.SchemaParser.toJson(table.schema()),
            iceberg.PartitionSpecParser.toJson(spec),
            evaluator,
        )
        manager = iceberg.spark.ScanTaskSetManager.get()
        manager.stageTasks(table, name, self._jvm.java.util.List.of(task))
        try:
            yield name
        finally:
            manager.removeTasks(table, name)
