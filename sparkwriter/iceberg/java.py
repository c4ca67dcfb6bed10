"""Iceberg's Java API through py4j, as little of it as binlogd needs, typed for Python.

Every call runs in the JVM on a thread of its own for each Python thread; a call costs about
0.3 ms, one that reads the catalog 1-5 ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import KeyBound
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import AddLakeColumn, CreateTable, LakeColumn, SchemaStep, WidenColumn
from sparkwriter.iceberg.layout import StoredLayout, layout_of
from sparkwriter.session.java_api import Java

_NEVER_MS = 2**63 - 1
"""The longest age that Iceberg knows."""

NO_SNAPSHOT = -1
"""The id of none: they are all positive."""


class LakeTable:
    """One table as it was when loaded or refreshed last."""

    def __init__(self, jvm: Java, table: Java) -> None:
        self._jvm = jvm
        self.table = table
        self.operations = table.operations()
        self.see_current()

    def refresh(self) -> None:
        """Read the catalog's pointer, and the metadata behind it where it has moved."""
        self._see(self.operations.refresh())

    def see_current(self) -> None:
        """Look at the metadata that the operations have, without asking the catalog. Raises
        SinkUnavailable where it has said that there is no such table any more."""
        self._see(self.operations.current())

    def _see(self, metadata: Java | None) -> None:
        # Iceberg's operations forget it once the catalog has said that there is no such table.
        if metadata is None:
            raise SinkUnavailable("somebody has removed or renamed the table meanwhile")
        self.metadata = metadata
        self._properties: dict[str, str] | None = None
        self._fields: tuple[LakeField, ...] | None = None
        self._defaults: dict[str, tuple[str, object]] = {}
        self._required: tuple[str, ...] = ()
        self._layout: StoredLayout | None = None

    @property
    def layout(self) -> StoredLayout:
        """How its files are laid out, as far as it is one that we lay."""
        if self._layout is None:
            iceberg, seen = self._jvm.org.apache.iceberg, self.metadata
            spec = json.loads(iceberg.PartitionSpecParser.toJson(seen.spec()))
            order = json.loads(iceberg.SortOrderParser.toJson(seen.sortOrder()))
            count = int(seen.specs().size())
            self._layout = layout_of(spec, order, self.fields(), specs=count)
        return self._layout

    def said(self, task: Java) -> dict[str, Any]:
        """A scan task's ``data-file`` and ``delete-files``, as Iceberg's JSON."""
        iceberg = self._jvm.org.apache.iceberg
        if self.layout.specs == 1:
            # As one text: each value would be a call of its own.
            return dict(json.loads(iceberg.ScanTaskParser.toJson(task)))
        # Iceberg writes no task of two partitionings, and keys that are deleted have their own.
        of = iceberg.ContentFileParser.toJson
        specs, deletes = self.metadata.specsById(), task.deletes()
        each = (deletes.get(at) for at in range(deletes.size()))
        found = [json.loads(of(one, specs.get(one.specId()))) for one in each]
        return {"data-file": json.loads(of(task.file(), task.spec())), "delete-files": found}

    def schema_json(self) -> dict[str, Any]:
        """The current schema, as Iceberg's JSON."""
        return dict(
            json.loads(self._jvm.org.apache.iceberg.SchemaParser.toJson(self.metadata.schema()))
        )

    @property
    def jvm(self) -> Java:
        """Where its classes are."""
        return self._jvm

    @cached_property
    def is_hadoops(self) -> bool:
        """Whether its files are read and written by Hadoop's file systems."""
        return str(self.table.io().getClass().getSimpleName()) == "HadoopFileIO"

    @cached_property
    def is_local(self) -> bool:
        """Whether it lies on a disk of this machine."""
        scheme, colon, _ = str(self.metadata.location()).partition(":")
        return self.is_hadoops and (not colon or scheme == "file")

    def in_turn(self, update: Java) -> None:
        """Have an update read and write its manifests one after the other where they are near.

        Iceberg gives them to threads, and looks every 10 ms whether those are done: five to eight
        times a commit. That is little where each is a request to an object store, and most of
        what a small write takes on a disk (docs/decisions/0035).
        """
        if self.is_local:
            update.scanManifestsWith(self._same_thread)
            update.writeManifestsWith(self._same_thread, 1)

    @cached_property
    def _same_thread(self) -> Java:
        """An executor that runs what it is given on the thread that gives it."""
        guava = self._jvm.org.apache.iceberg.relocated.com.google.common
        return guava.util.concurrent.MoreExecutors.newDirectExecutorService()

    def columns(self) -> tuple[LakeColumn, ...]:
        """The current schema. Raises TargetRefused, naming it, at a column of nested type."""
        return tuple(LakeColumn(field.name, field.type) for field in self.fields())

    def property(self, name: str) -> str | None:
        """A table property's value."""
        return self.properties().get(name)

    def properties(self) -> Mapping[str, str]:
        """All of the table's."""
        if self._properties is None:
            # As one text: each entry of a Java map would be a call of its own.
            form = self._jvm.org.apache.iceberg.rest.RESTUtil.encodeFormData
            pairs = parse_qsl(str(form(self.metadata.properties())), keep_blank_values=True)
            self._properties = dict(pairs)
        return self._properties

    def uuid(self) -> str:
        """What tells the table from one of the same name that was made before or after it."""
        return str(self.metadata.uuid())

    def head(self, branch: str) -> int | None:
        """The id of the snapshot that the branch shows."""
        ref = self.metadata.ref(branch)
        return None if ref is None else int(ref.snapshotId())

    def parent(self, snapshot_id: int) -> int | None:
        """The id of the snapshot before, None for the first or where ours has expired."""
        snapshot = self.metadata.snapshot(snapshot_id)
        parent = None if snapshot is None else snapshot.parentId()
        return None if parent is None else int(parent)

    def begin(self) -> LakeTable:
        """The table as a write of its own sees it, from what the catalog has now.

        What is committed to it stays in memory, and is visible nowhere else.
        """
        iceberg, name = self._jvm.org.apache.iceberg, self.table.name()
        begun = iceberg.Transactions.newTransaction(name, self.operations)
        self.see_current()
        return LakeTable(self._jvm, iceberg.BaseTable(begun.table().operations(), name))

    def tasks(self, snapshot_id: int, bounds: Iterable[KeyBound], most: int) -> list[Java] | None:
        """Iceberg's scan tasks of the data files in which rows may lie within the bounds, by the
        metadata of the files: one for each; None where there are more than ``most``.

        The bounds are whole numbers or strings, of columns of such a type.
        """
        within: object = True
        for bound in bounds:
            for type_, value in (("gt-eq", bound.lower), ("lt-eq", bound.upper)):
                term = {"type": type_, "term": bound.column, "value": value}
                within = {"type": "and", "left": within, "right": term}
        parser = self._jvm.org.apache.iceberg.expressions.ExpressionParser
        scan = self.table.newScan().useSnapshot(snapshot_id).caseSensitive(False)
        scan = scan.filter(parser.fromJson(json.dumps(within)))
        if self.is_local:
            scan = scan.planWith(self._same_thread)
        files = scan.planFiles()
        found: list[Java] = []
        try:
            each = files.iterator()
            while each.hasNext():
                if len(found) == most:
                    return None
                found.append(each.next())
        finally:
            files.close()
        return found

    def may_hold_null(self, snapshot_id: int, column: str) -> bool:
        """Whether the files' own counts allow a stored null in a column, False if it has none."""
        if column.lower() not in {field.name.lower() for field in self.fields()}:
            return False
        parser = self._jvm.org.apache.iceberg.expressions.ExpressionParser
        null = parser.fromJson(json.dumps({"type": "is-null", "term": column}))
        scan = self.table.newScan().useSnapshot(snapshot_id).caseSensitive(False)
        files = scan.filter(null).planFiles()
        try:
            return bool(files.iterator().hasNext())
        finally:
            files.close()

    def made_since(self, snapshot_id: int) -> list[Java]:
        """Main's snapshots on top of that one, the oldest first."""
        made: list[Java] = []
        at = self.head("main")
        while at is not None and at != snapshot_id:
            made.insert(0, self.metadata.snapshot(at))
            at = self.parent(at)
        return made

    def files_of(self, snapshot: Java) -> set[str]:
        """Where the files lie that exist because of this snapshot: data, deletes, metadata."""
        io = self.operations.io()
        found = {str(snapshot.manifestListLocation())}
        for added in (snapshot.addedDataFiles(io), snapshot.addedDeleteFiles(io)):
            each = added.iterator()
            while each.hasNext():
                found.add(str(each.next().location()))
        for manifest in snapshot.allManifests(io):
            if manifest.snapshotId() == snapshot.snapshotId():
                found.add(str(manifest.path()))
        return found

    def holds(self, snapshot_id: int) -> bool:
        """Whether the snapshot is there, not expired."""
        return self.metadata.snapshot(snapshot_id) is not None

    def passed_by(self, snapshot_id: int, since: int) -> bool:
        """Whether main has come here from another without that snapshot, by a history of which
        nothing is missing: one that has expired may have left files that are in use."""
        at = self.head("main")
        while at is not None and at not in (since, snapshot_id):
            at = self.parent(at)
        return at == since and not self.holds(snapshot_id)

    def ancestors(self) -> list[int]:
        """Main's history, the newest first, as far as it is not expired; then, where its beginning
        is, the id of the last one that is."""
        self.table.refresh()
        # As one text: each element of a Java list would be a call of its own.
        ids = json.loads(
            str(self._jvm.org.apache.iceberg.util.SnapshotUtil.currentAncestorIds(self.table))
        )
        before = self.parent(ids[-1]) if ids else None
        return ids if before is None else [*ids, before]

    def summary(self, snapshot_id: int, name: str) -> str | None:
        """An entry of a snapshot's summary, None where it or the snapshot is gone."""
        snapshot = self.metadata.snapshot(snapshot_id)
        value = None if snapshot is None else snapshot.summary().get(name)
        return None if value is None else str(value)

    def operation(self, snapshot_id: int) -> str | None:
        """What a snapshot did (append, overwrite, delete, replace); None where it is gone."""
        snapshot = self.metadata.snapshot(snapshot_id)
        return None if snapshot is None else str(snapshot.operation())

    def required(self) -> tuple[str, ...]:
        """The columns that can't hold null. Raises TargetRefused as ``columns``."""
        self.fields()
        return self._required

    def branches(self) -> tuple[str, ...]:
        """The names of all refs, tags included."""
        # Not by iterating: py4j learns the end from an exception, and what pyspark asks about
        # that took twice as long as all the rest of an opening (measured).
        names = self.metadata.refs().keySet().toArray()
        return tuple(str(names[at]) for at in range(len(names)))

    def snapshots(self) -> int:
        """How many snapshots the table holds, those that no ref leads to included."""
        return int(self.metadata.snapshots().size())

    def oldest_ms(self) -> int:
        """When the oldest of the snapshots was made, in milliseconds since the epoch."""
        return int(self.metadata.snapshots().get(0).timestampMillis())

    def time_ms(self, snapshot_id: int) -> int:
        """When a snapshot was made, in milliseconds since the epoch."""
        return int(self.metadata.snapshot(snapshot_id).timestampMillis())

    def expire(self, older_than_ms: int, retain_last: int) -> None:
        """Remove older snapshots that no ref needs, and then the files that only they need.

        A ref keeps the last few of its history whatever their age. The commit is a compare-and-
        set, repeated on the current state when another came first. Raises one of JavaFailure.
        """
        self.table.refresh()
        expiry = self.table.expireSnapshots().expireOlderThan(older_than_ms)
        # Iceberg has two ways to find these files. The quick one, for tables without branches,
        # removes a file as soon as one entry of it was replaced, though it holds the deletion
        # vectors of other data files, too: the table can't be read any more. With a named
        # snapshot it works the other way: it removes what no remaining snapshot refers to.
        expiry = expiry.expireSnapshotId(NO_SNAPSHOT)
        expiry.retainLast(retain_last).cleanExpiredFiles(True).commit()

    def branch_at(self, snapshot_id: int) -> Java:
        """A branch ref that shows this snapshot."""
        return self._jvm.org.apache.iceberg.SnapshotRef.branchBuilder(snapshot_id).build()

    def tag_at(self, snapshot_id: int) -> Java:
        """A tag that names this snapshot, for ever: whatever age the table's properties allow."""
        tag = self._jvm.org.apache.iceberg.SnapshotRef.tagBuilder(snapshot_id)
        return tag.maxRefAgeMs(_NEVER_MS).build()

    def is_tag(self, ref: str) -> bool:
        """Whether there is a ref of that name, and it is a tag."""
        found = self.metadata.ref(ref)
        return found is not None and bool(found.isTag())

    def moved(self, branch: str, snapshot_id: int) -> Java:
        """The branch's ref, its retention settings kept, showing another snapshot."""
        ref = self.metadata.ref(branch)
        return self._jvm.org.apache.iceberg.SnapshotRef.builderFrom(ref, snapshot_id).build()

    def aged(self, branch: str) -> Java:
        """The branch's ref, showing the same snapshot, with another bound on its age, which has no
        meaning for main.

        A REST catalog compares what a commit changes, nothing else: so that it compares main.
        """
        ref = self.metadata.ref(branch)
        age = _NEVER_MS - 1 if ref.maxRefAgeMs() == _NEVER_MS else _NEVER_MS
        return self._jvm.org.apache.iceberg.SnapshotRef.builderFrom(ref).maxRefAgeMs(age).build()

    def commit(self, change: Callable[[Java], object]) -> None:
        """Change a copy of the metadata seen here and swap it in for it.

        The swap fails with one of JavaFailure when that metadata is no longer the current one; a
        failure does not tell for sure that nothing happened.
        """
        builder = self._jvm.org.apache.iceberg.TableMetadata.buildFrom(self.metadata)
        change(builder)
        self.operations.commit(self.metadata, builder.build())

    def clean_up(self, update: Java) -> None:
        """Remove the manifests that an update of Iceberg's API has written. None of its snapshots
        may be the table's, nor become it. Raises one of JavaFailure.

        Iceberg does so itself where its own commit fails; ours are not made by that.
        """
        reflect = self._jvm.org.apache.commons.lang3.reflect.MethodUtils
        reflect.invokeMethod(update, True, "cleanAll")

    def clean_up_behind(self, update: Java, snapshot: Java) -> None:
        """Remove the manifests that an update has written and its snapshot, which has become the
        table's, does not name. Raises one of JavaFailure."""
        java = self._jvm.java.util
        named = java.HashSet(snapshot.allManifests(self.operations.io()))
        reflect = self._jvm.org.apache.commons.lang3.reflect.MethodUtils
        arguments = java.Collections.singletonList(named).toArray()
        reflect.invokeMethod(update, True, "cleanUncommitted", arguments)

    def stamp(self, branch: str, name: str, value: str) -> None:
        """Commit an append of no files to the branch, with one entry in its summary."""
        self.table.refresh()
        self.table.newFastAppend().set(name, value).toBranch(branch).commit()

    def change_schema(
        self, steps: Iterable[SchemaStep], properties: Mapping[str, str] | None = None
    ) -> None:
        """Add and widen columns, and set properties with it, in one commit; it fails when the
        metadata moved meanwhile."""
        whole = self.table.newTransaction()
        update = whole.updateSchema()
        types = self._jvm.org.apache.iceberg.types.Types
        for step in steps:
            match step:
                case AddLakeColumn(column):
                    # No parent: a name with a dot is a name, not a path into a struct.
                    update.addColumn(None, column.name, types.fromPrimitiveString(column.type))
                case WidenColumn(column):
                    update.updateColumn(column.name, types.fromPrimitiveString(column.type))
                case CreateTable():
                    raise ValueError("a table that exists is not created")
        update.commit()
        if properties:
            beside = whole.updateProperties()
            for name, value in properties.items():
                beside.set(name, value)
            beside.commit()
        # Not by Iceberg's own commit: refused, that does it again on what the table is by then, and
        # finds columns there that it has itself added a moment ago.
        whole.underlyingOps().commit(whole.startMetadata(), whole.currentMetadata())

    def delete_all(self, branch: str, name: str, value: str) -> None:
        """Commit the removal of every row to the branch, with one entry in its summary."""
        self.table.refresh()
        every = self._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        delete = self.table.newDelete().deleteFromRowFilter(every)
        delete.set(name, value).toBranch(branch).commit()

    def fields(self) -> tuple[LakeField, ...]:
        """The current schema's columns with their ids. Raises TargetRefused as ``columns``."""
        if self._fields is None:
            parser = self._jvm.org.apache.iceberg.SchemaParser
            fields = json.loads(parser.toJson(self.metadata.schema()))["fields"]
            for field in fields:
                if not isinstance(field["type"], str):
                    raise TargetRefused(f"column {field['name']} is of a nested type")
            self._fields = tuple(LakeField(f["id"], f["name"], f["type"]) for f in fields)
            self._defaults = {
                f["name"].lower(): (f["type"], f["write-default"])
                for f in fields
                if "write-default" in f
            }
            self._required = tuple(f["name"] for f in fields if f["required"])
        return self._fields

    def defaults(self) -> Mapping[str, tuple[str, object]]:
        """The columns that rows may lack and yet have a value in, by their names in small letters:
        their types, and the value as the metadata's JSON has it."""
        self.fields()
        return self._defaults
