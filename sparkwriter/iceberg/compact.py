"""Compaction: files rewritten by the table's own writer, between two of its writes.

It is published like a write, with the marks as they were, by compare-and-set.
``rewrite_data_files`` is not, can't be cancelled by the group of its jobs, and leaves equality
deletes until every file of rows is younger than they are. So its parts are used: Iceberg plans,
Spark reads and writes the tasks that were chosen, and one commit swaps the files and removes
whatever deletion no file needs any more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

import structlog
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.iceberg.compaction_plan import Choice, FileSeen, Growth, choose
from sparkwriter.iceberg.direct import Update, publish_update
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.marks import nearest_mark
from sparkwriter.iceberg.ownership import ForeignSnapshots
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import CompactionSection, Write, write_of
from sparkwriter.session.java_api import Java, JavaFailure, reason

log: Any = structlog.get_logger(__name__)


class Compactions:
    """Which of one sink's targets are due, and the end of it all; shared by the sink's writers.

    No two calls for one target come at the same time. ``stop`` may be called on any thread.
    """

    def __init__(self, settings: CompactionSection) -> None:
        self.settings = settings
        # One entry a target, each only touched for its own target: no lock is needed.
        self._growth: dict[TargetName, Growth] = {}
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[Callable[[], None]] = set()

    @property
    def stopped(self) -> bool:
        """Whether nothing is to begin any more."""
        return self._stopped

    def wrote(self, batch: StagedBatch, before: Seen) -> bool:
        """A write is published; tells whether the target's files are to be looked at.

        ``before``: what it was published on. Of what earlier processes left only that tells.
        """
        growth = self._growth.get(batch.target)
        if growth is None:
            growth = self._growth[batch.target] = Growth()
            keys = _count(before, "total-equality-deletes")
            deletes = _count(before, "total-delete-files") if keys else 0
            growth.add(_count(before, "total-data-files"), deletes, keys)
        by_keys = write_of(dict(batch.options)) is Write.EQUALITY and batch.path is not None
        growth.add(1, int(by_keys), batch.rows if by_keys else 0)
        return self.settings.enabled and not self._stopped and growth.is_due(self.settings)

    def looked(self, target: TargetName, more: bool) -> None:
        """The target's files have been looked at; ``more``: the next write is to do so again."""
        self._growth[target] = growth = Growth()
        if more:
            growth.add(self.settings.small_files, 0, 0)

    @contextmanager
    def running(self, cancel: Callable[[], None]) -> Iterator[None]:
        """While one runs: ``stop`` calls ``cancel``. Raises SinkUnavailable after a stop."""
        with self._lock:
            if self._stopped:
                raise SinkUnavailable("binlogd is being stopped")
            self._running.add(cancel)
        try:
            yield
        finally:
            # A stop that is under way ends first: it must not cancel the write that comes next.
            with self._lock:
                self._running.discard(cancel)

    def stop(self) -> None:
        """Let nothing begin any more, and cancel what runs. Hangs where a JVM does."""
        with self._lock:
            self._stopped = True
            for cancel in self._running:
                try:
                    cancel()
                except (*JavaFailure, OSError) as error:
                    log.warning("compaction_not_cancelled", reason=reason(error))


def _count(seen: Seen, entry: str) -> int:
    return int(seen.table.summary(seen.main, entry) or 0)


class _Plan(NamedTuple):
    """A snapshot's files of rows, as Iceberg's tasks and as what is said of each."""

    tasks: list[Java]
    files: list[FileSeen]
    deletes: list[frozenset[DeleteId]]


