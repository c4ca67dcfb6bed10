"""SQL on a table that no catalog knows: a write's own view of a table, which it alone may change.

Spark finds what a statement writes by its name in a catalog. Here the statement is parsed, and
what stands for that name is put in its place before Spark looks for it.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from pyspark.sql import SparkSession

from sparkwriter.iceberg.java import LakeTable
from sparkwriter.session.java_failures import Java
from sparkwriter.session.java_names import JavaNames


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
        own nobody looks the table up there.
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
