"""The steps of comparing one table: the first pass, closer looks, keys in flight."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from actors.runtime.aside import Aside
from changes.formats import TopicFormats, make_format
from changes.routes.routing import Router
from changes.sql.spark.checksums import Grid
from daemon.config.config import formats
from daemon.operations.engine.port import Control
from daemon.operations.engine.record import Job, JobProgress
from daemon.operations.engine.source_targets import Compared
from daemon.operations.engine.source_watermarks import LogMoments, moments_of
from daemon.operations.verify import compare
from daemon.operations.verify.at_cut import CUT, AtCut, CutLookout
from daemon.operations.verify.columns import ComparedShape
from daemon.operations.verify.database_sides import Pacer
from daemon.operations.verify.groups import sampled
from daemon.operations.verify.in_flight import KeyLooks, looked, looked_at_rest
from daemon.operations.verify.in_flight_here import Interrupted, LiveLookout
from daemon.operations.verify.key_texts import Trail, follow, keys_of, moves_of
from daemon.operations.verify.log_changes import LogChanges
from daemon.operations.verify.open_sides import Open, Opening
from daemon.operations.verify.partition import PARTITION, Partition
from daemon.operations.verify.report import shown
from daemon.operations.verify.work import MOST_FOUND, MOST_SHOWN, Table
from databases.opening import open_database
from offsets.snapshot import Snapshot
from sparkwriter.session.requests import NotWanted


class Changed(Exception):
    """The source's table is not defined as it was when the comparison began."""


