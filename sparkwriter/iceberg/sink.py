"""The Iceberg sink: one atomic, fenced publish for each batch, with the marks inside.

How the publish is fenced is told in ``iceberg_publish``, what becomes of old snapshots and of
branches that were left behind in ``iceberg_upkeep``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import SparkSession

from actors.contract.ports import SinkUnavailable, StagedBatch, Swap, TargetRefused, TargetState
from actors.processor.one_lane import check_one_lane
from changes.model import POSITION, Mode, TargetName
from offsets.fence import Marks
from offsets.moves import MarkMoves
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.attempts import anonymous
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions, Compactor, Jobs
from sparkwriter.iceberg.compaction_plan import CompactionSettings
from sparkwriter.iceberg.ddl import Barriers
from sparkwriter.iceberg.direct import Update, publish_update
from sparkwriter.iceberg.doubts import also_of, mark_after, mark_of_new
from sparkwriter.iceberg.equality import EqualityWrites
from sparkwriter.iceberg.files import TableFiles
from sparkwriter.iceberg.history import look_back
from sparkwriter.iceberg.java import JavaFailure, java_class, reason
from sparkwriter.iceberg.look import (
    DIFFERS,
    KEYS,
    MODE,
    POSITIONS,
    Absent,
    Seen,
    look,
)
from sparkwriter.iceberg.marks import HWM
from sparkwriter.iceberg.publish import create_branch, drop_branch, publish_branch
from sparkwriter.iceberg.refusals import only_names, reasons
from sparkwriter.iceberg.rewind import delete_whole_files, rows_above, stamped_removal
from sparkwriter.iceberg.source import check_source, source_after, source_text
from sparkwriter.iceberg.statements import STAMP_CONF, StatementWrites
from sparkwriter.iceberg.swap import remove_table, swap_tables
from sparkwriter.iceberg.tombstones import Tombstones
from sparkwriter.iceberg.upkeep import Upkeep, UpkeepSettings
from sparkwriter.iceberg.vectors import VectorWrites
from sparkwriter.iceberg.warehouse import check_warehouse
from sparkwriter.sql.not_null import check_not_null
from sparkwriter.sql.plan import dotted
from sparkwriter.sql.schema import (
    CreateTable,
    LakeColumn,
    SchemaStep,
    missing_columns,
    plan_schema,
)

SETTLE_ATTEMPTS = 5
"""Looks at a table before a write until nothing is to be changed in its schema: one when it
fits, two after a change, more only where others change it at the same time."""

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


class IcebergWriter:
    """``actors.contract.ports.BatchWriter`` for Iceberg tables, over a Spark session of its own.

    The instance is made on any thread and used on one: what it sets on its session (the stamp
    for the next commit) must not be seen by another write. The sink's name is the catalog's.
    ``upkeep`` and ``compactions`` are shared by the sink's writers; without them, this writer has
    some of its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        upkeep: Upkeep | None = None,
        compactions: Compactions | None = None,
    ) -> None:
        self._upkeep = upkeep or Upkeep(anonymous(), UpkeepSettings())
        self._spark = spark.newSession()
        self._catalog = LakeCatalog(self._spark, self._upkeep.foreign)
        self._barriers = Barriers(self._catalog, self._upkeep.new_branch)
        self._tombstones = Tombstones(self._spark, self._catalog)
        files = TableFiles(self._spark)
        self._equality = EqualityWrites(files)
        self._statements = StatementWrites(
            self._spark,
            self._tombstones,
            self._equality,
            VectorWrites(self._spark.sparkContext._jvm, files),
            TABLE_PROPERTIES,
            self._begin_jobs,
        )
        self._compactor = Compactor(
            self._spark,
            Jobs(self._begin_jobs, self.cancel),
            compactions or Compactions(CompactionSettings()),
            self._upkeep.foreign,
        )
        # Jobs of one pool wait for each other in turn; each writer has its own, so that a long
        # write does not hold a short one.
        self._pool = f"binlogd-{uuid4().hex[:8]}"
        self._group = _new_group()
        # ${...} in a name or a value is that name or value, never a setting of Spark.
        self._spark.conf.set("spark.sql.variable.substitute", "false")

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        """Read schema, mode and marks of the table from the catalog. See ``BatchWriter.open``."""
        with reasons(target):
            if recorded is not None and recorded.version is not None:
                here = look_back(self._catalog, target, recorded, self._upkeep.new_branch)
            else:
                here = look(self._catalog, target)
            if isinstance(here, Seen):
                self._upkeep.opened(target, here.table)
            return here.state

    def cancel(self) -> None:
        """End the jobs of the call that runs, and those it would start: it fails. Any thread.
        Asked of the JVM, so it hangs where that does.
        """
        # pyspark has only the half of it that spares a statement between two of its jobs.
        context = self._spark.sparkContext._jsc.sc()
        context.cancelJobGroupAndFutureJobs(self._group)

    def write(self, batch: StagedBatch) -> TargetState:
        """Publish the batch with its marks in one commit to main. See ``BatchWriter.write``."""
        self._group = _new_group()
        with reasons(batch.target):
            if batch.is_barrier:
                return self._barriers.write(batch)
            for _ in range(SETTLE_ATTEMPTS):
                here = look(self._catalog, batch.target)
                seen = here if isinstance(here, Seen) else None
                if seen is not None and seen.marks.cover(batch):
                    return replace(seen.state, covered=True)
                here.marks.check(batch)
                if seen is not None and seen.dropped and batch.path is not None:
                    self._barriers.move_aside(batch.target, seen)
                    continue
                check_source(batch, seen.source if seen else None)
                if seen is not None:
                    check_positions(batch, seen)
                check_one_lane(
                    batch, here.marks.offsets, seen.positions if seen else batch.positions
                )
                steps = plan_schema(batch.schema, batch.mode, seen.stored if seen else None)
                if seen is not None and not steps:
                    state = self._publish(seen, batch)
                    self._after(batch, seen)
                    return state
                self._change(batch, here, steps)
        raise SinkUnavailable(f"{batch.target}: others keep changing the table's schema")

    def swap(self, swap: Swap) -> TargetState:
        """Have a rebuilt table take the old one's name. See ``actors.contract.ports.Swaps``."""
        with reasons(swap.old):
            return swap_tables(self._catalog, swap, self._upkeep.new_branch)

    def remove(self, target: TargetName) -> None:
        """Remove what a rebuild made that was given up. See ``actors.contract.ports.Swaps``."""
        with reasons(target):
            look(self._catalog, target)  # refuses what is not ours
            remove_table(self._catalog, target)

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        """Move the marks, and take what is to be written again. See ``ResettableSink.reset``."""
        self._group = _new_group()
        with reasons(target):
            here = look(self._catalog, target)
            before, after = here.marks.offsets, moves.of(here.marks.offsets)
            if after == before:
                return replace(here.state, covered=True)
            marks = here.marks.at(after)
            if isinstance(here, Absent):
                self._catalog.bury(target, marks.text())
                return look(self._catalog, target).state
            away = rows_above(before, after) if here.stored.mode is Mode.APPEND else None
            if away is not None:
                delete_whole_files(here.table, here.main)
            return self._publish_marks(here, target, marks, away)

    def _publish_marks(
        self, seen: Seen, target: TargetName, marks: Marks, away: str | None
    ) -> TargetState:
        """Publish marks, and the removal of the rows for which a condition holds."""
        table, branch, stamp = seen.table, self._upkeep.new_branch(), marks.text()
        try:
            create_branch(table, branch, seen.main)
            if away is not None:
                into = dotted(target.sink, target.namespace, target.table, f"branch_{branch}")
                self._begin_jobs(f"reset {target}")
                self._stamped(f"DELETE FROM {into} WHERE {away}", stamp)
            head = stamped_removal(table, branch, seen.main, stamp)
            also = also_of(seen, seen.differs, seen.source)
            publish_branch(table, branch, seen.main, head, also)
        except BaseException:
            drop_branch(table, branch)
            raise
        return seen.state_at(marks, head)

    def _after(self, batch: StagedBatch, seen: Seen) -> None:
        """The write is published: keep the table small when it is time for that."""
        target = batch.target
        self._compactor.wrote(batch, seen)
        tidied = self._upkeep.written(target, seen.table)
        if tidied and seen.positions is not None:
            settings, now = self._upkeep.settings, self._upkeep.now()
            self._begin_jobs(f"tidy {target}")
            self._tombstones.tidy(target, seen.table, settings, now)

    def _change(self, batch: StagedBatch, here: Seen | Absent, steps: Sequence[SchemaStep]) -> None:
        """Create the table or alter it, unless another did it first: the next look will tell."""
        if isinstance(here, Absent):
            (create,) = steps
            assert isinstance(create, CreateTable)
            keys = json.dumps(list(batch.schema.keys), ensure_ascii=False)
            properties = {**TABLE_PROPERTIES, MODE: batch.mode.value, KEYS: keys}
            properties |= source_text(batch.table)
            if (mark := mark_of_new(batch)) is not None:
                properties[DIFFERS] = mark
            columns = create.columns
            if batch.positions is not None:
                properties[POSITIONS] = batch.positions
                columns = (*columns, LakeColumn(POSITION, "string"))
            stamp = (HWM, here.marks.text())
            self._catalog.create(batch.target, columns, properties, stamp)
            return
        mark = mark_after(here, batch)
        marked = {} if mark is None or mark == here.differs else {DIFFERS: mark}
        try:
            with only_names():
                here.table.change_schema(steps, marked)
        except JavaFailure as error:
            if not java_class(error).endswith(".CommitFailedException"):
                raise

    def _publish(self, seen: Seen, batch: StagedBatch) -> TargetState:
        if batch.path is not None:
            check_not_null(seen.table.required(), batch.path)
        marks, mark = seen.marks.after(batch), mark_after(seen, batch)
        also = also_of(seen, mark, source_after(batch, seen.source))
        shown, stamp = replace(seen, differs=mark), marks.text()
        if batch.path is None:
            update = Update(seen.table.table.newFastAppend().set(HWM, stamp))
        elif plan := self._equality.plan(seen, batch, batch.path):
            update = self._equality.update(seen.table, plan, batch.path, stamp)
        else:
            head = self._statements.publish(seen, batch, batch.path, stamp, also)
            return shown.state_at(marks, head)
        return shown.state_at(marks, publish_update(seen.table, seen.main, update, also))

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
        raise SinkUnavailable(
            f"sink {sink}: can't open the catalog {place}: {reason(error)}"
        ) from error


def check_positions(batch: StagedBatch, seen: Seen) -> None:
    """Raise TargetRefused where the target keeps positions that the batch does not carry."""
    kept = seen.positions
    if kept is not None and POSITION not in {column.name for column in seen.stored.columns}:
        raise TargetRefused(missing_columns([POSITION]))
    if batch.path is not None and kept is not None and batch.positions != kept:
        raise TargetRefused(
            f"the table keeps the positions {kept} of its rows, the changes carry"
            f" {batch.positions or 'none'}"
        )
