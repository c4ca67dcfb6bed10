"""The Iceberg catalogs of a Spark session, through the session's JVM: tables by their names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property

from pyspark.sql import SparkSession

from actors.ports import TargetRefused
from changes.model import TargetName
from sparkwriter.iceberg_java import Java, JavaFailure, LakeTable, java_class
from sparkwriter.java_names import JavaNames
from sparkwriter.schema import LakeColumn

GONE = "binlogd.gone."
"""Property of a namespace, with a table's name behind it: the marks of one that is there no more.
"""


FREE = "binlogd.free."
"""Property of a namespace, with a table's name behind it: the renaming that may take this name."""


class LakeCatalog:
    """The Iceberg catalogs of one Spark session, each by its sink's name."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        self._gateway: Java = spark.sparkContext._gateway
        self._jvm: Java = JavaNames(spark.sparkContext._jvm)
        self._catalogs: dict[str, Java] = {}
        self._namespaces: dict[str, Java] = {}

    def check(self, sink: str) -> None:
        """Open the catalog and ask it something; raises one of JavaFailure."""
        self._catalog(sink).listNamespaces()

    def load(self, target: TargetName) -> LakeTable | None:
        """The table as the catalog has it now, None where there is none."""
        try:
            return LakeTable(self._jvm, self._catalog(target.sink).loadTable(self._name(target)))
        except JavaFailure as error:
            if java_class(error).endswith(".NoSuchTableException"):
                return None
            raise

    def create(
        self,
        target: TargetName,
        columns: Iterable[LakeColumn],
        properties: Mapping[str, str],
        stamp: tuple[str, str],
    ) -> None:
        """Make namespace and table, its first snapshot empty and stamped, in one commit.

        Where another has made it meanwhile, that one stays.
        """
        catalog, name = self._catalog(target.sink), self._name(target)
        self._make_namespace(target)
        fields = [
            {"id": number, "name": column.name, "required": False, "type": column.type}
            for number, column in enumerate(columns, start=1)
        ]
        schema = self._jvm.org.apache.iceberg.SchemaParser.fromJson(
            json.dumps({"type": "struct", "schema-id": 0, "fields": fields})
        )
        try:
            builder = catalog.buildTable(name, schema).withProperties(dict(properties))
            transaction = builder.createTransaction()
            transaction.newFastAppend().set(*stamp).commit()
            transaction.commitTransaction()
        except JavaFailure as error:
            if not java_class(error).endswith(".AlreadyExistsException"):
                raise

    def rename(self, old: TargetName, new: TargetName) -> None:
        """Give a table another name, in one step. Raises one of JavaFailure."""
        self._make_namespace(new)
        self._catalog(old.sink).renameTable(self._name(old), self._name(new))

    def drop(self, target: TargetName) -> None:
        """Take the table out of the catalog; its files stay. Raises one of JavaFailure."""
        self._catalog(target.sink).dropTable(self._name(target), False)

    def remove(self, target: TargetName) -> None:
        """Remove the table with all its files, if it is there. Raises one of JavaFailure."""
        self._catalog(target.sink).dropTable(self._name(target), True)

    def gone(self, target: TargetName) -> str | None:
        """The marks of a table that was dropped or renamed away, as ``bury`` wrote them."""
        return self._noted(target, GONE)

    def bury(self, target: TargetName, marks: str) -> None:
        """Note in the namespace which marks the table had: they count while there is no table.

        Raises TargetRefused where the catalog keeps no such notes.
        """
        self._note(target, GONE, marks)

    def freed(self, target: TargetName) -> str | None:
        """The renaming that may take the name, as ``free`` wrote it."""
        return self._noted(target, FREE)

    def free(self, target: TargetName, renaming: str) -> None:
        """Note that all that the name was before a renaming is written. Raises as ``bury``."""
        self._note(target, FREE, renaming)

    def _noted(self, target: TargetName, what: str) -> str | None:
        catalog, namespace = self._catalog(target.sink), self._namespace(target.namespace)
        try:
            value = catalog.loadNamespaceMetadata(namespace).get(f"{what}{target.table}")
        except JavaFailure as error:
            if java_class(error).endswith((".NoSuchNamespaceException", "OperationException")):
                return None
            raise
        return None if value is None else str(value)

    def _note(self, target: TargetName, what: str, text: str) -> None:
        self._make_namespace(target)
        catalog, namespace = self._catalog(target.sink), self._namespace(target.namespace)
        try:
            catalog.setProperties(namespace, {f"{what}{target.table}": text})
        except JavaFailure as error:
            if java_class(error).endswith("UnsupportedOperationException"):
                raise TargetRefused(
                    "the catalog keeps no properties of namespaces: a table can't be followed"
                    " when it is dropped or renamed"
                ) from error
            raise

    def _make_namespace(self, target: TargetName) -> None:
        catalog, namespace = self._catalog(target.sink), self._namespace(target.namespace)
        try:
            if not catalog.namespaceExists(namespace):
                catalog.createNamespace(namespace)
        except JavaFailure:
            # Of two members that make it at once one fails, in its catalog's own words.
            if not catalog.namespaceExists(namespace):
                raise

    def _catalog(self, sink: str) -> Java:
        """The session's catalog of that name, opened at first use.

        Spark looks its settings up in the thread's active session: on a thread that ran no SQL
        yet there is none, and it would say that the catalog does not exist.
        """
        if sink not in self._catalogs:
            self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._session)
            spark3 = self._jvm.org.apache.iceberg.spark.Spark3Util
            self._catalogs[sink] = spark3.loadIcebergCatalog(self._session, sink)
        return self._catalogs[sink]

    def _name(self, target: TargetName) -> Java:
        """The table's name as Iceberg has it; a call or two once its namespace is known."""
        return self._table_identifier(self._namespace(target.namespace), target.table)

    @cached_property
    def _table_identifier(self) -> Java:
        """Java's ``TableIdentifier.of``: to find it are six calls into the JVM."""
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.of

    def _namespace(self, name: str) -> Java:
        if name not in self._namespaces:
            levels = self._gateway.new_array(self._gateway.jvm.String, 1)
            levels[0] = name
            of = self._jvm.org.apache.iceberg.catalog.Namespace.of
            self._namespaces[name] = of(levels)
        return self._namespaces[name]
