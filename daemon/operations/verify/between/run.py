"""The steps of comparing two targets of one table with each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from actors.runtime.aside import Aside
from changes.sql.spark.checksums import Grid, Interval
from daemon.operations.engine.port import Control
from daemon.operations.engine.record import Job, JobProgress
from daemon.operations.verify import compare
from daemon.operations.verify.at_cut import CUT, AtCut
from daemon.operations.verify.between.lookout import BetweenLookout
from daemon.operations.verify.between.opened import OpenPair, PairOpening
from daemon.operations.verify.between.pairs import FilledTarget
from daemon.operations.verify.database_sides import StoredSide
from daemon.operations.verify.groups import intervals_of, rows_of_interval, sampled
from daemon.operations.verify.in_flight import Ends, KeyLooks
from daemon.operations.verify.in_flight_here import Interrupted
from daemon.operations.verify.key_texts import MOST_MOVES, Trail, follow_by
from daemon.operations.verify.run import Changed, with_looks
from daemon.operations.verify.sides import LakeSide
from daemon.operations.verify.work import Table
from databases.base.port import Key
from settings.counted import counted
from sparkwriter.session.requests import NotWanted

_UNKNOWN = "the log has lost that stretch, or has a statement or an unreadable message there"

_MANY = 1 << 40
"""Rows of a table whose number is not asked for: it is parted as far as keys' hashes do."""


class PairRun:
    """Compares the present pair of a job. One step's."""

    def __init__(
        self, job: Job, control: Control, pair: tuple[FilledTarget, FilledTarget], before: int
    ) -> None:
        """``before``: rows of the tables that are done."""
        self._job = job
        self._control = control
        self._pair = pair
        self._names = str(pair[0].target), str(pair[1].target)
        self._read = before
        document = job.wanted.params.get(CUT)
        self._cut = None if document is None else AtCut.of(document)

    def advance(self, table: Table) -> Table:
        """Do the next part. Raises Interrupted, NotComparable, Changed, and what sides raise."""
        try:
            with self._opened(table.grid) as here:
                if table.definition not in ("", here.definition):
                    raise Changed
                if table.left is None:
                    return self._first(table, here)
                now = self._advanced(table, here)
            with self._opened(table.grid) as again:
                if again.definition != here.definition:
                    raise Changed
            return now
        except NotWanted as error:
            raise Interrupted from error

    # --- the first pass

    def _first(self, table: Table, here: OpenPair) -> Table:
        # Before anything is read: a row that changes its key from here on is followed.
        begins = self._lookout(here).begins()
        grid, intervals = self._grid(here)
        part = float(self._job.wanted.params["sample"])
        some = sampled(intervals, part, self._job.id)
        digits = compare.digits_of(some, _MANY)
        with self._opened(grid) as parted:
            found = _first_pass(parted, some, digits)
        changed, unknown = self._changed(here, begins)
        notes = [*here.shapes[0].notes, *here.notes, *unknown]
        if part < 1 and len(some) == len(intervals):
            notes.append("compared whole: it has too few ranges for a sample")
        return replace(
            table,
            definition=here.definition,
            grid=grid,
            left=found.left,
            rows=found.rows,
            ranges=found.intervals,
            notes=tuple(notes),
            trail=Trail(begins) if self._cut is None else None,
            changed=changed,
        )

    def _changed(self, here: OpenPair, begins: Ends) -> tuple[tuple[Key, ...], list[str]]:
        """The keys of rows that may be equal because the one has lost a change which the other does
        not have yet; and what can't be told of them. In a cut such rows can't be compared."""
        if self._cut is not None:
            return (), []
        ends = self._lookout(here).settled()
        keys = here.changes.keys(begins, ends)
        if keys is None:
            return (), [f"which rows changed between the two is not known: {_UNKNOWN}"]
        if len(keys) > MOST_MOVES:
            many = counted(len(keys), "row has", "rows have")
            return (), [f"{many} changed between the two: those that are equal were not looked at"]
        return tuple(sorted(keys)), []

    @staticmethod
    def _grid(here: OpenPair) -> tuple[Grid | None, list[Interval]]:
        """By a database's own index, where one of the two is there."""
        if any(shape.number is None for shape in here.shapes):
            return None, [Interval()]
        for side in here.sides:
            if isinstance(side, StoredSide):
                return side.grid()
        assert isinstance(here.sides[0], LakeSide)
        return even_intervals(here.sides[0].bounds())

    # --- closer

    def _advanced(self, table: Table, here: OpenPair) -> Table:
        if table.left:
            return self._next(table, here)
        if table.changed:
            seen = self._lookout(here).looked_when_held(table.changed)
            return with_looks(replace(table, changed=()), seen, here.shapes[0])
        return self._followed(table, here)

    def _next(self, table: Table, here: OpenPair) -> Table:
        assert table.left
        left, keys = compare.advanced(*here.sides, table.left)
        lookout = self._lookout(here)
        seen = KeyLooks()
        if keys and self._cut is None:
            seen = lookout.looked(keys)
        elif keys and self._cut is not None:
            seen = lookout.looked_at_cut(keys, here.places[0].holds())
        return with_looks(replace(table, left=tuple(left)), seen, here.shapes[0])

    def _followed(self, table: Table, here: OpenPair) -> Table:
        assert table.trail is not None
        lookout = self._lookout(here)
        trail, seen = follow_by(table.trail, lookout, lookout.looked)
        return with_looks(replace(table, trail=trail), seen, here.shapes[0])

    # --- what it takes

    def _lookout(self, here: OpenPair) -> BetweenLookout:
        settings = self._control.config.pipeline[self._pair[0].pipeline].verify
        return BetweenLookout(
            self._control,
            here.sides,
            here.places,
            self._names,
            here.changes,
            here.nulls,
            settings,
            self._say,
        )

    def _opened(self, grid: Grid | None) -> AbstractContextManager[OpenPair]:
        return PairOpening(self._control, self._pair, self._count, self._cut).opened(grid)

    def _count(self, rows: int) -> None:
        """After each statement to a target's database."""
        self._read += rows
        self._say("is compared")

    def _say(self, message: str) -> None:
        progress = JobProgress(self._read, None)
        self._control.tell(progress, f"{self._names[0]} with {self._names[1]}: {message}")


def _first_pass(here: OpenPair, intervals: list[Interval], digits: int) -> compare.FirstPass:
    """Both at the same time, where one is not Spark's: that has one thread of the job's."""
    first, second = here.sides
    if isinstance(first, LakeSide) and isinstance(second, LakeSide):
        sums = first.sums(intervals, digits)
        return compare.first_pass(Aside(lambda: sums), second, intervals, digits)
    if isinstance(first, StoredSide):
        aside = Aside(lambda: first.sums(intervals, digits))
        return compare.first_pass(aside, second, intervals, digits)
    aside = Aside(lambda: second.sums(intervals, digits))
    found = compare.first_pass(aside, first, intervals, digits)
    return replace(found, rows=(found.rows[1], found.rows[0]))


def even_intervals(bounds: tuple[int, int, int] | None) -> tuple[Grid | None, list[Interval]]:
    """Intervals of one width. ``bounds``: the lowest and the highest key, and how many rows."""
    if bounds is None:
        return None, [Interval()]
    low, high, rows = bounds
    pieces = rows // rows_of_interval(rows)
    edges = [low + (high - low) * piece // pieces for piece in range(1, pieces + 1)]
    grid = Grid.between(low, high)
    return (grid, intervals_of(grid, edges)) if edges else (None, [Interval()])
