"""The Iceberg catalogs of a Spark session, through the session's JVM: tables by their names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog
from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from changes.model.names import target_problem
from changes.sql.spark.schema import LakeColumn
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.layout import lay_out
from sparkwriter.iceberg.notes import noted, notes
from sparkwriter.iceberg.ownership import ForeignSnapshots
from sparkwriter.iceberg.publish import never_began
from sparkwriter.iceberg.refusals import check_length, only_names
from sparkwriter.iceberg.section import NO_LAYOUT, FileLayout
from sparkwriter.session.java_api import Java, JavaFailure, JavaNames, java_class, reason

log: Any = structlog.get_logger(__name__)

GONE = "binlogd.gone."
"""Property of a namespace, with a table's name behind it: the marks of one that is there no more.
"""


FREE = "binlogd.free."
"""Property of a namespace, with a table's name behind it: the renaming that may take this name."""


class LakeCatalog:
    """The Iceberg catalogs of one Spark session, each by its sink's name."""

    def __init__(self, spark: SparkSession, foreign: ForeignSnapshots | None = None) -> None:
        """``foreign``: who tells of others' snapshots, shared by all that look at the tables."""
        self.foreign = foreign or ForeignSnapshots()
        self._session = spark._jsparkSession
        self._gateway: Java = spark.sparkContext._gateway
        self._jvm: Java = JavaNames(spark.sparkContext._jvm)
        self._catalogs: dict[str, Java] = {}
        self._namespaces: dict[str, Java] = {}

    def check(self, sink: str) -> None:
        """Open the catalog and ask it something; raises one of JavaFailure."""
        self._catalog(sink).listNamespaces()

    def answers(self, sink: str) -> bool:
        """Whether it does now."""
        try:
            self.check(sink)
        except JavaFailure:
            return False
        return True

    def load(self, target: TargetName) -> LakeTable | None:
        """The table as the catalog has it now, None where there is none.

        Raises TargetRefused where the name is invalid, or is that of another kind of table.
        """
        catalog, name = self._catalog(target.sink), self._name(target)
        try:
            return LakeTable(self._jvm, catalog.loadTable(name))
        except JavaFailure as error:
            if java_class(error).endswith(".NoSuchTableException"):
                return None
            if java_class(error).endswith(".NoSuchIcebergTableException"):
                raise TargetRefused("a table that is not Iceberg's has that name") from error
            raise

    def begin(self, target: TargetName, schema: str) -> Java:
        """A table that is never committed: no one else sees it. Raises as ``load``, and where the
        catalog allows no table there."""
        catalog, name = self._catalog(target.sink), self._name(target)
        parsed = self._jvm.org.apache.iceberg.SchemaParser.fromJson(schema)
        return catalog.buildTable(name, parsed).createTransaction().table()

    def create(
        self,
        target: TargetName,
        columns: Sequence[LakeColumn],
        properties: Mapping[str, str],
        stamp: tuple[str, str],
        layout: FileLayout = NO_LAYOUT,
    ) -> None:
        """Make namespace and table, its first snapshot empty and stamped, in one commit.

        Where another has made it meanwhile, that one stays. Raises TargetRefused where a view has
        the name, or the catalog or the disk can't take it, and one of JavaFailure.
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
            with only_names():
                builder = catalog.buildTable(name, schema).withProperties(dict(properties))
                transaction = builder.createTransaction()
                # After it is made: its first partitioning stays none (see UNPARTITIONED).
                lay_out(transaction, self._jvm, layout, columns)
                with self._on_disk(transaction.table()):
                    transaction.newFastAppend().set(*stamp).commit()
                    self._commit_new(name, catalog, transaction)
        except JavaFailure as error:
            if not java_class(error).endswith(".AlreadyExistsException"):
                raise
            self._check_views(target)

    def _commit_new(self, name: Java, catalog: Java, transaction: Java) -> None:
        """Commit a new table, and remove its first snapshot where it surely was not made.

        Iceberg's own commit removes it also where the answer is that of a gateway which does not
        know, or is about a table that is this one.
        """
        operations, metadata = transaction.underlyingOps(), transaction.currentMetadata()
        try:
            operations.commit(None, metadata)
        except JavaFailure as error:
            if never_began(error) or self._is_another(name, catalog, metadata, error):
                try:
                    operations.io().deleteFile(metadata.currentSnapshot().manifestListLocation())
                except JavaFailure as failure:
                    log.warning("attempt_left_behind", reason=reason(failure))
            raise

    def _is_another(self, name: Java, catalog: Java, metadata: Java, error: BaseException) -> bool:
        """Whether a commit failed because of a table which is another than the new one."""
        if not java_class(error).endswith(".AlreadyExistsException"):
            return False
        try:
            return LakeTable(self._jvm, catalog.loadTable(name)).uuid() != str(metadata.uuid())
        except JavaFailure:
            return False

    def rename(self, old: TargetName, new: TargetName) -> None:
        """Give a table another name, in one step. Raises as ``create``."""
        self._make_namespace(new)
        try:
            with only_names():
                self._catalog(old.sink).renameTable(self._name(old), self._name(new))
        except JavaFailure as error:
            if java_class(error).endswith(".AlreadyExistsException"):
                self._check_views(new)
            raise

    def _check_views(self, target: TargetName) -> None:
        """Raise TargetRefused where a view has the name, which no table can have beside it."""
        catalog = self._catalog(target.sink)
        views = "org.apache.iceberg.catalog.ViewCatalog"
        if is_instance_of(self._gateway, catalog, views) and catalog.viewExists(self._name(target)):
            raise TargetRefused("a view has that name")

    @contextmanager
    def _on_disk(self, table: Java) -> Iterator[None]:
        """Around the first files of a table: raise TargetRefused where its folder's name is what
        the disk does not take."""
        try:
            yield
        except JavaFailure:
            scheme, _, path = str(table.location()).rpartition(":")
            if scheme in ("", "file"):
                check_length(Path("/" + path.lstrip("/")))
            raise

    def drop(self, target: TargetName) -> None:
        """Take the table out of the catalog; its files stay. Raises one of JavaFailure."""
        self._catalog(target.sink).dropTable(self._name(target), False)

    def remove(self, target: TargetName) -> None:
        """Remove the table with all its files, if it is there. Raises one of JavaFailure."""
        self._catalog(target.sink).dropTable(self._name(target), True)

    def remove_namespace(self, target: TargetName) -> None:
        """Remove the target's namespace, if it is there and empty. Raises one of JavaFailure."""
        self._catalog(target.sink).dropNamespace(self._namespace(target.namespace))

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
            properties = catalog.loadNamespaceMetadata(namespace)
        except JavaFailure as error:
            if java_class(error).endswith((".NoSuchNamespaceException", "OperationException")):
                return None
            raise
        return noted(f"{what}{target.table}", properties.get)

    def _note(self, target: TargetName, what: str, text: str) -> None:
        self._make_namespace(target)
        catalog, namespace = self._catalog(target.sink), self._namespace(target.namespace)
        try:
            catalog.setProperties(namespace, notes(f"{what}{target.table}", text))
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
                with only_names():
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
        """The table's name as Iceberg has it; a call or two once its namespace is known.

        Raises TargetRefused where it is no name, or a path to somewhere else.
        """
        if (problem := target_problem(target)) is not None:
            raise TargetRefused(problem)
        namespace = self._namespace(target.namespace)
        with only_names():
            return self._table_identifier(namespace, target.table)

    @cached_property
    def _table_identifier(self) -> Java:
        """Java's ``TableIdentifier.of``: to find it are six calls into the JVM."""
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.of

    def _namespace(self, name: str) -> Java:
        if name not in self._namespaces:
            levels = self._gateway.new_array(self._gateway.jvm.String, 1)
            levels[0] = name
            of = self._jvm.org.apache.iceberg.catalog.Namespace.of
            with only_names():
                self._namespaces[name] = of(levels)
        return self._namespaces[name]
