"""Writing a batch the cheapest way, in one commit: by statements of Spark only where it must be.

What statements commit stays in the memory of an attempt until it is published; where a statement
is not needed, rows and deletions go into the table as files of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import structlog
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.errors import LostRace, SinkUnavailable
from changes.model.model import Mode
from changes.sql.spark.guards import Guard, add_tombstones
from changes.sql.spark.write_strategy import BatchFacts, WriteWay, choose, tasks_for
from sparkwriter.iceberg.column_defaults import fillings
from sparkwriter.iceberg.direct import Update
from sparkwriter.iceberg.equality import EqualityWrites, is_empty, plan_files, special
from sparkwriter.iceberg.equality_files import EqualityPlan, merge_instead
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.partitions import Scattered
from sparkwriter.iceberg.plan import key_columns, merge_sql, removal_sql, rows_sql
from sparkwriter.iceberg.publish import MAIN, discard, remove_files
from sparkwriter.iceberg.staged_source import LooseTables, SharedStaging, StagedSource
from sparkwriter.iceberg.stored_keys import Unseekable
from sparkwriter.iceberg.swap import NameTombstones
from sparkwriter.iceberg.vectors import CandidateFile, VectorWrites

STAMP_CONF = f"spark.sql.iceberg.snapshot-property.{HWM}"
log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    """What one write is about: the target as it was seen, the batch, its staged file and columns,
    and the marks as the snapshot is to carry them."""

    seen: Seen
    batch: StagedBatch
    path: str
    stamp: str
    staged: pa.Schema


class StatementWrites:
    """The writes of one writer that are not equality deletes; called on its thread.

    ``begin_jobs`` marks the jobs that follow as one write's, which can be cancelled. ``shared``:
    see ``StagedSource``.
    """

    def __init__(
        self,
        spark: SparkSession,
        tombstones: NameTombstones,
        files: EqualityWrites,
        vectors: VectorWrites,
        properties: dict[str, str],
        begin_jobs: Callable[[str], None],
        shared: SharedStaging | None,
    ) -> None:
        self._spark = spark
        self._tombstones = tombstones
        self._files = files
        self._vectors = vectors
        self._properties = properties
        self._begin_jobs = begin_jobs
        self._loose = LooseTables(spark)
        self._staged = StagedSource(spark, self._loose, shared)

    def write(self, seen: Seen, batch: StagedBatch, path: str, stamp: str) -> Update | LakeTable:
        """The batch's write, yet to be published: an update, or an attempt that statements made.
        Raises as ``BatchWriter``."""
        work = _Work(seen, batch, path, stamp, pq.read_schema(path))
        way, candidates = self._way(work)
        plan = plan_files(seen, batch, empty=way is WriteWay.APPEND)
        update: Update | None = None
        try:
            if way is WriteWay.APPEND:
                update = self._files.update(seen.table, plan, path, stamp)
            elif way is WriteWay.VECTOR:
                update = self._vectors.update(seen, plan, path, stamp, candidates)
        except (Unseekable, Scattered) as reason:
            log.debug("not_written_by_us", target=str(batch.target), reason=str(reason))
            way = WriteWay.INSERT if way is WriteWay.APPEND else WriteWay.REPLACE
        log.debug("way_chosen", target=str(batch.target), way=way.value, rows=batch.rows)
        return self._by_statement(work, way, plan) if update is None else update

    def _by_statement(self, work: _Work, way: WriteWay, plan: EqualityPlan) -> LakeTable:
        """The write as an attempt that is yet to be published."""
        seen, stamp = work.seen, work.stamp
        attempt = seen.table.begin()
        if (main := attempt.head(MAIN)) != seen.main:
            raise LostRace(f"main moved from snapshot {seen.main} to {main} meanwhile")
        self._begin_jobs(f"write {work.batch.target}")
        try:
            staged = self._staged.view(attempt, work.batch.target.sink, work.path, work.staged)
            with staged as view:
                if way is WriteWay.REPLACE:
                    self._replace(attempt, work, plan, view)
                elif way is WriteWay.JOBS:
                    self._remove(attempt, work, view)
                    self._state(attempt, work, WriteWay.INSERT, view)
                else:
                    self._state(attempt, work, way, view)
            attempt.refresh()
            if attempt.head(MAIN) == seen.main:
                # Rows that changed nothing: the marks still need a snapshot.
                attempt.stamp(MAIN, HWM, stamp)
                attempt.refresh()
        except BaseException:
            attempt.refresh()
            discard(seen.table, attempt, seen.main)
            raise
        if attempt.summary(attempt.head(MAIN) or 0, HWM) != stamp:
            raise SinkUnavailable("the statement's snapshot does not carry the marks")
        return attempt

    def _way(self, work: _Work) -> tuple[WriteWay, list[CandidateFile]]:
        """The way, and the files that may hold rows of the batch's keys, where we look those up."""
        seen, batch = work.seen, work.batch
        empty = batch.mode is Mode.APPEND or is_empty(seen)
        lacks = merge_instead(batch, seen.table.fields(), work.staged.names, empty=empty)
        facts = BatchFacts(empty, lacks, special(seen), rows=batch.rows, cores=self._others)
        if facts.known_new or choose(facts) is WriteWay.MERGE:
            return choose(facts), []
        candidates = self._vectors.candidates(seen, batch)
        if candidates is None:
            return choose(facts), []
        stored = sum(file.rows for file in candidates)
        found = replace(facts, known_new=not candidates, stored=stored, files=len(candidates))
        return choose(found), candidates

    @property
    def _cores(self) -> int:
        """Tasks that the session runs at once: of a cluster, as it is now."""
        return int(self._spark.sparkContext.defaultParallelism)

    @property
    def _others(self) -> int:
        """The same, without this machine's own cores, on which the daemon works too: there a job
        spends what it would save. One at least."""
        return 1 if self._spark.sparkContext._jsc.isLocal() else self._cores

    def _replace(self, attempt: LakeTable, work: _Work, plan: EqualityPlan, view: str) -> None:
        """Delete the stored rows of the batch's keys, then add its rows."""
        # First its rows: where a value does not fit, that is found before any work.
        try:
            rows = self._files.update(attempt, plan, work.path, work.stamp, deletes=False)
        except Scattered:
            self._remove(attempt, work, view)
            self._state(attempt, work, WriteWay.INSERT, view)
            return
        try:
            self._remove(attempt, work, view)
            rows.java.commit()
        except BaseException:
            remove_files(work.seen.table, rows.files)
            raise

    def _remove(self, attempt: LakeTable, work: _Work, view: str) -> None:
        """Delete the stored rows of the batch's keys, by one job."""
        # It shuffles no more rows than the batch has: so many tasks take them, in one job.
        tasks = str(tasks_for(work.batch.rows, self._cores))
        settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": tasks}
        with self._configured(settings):
            columns = work.seen.stored.columns
            text = removal_sql(work.batch, columns, work.staged.names, view)
            self._loose.merge(attempt, work.batch.target.sink, text)

    def _state(self, attempt: LakeTable, work: _Work, way: WriteWay, view: str) -> None:
        """Run the one statement that does it all, its commit stamped."""
        batch, names = work.batch, work.staged.names
        guard = self._guard(work, view)
        columns, fill = work.seen.stored.columns, fillings(work.seen, batch)
        # The stamp would go onto every later commit of this session too.
        with self._configured({STAMP_CONF: work.stamp}):
            if way is WriteWay.INSERT:
                text = rows_sql(batch, columns, names, view, guard, fill)
                self._loose.append(attempt, batch.target.sink, text)
            else:
                text = merge_sql(batch, columns, names, view, guard, fill)
                self._loose.merge(attempt, batch.target.sink, text)

    @contextmanager
    def _configured(self, settings: dict[str, str]) -> Iterator[None]:
        """Settings of the session for what is inside."""
        before = {name: self._spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                self._spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    self._spark.conf.unset(name)
                else:
                    self._spark.conf.set(name, old)

    def _guard(self, work: _Work, source: str) -> Guard | None:
        """How the write is guarded, its own deletions being remembered already.

        Before they are published: were it the other way round, a crash in between would let an
        older insert bring a deleted row back.
        """
        seen, batch = work.seen, work.batch
        if seen.positions is None:
            return None
        if batch.has_deletes:
            self._tombstones.prepare(batch.target, seen.stored, self._properties)
        guard = self._tombstones.guard(batch.target, seen.table)
        if batch.has_deletes:
            given = {name.lower(): name for name in work.staged.names}
            key = key_columns(batch, seen.stored.columns, given)
            self._spark.sql(add_tombstones(guard, key, source))
        return guard