class TableRun:
    """Compares the present table of a job. One step's."""

    def __init__(self, job: Job, control: Control, compared: Compared, before: int) -> None:
        """``before``: rows of the tables that are done."""
        self._job = job
        self._control = control
        self.compared = compared
        self._pipeline = job.wanted.pipeline
        self.section = control.config.pipeline[self._pipeline]
        self.settings = self.section.verify
        self._database = control.config.database[compared.database]
        self._read = self._before = before
        self._pacer = Pacer(self._database.rows_per_s, self._control.wait)
        document = job.wanted.params.get(CUT)
        self._cut = None if document is None else AtCut.of(document)
        count, say = self._count, self._say
        given = job.wanted.params.get(PARTITION)
        partition = None if given is None else Partition.parse(str(given))
        self._opening = Opening(control, self._pipeline, compared, count, say, self._cut, partition)

    def advance(self, table: Table) -> Table:
        """Do the next part. Raises Interrupted, NotComparable, Changed, and what sides raise."""
        try:
            with self.opened(self._control.snapshot(self._pipeline), table.grid) as here:
                if table.definition not in ("", here.described.definition):
                    raise Changed
                if table.left is None:
                    return self._first(table, here)
                return self._next(table, here) if table.left else self._followed(table, here)
        except NotWanted as error:
            raise Interrupted from error

    # --- the first pass

    def _first(self, table: Table, here: Open) -> Table:
        # Before anything is read: what moves from here on is followed.
        begins = self.lookout(here).begins()
        grid, intervals = here.source.grid()
        part = float(self._job.wanted.params["sample"])
        some = sampled(intervals, part, self._job.id)
        rows = here.described.rows
        digits = compare.digits_of(some, rows)
        aside = Aside(lambda: here.source.sums(some, digits))
        target = self._opening.parted(here, grid, lambda: aside.failed)
        found = compare.first_pass(aside, target, some, digits)
        notes = list(here.shape.notes)
        if here.shape.missing:
            names = ", ".join(here.shape.missing)
            notes.append(f"the target lacks the columns {names}: `columns` in its route says so")
        if part < 1 and len(some) == len(intervals):
            notes.append("compared whole: it has too few ranges for a sample")
        return replace(
            table,
            definition=here.described.definition,
            grid=grid,
            left=found.left,
            rows=found.rows,
            ranges=found.intervals,
            notes=tuple(notes),
            trail=Trail(begins) if self._cut is None else None,
        )

    # --- closer

    def _next(self, table: Table, here: Open) -> Table:
        assert table.left
        left, keys = compare.advanced(here.source, here.target, table.left)
        lookout = self.lookout(here)
        look = looked if self._cut is None else looked_at_rest
        seen = look(keys, lookout) if keys else KeyLooks()
        return self._with(replace(table, left=tuple(left)), seen, here, lookout)

    def _followed(self, table: Table, here: Open) -> Table:
        assert table.trail is not None
        lookout = self.lookout(here)
        trail, seen = follow(table.trail, lookout)
        return self._with(replace(table, trail=trail), seen, here, lookout)

    def _with(self, table: Table, seen: KeyLooks, here: Open, lookout: LiveLookout) -> Table:
        if self._definition() != here.described.definition:
            raise Changed
        return with_looks(table, seen, here.shape, lookout.assumed)

    def lookout(self, here: Open) -> LiveLookout:
        """What looks at rows ask."""
        snapshot = self._control.snapshot(self._pipeline)
        needed = (
            self._control,
            self._pipeline,
            str(self.compared.target),
            (here.source, here.target),
            here.primary,
            self._moments(snapshot),
            self._changes(snapshot, here),
            self.settings,
            self._say,
        )
        if self._cut is not None:
            return CutLookout(self._cut.places, *needed)
        return LiveLookout(*needed)

    # --- what it takes

    def _moments(self, snapshot: Snapshot) -> LogMoments:
        """The log of the partitions that may hold the table."""
        return moments_of(self._control, self._pipeline, snapshot, str(self.compared.target))

    def _changes(self, snapshot: Snapshot, here: Open) -> LogChanges:
        """What the log changes in the target."""
        topics = TopicFormats(snapshot.formats)
        return LogChanges(
            make_format(*formats(self._control.config)(self._pipeline), topics),
            Router(self._control.config.routes(self._pipeline)),
            self._control.source(self._pipeline).reader(),
            str(self.compared.target),
            partial(keys_of, keys=here.shape.keys, wanted=here.wanted),
            partial(moves_of, keys=here.shape.keys, wanted=here.wanted),
        )

    def opened(self, snapshot: Snapshot, grid: Grid | None = None) -> AbstractContextManager[Open]:
        """The table on both sides. Raises NotComparable, and what both raise."""
        return self._opening.opened(snapshot, grid)

    def _definition(self) -> str:
        database = open_database(self._control.config, self.compared.database)
        try:
            return database.describe(self.compared.table).definition
        finally:
            database.close()

    def _count(self, rows: int) -> None:
        """After each statement to the source."""
        self._read += rows
        self._pacer.read(rows)
        if self._control.asked:
            raise Interrupted
        self._control.tell(self._progress(), f"compares {self.compared.target}")

    def _say(self, message: str) -> None:
        self._control.tell(self._progress(), f"{self.compared.target}: {message}")

    def _progress(self) -> JobProgress:
        total = self._job.progress.total
        return JobProgress(self._read, None if total is None else max(total, self._read))


def with_looks(table: Table, seen: KeyLooks, shape: ComparedShape, assumed: bool = False) -> Table:
    """The table after some looks. ``assumed``: an idle partition was taken to have passed."""
    notes = table.notes
    idle = "that an idle partition had passed a moment was assumed, not proved: no heartbeat came"
    if assumed and idle not in notes:
        notes = (*notes, idle)
    known = {*table.found, *(key for key, _ in table.undecided)}
    differing = [found for found in seen.differing if found.key not in known]
    room = MOST_SHOWN - len(table.shown)
    return replace(
        table,
        found=(*table.found, *(found.key for found in differing))[:MOST_FOUND],
        shown=(*table.shown, *(shown(found, shape) for found in differing[:room])),
        undecided=(
            *table.undecided,
            *((key, why) for key, why in sorted(seen.undecided.items()) if key not in known),
        ),
        notes=notes,
        moved=table.moved + len(seen.moved),
    )


def now_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
