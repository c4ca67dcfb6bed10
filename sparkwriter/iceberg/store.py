"""Iceberg tables as the kit's store, over a Spark session of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.model import POSITION, Mode, TargetName
from changes.sql.spark.ddl_plan import DdlTable
from changes.sql.spark.guards import check_not_null
from changes.sql.spark.schema import LakeColumn, SchemaStep
from changes.sql.spark.words import dotted
from offsets.fence import Marks
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.column_defaults import added_otherwise
from sparkwriter.iceberg.compact import Compactions, Compactor, Jobs
from sparkwriter.iceberg.ddl import also_of, columns_of, move_table, publish_change, shape_text
from sparkwriter.iceberg.direct import Update
from sparkwriter.iceberg.equality import EqualityWrites, is_empty
from sparkwriter.iceberg.files import TableFiles
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.layout import check_layout
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import DIFFERS, KEYS, MODE, POSITIONS, Seen, look, look_back
from sparkwriter.iceberg.marks import delete_whole_files, stamped_removal
from sparkwriter.iceberg.ownership import anonymous, source_text
from sparkwriter.iceberg.partitions import Scattered
from sparkwriter.iceberg.publish import create_branch, drop_branch, publish_branch
from sparkwriter.iceberg.publisher import Publisher
from sparkwriter.iceberg.refusals import only_names, reasons
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, layout_of
from sparkwriter.iceberg.staged_source import SharedStaging
from sparkwriter.iceberg.statements import STAMP_CONF, StatementWrites
from sparkwriter.iceberg.stored_rows import StoredRows
from sparkwriter.iceberg.swap import NameTombstones
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.iceberg.vectors import VectorWrites
from sparkwriter.kit.shape import rows_above
from sparkwriter.kit.store import Absent, Capabilities, Facts, TableChange
from sparkwriter.session.java_api import JavaFailure, java_class

TABLE_PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.parquet.compression-codec": "zstd",
    # Three metadata files a write: without this the folder grows for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "30",
    # Each write adds two manifests, which every later one reads. Iceberg's 100 are for appends.
    "commit.manifest.min-count-to-merge": "4",
}


class IcebergStore:
    """``sparkwriter.kit.store.TableStore`` for Iceberg tables.

    The instance is made on any thread and used on one: what it sets on its session (the stamp
    for the next commit) must not be seen by another write. The sink's name is the catalog's.
    ``upkeep`` and ``compactions`` are shared by the sink's writers; without them, this one has
    some of its own. ``shared_staging``: see ``StagedSource``. ``settings``: Spark settings of this
    writer's session that differ from the others', such as a catalog's new password."""

    capabilities = Capabilities()

    def __init__(
        self,
        spark: SparkSession,
        upkeep: Upkeep | None = None,
        compactions: Compactions | None = None,
        shared_staging: SharedStaging | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.upkeep = upkeep or Upkeep(anonymous(), MaintenanceSection())
        self._spark = spark.newSession()
        for name, value in (settings or {}).items():
            self._spark.conf.set(name, value)
        self.catalog = LakeCatalog(self._spark, self.upkeep.foreign)
        self._tombstones = NameTombstones(self._spark, self.catalog)
        files = TableFiles(self._spark)
        self._equality = EqualityWrites(files)
        self._statements = StatementWrites(
            self._spark,
            self._tombstones,
            self._equality,
            VectorWrites(self._spark.sparkContext._jvm, files),
            TABLE_PROPERTIES,
            self._begin_jobs,
            shared_staging,
        )
        self._stored = StoredRows(self._spark, self._begin_jobs, shared_staging)
        self._compactor = Compactor(
            self._spark,
            Jobs(self._begin_jobs, self.cancel),
            compactions or Compactions(CompactionSection()),
            self.upkeep.foreign,
        )
        self._publisher = Publisher(self._tidy)
        # Jobs of one pool wait for each other in turn; each writer has its own, so that a long
        # write does not hold a short one.
        self._pool = f"binlogd-{uuid4().hex[:8]}"
        self._group = _new_group()
        # ${...} in a name or a value is that name or value, never a setting of Spark.
        self._spark.conf.set("spark.sql.variable.substitute", "false")

    def cancel(self) -> None:
        """End the jobs of the call that runs, and those it would start: it fails. Any thread.
        Asked of the JVM, so it hangs where that does."""
        # pyspark has only the half of it that spares a statement between two of its jobs.
        context = self._spark.sparkContext._jsc.sc()
        context.cancelJobGroupAndFutureJobs(self._group)

    def call(self, target: TargetName) -> AbstractContextManager[None]:
        """Java's errors become the port's; the call's jobs can be cancelled together."""
        self._group = _new_group()
        return reasons(target)

    def look(self, target: TargetName) -> Seen | Absent:
        """Read the table from the catalog."""
        return look(self.catalog, target)

    def open(self, target: TargetName, recorded: TargetMark | None) -> Seen | Absent:
        """Look at it, at its history where a version is recorded; sweep what dead runs left."""
        if recorded is not None and recorded.version is not None:
            here = look_back(self.catalog, target, recorded, self.upkeep.new_branch)
        else:
            here = look(self.catalog, target)
        if isinstance(here, Seen):
            self.upkeep.opened(target, here.table)
        return here

    def create(self, batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> None:
        """Make the table in one commit."""
        keys = json.dumps(list(batch.schema.keys), ensure_ascii=False)
        properties = {**TABLE_PROPERTIES, MODE: batch.mode.value, KEYS: keys}
        properties |= {**source_text(facts.source), **shape_text(facts.shape)}
        if facts.differs is not None:
            properties[DIFFERS] = facts.differs
        if batch.positions is not None:
            properties[POSITIONS] = batch.positions
            columns = (*columns, LakeColumn(POSITION, "string"))
        layout = layout_of(dict(batch.options))
        properties = {**properties, **layout.properties}
        self.catalog.create(batch.target, columns, properties, (HWM, facts.marks.text()), layout)

    def change_schema(self, seen: Seen, steps: Sequence[SchemaStep], differs: str | None) -> None:
        """Alter the table in one commit, unless another did first."""
        marked = {} if differs is None or differs == seen.differs else {DIFFERS: differs}
        try:
            with only_names():
                seen.table.change_schema(steps, marked)
        except JavaFailure as error:
            if not java_class(error).endswith(".CommitFailedException"):
                raise

    def publish(self, seen: Seen, batch: StagedBatch, facts: Facts) -> str:
        """Write in one commit to main; then keep the table small when it is time for that."""
        layout = layout_of(dict(batch.options))
        check_layout(layout, seen.table.layout)
        if batch.path is not None:
            check_not_null(seen.table.required(), batch.path)
        stamp = facts.marks.text()
        also = also_of(seen, facts, layout.properties)
        update: Update | LakeTable | None = None
        if batch.path is None:
            update = Update(seen.table.table.newFastAppend().set(HWM, stamp))
        elif plan := self._equality.plan(seen, batch, batch.path):
            with suppress(Scattered):
                update = self._equality.update(seen.table, plan, batch.path, stamp)
        if update is None:
            assert batch.path is not None
            update = self._statements.write(seen, batch, batch.path, stamp)
        return str(self._publisher.publish(seen, batch, update, also))

    def prepare(self, seen: Seen, batch: StagedBatch) -> None:
        """See ``sparkwriter.kit.together.StoreTogether``: nothing."""

    def part(self) -> AbstractContextManager[None]:
        """Likewise: no table waits for another's rows."""
        return nullcontext()

    def together(self, locks_s: float) -> AbstractContextManager[None]:
        """Likewise; of a JDBC catalog alone."""
        return self._publisher.together(locks_s)

    def is_away(self, target: TargetName) -> bool:
        """Whether the catalog answers nobody."""
        return not self.catalog.answers(target.sink)

    def read_rows(self, seen: Seen, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """By a job, of the snapshot that was seen."""
        return self._stored.of(seen, keys, columns)

    def reset(self, seen: Seen, marks: Marks) -> str:
        """Publish marks and, from a changelog, the removal of the rows above them."""
        table, branch, stamp = seen.table, self.upkeep.new_branch(), marks.text()
        changelog = seen.stored.mode is Mode.APPEND
        away = rows_above(seen.marks.offsets, marks.offsets) if changelog else None
        if away is not None:
            delete_whole_files(table, seen.main)
        try:
            create_branch(table, branch, seen.main)
            if away is not None:
                target = seen.target
                into = dotted(target.sink, target.namespace, target.table, f"branch_{branch}")
                self._begin_jobs(f"reset {target}")
                self._stamped(f"DELETE FROM {into} WHERE {away}", stamp)
            head = stamped_removal(table, branch, seen.main, stamp)
            also = also_of(seen, Facts(marks, seen.differs, seen.source, seen.shape))
            publish_branch(table, branch, seen.main, head, also)
        except BaseException:
            drop_branch(table, branch)
            raise
        return str(head)

    def columns(self, seen: Seen) -> DdlTable:
        """The table as statements find it."""
        return columns_of(seen)

    def change(self, seen: Seen, change: TableChange) -> None:
        """Change the table and its marks in one commit."""
        publish_change(seen, change, self.upkeep.new_branch())

    def move(self, seen: Seen, to: TargetName, change: TableChange, left: Marks) -> None:
        """Change the table and give it another name."""
        move_table(self.catalog, seen, to, change, left)

    def set_aside(self, seen: Seen, aside: TargetName) -> None:
        """Give the table another name; its own keeps the marks."""
        self.catalog.bury(seen.target, seen.marks.text())
        self.catalog.rename(seen.target, aside)

    def drop(self, seen: Seen, marks: Marks) -> None:
        """Take the table out of the catalog; its files stay."""
        self.catalog.bury(seen.target, marks.text())
        self.catalog.drop(seen.target)

    def bury(self, target: TargetName, marks: Marks) -> None:
        """Note in the namespace which marks a name has that no table has."""
        self.catalog.bury(target, marks.text())

    def free(self, target: TargetName, renaming: str) -> None:
        """Note in the namespace which renaming may take the name."""
        self.catalog.free(target, renaming)

    def freed(self, target: TargetName) -> str | None:
        """What ``free`` noted."""
        return self.catalog.freed(target)

    def is_empty(self, seen: Seen) -> bool:
        """Whether the table holds no row, by its manifests."""
        return is_empty(seen)

    def may_hold_null(self, seen: Seen, column: str) -> bool:
        """Whether a stored row may have a null in the column, by the files' counts."""
        return seen.table.may_hold_null(seen.main, column)

    def filled(self, seen: Seen) -> frozenset[str]:
        """None: a row that is written has what its file has."""
        return frozenset()

    def added_otherwise(self, seen: Seen, batch: StagedBatch) -> list[str]:
        """What the batch's statements add with another default than the table shows it with."""
        return added_otherwise(seen, batch)

    def _tidy(self, batch: StagedBatch, seen: Seen) -> None:
        target = batch.target
        self._compactor.wrote(batch, seen)
        tidied = self.upkeep.written(target, seen.table)
        if tidied and seen.positions is not None:
            self._begin_jobs(f"tidy {target}")
            self._tombstones.tidy(target, seen.table, self.upkeep.settings, self.upkeep.now())

    def _begin_jobs(self, what: str) -> None:
        """The jobs from here on are of one call, which can be cancelled."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._pool)
        self._spark.sparkContext.setJobGroup(self._group, what, interruptOnCancel=True)

    def _stamped(self, sql: str, stamp: str) -> None:
        """Run a statement, its commit stamped."""
        try:
            # It would stamp every later commit of this session too: set for this one statement.
            self._spark.conf.set(STAMP_CONF, stamp)
            self._spark.sql(sql)
        finally:
            self._spark.conf.unset(STAMP_CONF)


def _new_group() -> str:
    """A name for the jobs of each call: cancelling one must never hit the next. Known from the
    call's begin, so that a cancel is not lost which comes before its first job."""
    return f"binlogd-{uuid4().hex}"