DeleteId = tuple[str, int | None]
"""A file of deletions: its path, and where in it they are (several vectors share a file)."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """What a writer lends: ``begin`` names the jobs from here on, ``cancel`` ends those."""

    begin: Callable[[str], None]
    cancel: Callable[[], None]


class Compactor:
    """One writer's compactions; called on its thread. Nothing here fails a write."""

    def __init__(
        self,
        spark: SparkSession,
        jobs: Jobs,
        compactions: Compactions,
        foreign: ForeignSnapshots,
    ) -> None:
        self._spark = spark
        self._jvm: Java = spark.sparkContext._jvm
        self._jobs = jobs
        self._all = compactions
        self._foreign = foreign

    def wrote(self, batch: StagedBatch, seen: Seen) -> None:
        """After a write that was published on ``seen``: compact what is due, or log why not."""
        target = batch.target
        if not self._all.wrote(batch, seen):
            return
        more = False
        try:
            with self._all.running(self._jobs.cancel):
                more = self.run(target, seen.table)
        except (Fenced, SinkUnavailable, *JavaFailure) as error:
            if self._all.stopped:
                log.info("compaction_stopped", target=str(target))
            else:
                log.warning("compaction_failed", target=str(target), reason=reason(error))
        self._all.looked(target, more)

    def run(self, target: TargetName, table: LakeTable) -> bool:
        """Rewrite what is due, one round. Returns whether there is more.

        A table in a layout that binlogd never makes is left as it is: somebody chose it. Raises
        Fenced, SinkUnavailable, one of JavaFailure; then nothing is published.
        """
        begun = time.monotonic()
        table.refresh()
        main = table.head(MAIN)
        if main is None or table.layout.unfit is not None:
            return False
        plan = self._plan(table, main)
        choice = choose(plan.files, self._all.settings)
        needed = _needed(plan, choice)
        unneeded = [file for id_, file in self._delete_files(table, main) if id_ not in needed]
        if not choice.files and not unneeded:
            return False
        made = self._publish(target, table, main, [plan.tasks[at] for at in choice.files], unneeded)
        log.debug(
            "compacted",
            target=str(target),
            files_before=len(plan.files),
            files_after=len(plan.files) - len(choice.files) + made,
            bytes=sum(plan.files[at].bytes for at in choice.files),
            deletes_removed=len(unneeded),
            deletes_left=len(needed),
            seconds=round(time.monotonic() - begun, 3),
        )
        return choice.more

    def _plan(self, table: LakeTable, main: int) -> _Plan:
        """What a reader of the snapshot would do, file by file: about a millisecond for each."""
        plan = _Plan([], [], [])
        found = table.table.newScan().useSnapshot(main).planFiles()
        try:
            for task in _each(found):
                said = table.said(task)
                file, deletes = said["data-file"], said.get("delete-files", [])
                plan.tasks.append(task)
                plan.files.append(_seen(file, deletes))
                plan.deletes.append(frozenset(map(_id_of, deletes)))
        finally:
            found.close()
        return plan

    def _delete_files(self, table: LakeTable, main: int) -> Iterator[tuple[DeleteId, Java]]:
        """Every file of deletions in the snapshot, whether any file of rows needs it or not."""
        io, specs = table.table.io(), table.metadata.specsById()
        snapshot = table.metadata.snapshot(main)
        for manifest in _each(snapshot.deleteManifests(io)):
            entries = self._iceberg.ManifestFiles.readDeleteManifest(manifest, io, specs)
            try:
                for file in _each(entries):
                    offset = file.contentOffset()
                    yield (str(file.location()), None if offset is None else int(offset)), file
            finally:
                entries.close()

    def _publish(
        self,
        target: TargetName,
        table: LakeTable,
        main: int,
        tasks: list[Java],
        unneeded: list[Java],
    ) -> int:
        """Swap the files in one commit; gives the number of new ones."""
        mark = nearest_mark(table, main)
        if mark is None:
            raise SinkUnavailable(f"no snapshot carries {HWM}: nothing is compacted")
        self._foreign.tell(target, table, mark.above)
        made = self._written(target, table, tasks) if tasks else []
        rewrite = table.table.newRewrite().validateFromSnapshot(main).set(HWM, mark.text)
        for file in (*(task.file() for task in tasks), *unneeded):
            rewrite.deleteFile(file)
        for file in made:
            rewrite.addFile(file)
        files = tuple(str(file.location()) for file in made)
        publish_update(table, main, Update(rewrite, files))
        return len(made)

    def _written(self, target: TargetName, table: LakeTable, tasks: list[Java]) -> list[Java]:
        """Have Spark read what the tasks read and write it to new files; nothing is committed."""
        group, spark = str(uuid4()), self._iceberg.spark
        staged, results = spark.ScanTaskSetManager.get(), spark.FileRewriteCoordinator.get()
        cache = self._table_cache
        size = str(self._all.settings.file_bytes)
        self._jobs.begin(f"compact {target}")
        cache.add(group, table.table)
        try:
            staged.stageTasks(table.table, group, self._list(tasks))
            read = self._spark.read.format("iceberg").option("split-size", size)
            frame = read.option("file-open-cost", "0").load(group)
            write = frame.write.format("iceberg").option("target-file-size-bytes", size)
            write.option("distribution-mode", "none").mode("append").save(group)
            return list(_each(results.fetchNewFiles(table.table, group)))
        finally:
            cache.remove(group)
            staged.removeTasks(table.table, group)
            results.clearRewrite(table.table, group)

    def _list(self, items: Iterable[Java]) -> Java:
        found = self._jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found

    @cached_property
    def _table_cache(self) -> Java:
        """By this table's name Spark then finds the tasks that are staged."""
        # By reflection: py4j can't tell the class's static ``get`` from the other one.
        loader = self._iceberg.Files.localInput("").getClass().getClassLoader()
        kind = loader.loadClass("org.apache.iceberg.spark.SparkTableCache")
        gateway: Java = self._spark.sparkContext._gateway
        nothing = gateway.new_array(self._jvm.Class, 0), gateway.new_array(self._jvm.Object, 0)
        return kind.getMethod("get", nothing[0]).invoke(None, nothing[1])

    @cached_property
    def _iceberg(self) -> Java:
        return self._jvm.org.apache.iceberg


def _each(iterable: Java) -> Iterator[Java]:
    # Not as py4j iterates: it learns the end from an exception, which pyspark asks about.
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _seen(file: dict[str, Any], deletes: list[dict[str, Any]]) -> FileSeen:
    keys = [one["record-count"] for one in deletes if one["content"] == "equality-deletes"]
    # A delete without it concerns several data files: this one's part of its rows is unknown.
    dead = [one["record-count"] for one in deletes if "referenced-data-file" in one]
    return FileSeen(
        file["file-size-in-bytes"],
        file["record-count"],
        len(deletes),
        sum(keys),
        sum(dead),
        json.dumps([file["spec-id"], file.get("partition", [])]),
    )


def _id_of(delete: dict[str, Any]) -> DeleteId:
    return delete["file-path"], delete.get("content-offset")


def _needed(plan: _Plan, choice: Choice) -> frozenset[DeleteId]:
    """The deletions that the files which stay as they are apply."""
    stay = set(range(len(plan.files))).difference(choice.files)
    return frozenset[DeleteId]().union(*(plan.deletes[at] for at in stay))
