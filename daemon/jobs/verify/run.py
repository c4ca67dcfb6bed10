"""The steps of comparing one table: the first pass, closer looks, keys in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from actors.contract.writes import TargetState
from changes.formats.auto import AUTO, make_format
from changes.formats.recognise import TopicFormats
from changes.model import Mode, TableSchema
from changes.routing import Router
from daemon.databases.opening import open_database
from daemon.databases.port import Database, DatabaseAway, Key, SourceTable
from daemon.databases.primaries import Primary
from daemon.databases.streamed import Streamed, as_streamed
from daemon.jobs.moments import LogMoments, moments_of
from daemon.jobs.port import Control
from daemon.jobs.record import Job, Progress
from daemon.jobs.verify import compare
from daemon.jobs.verify.columns import NotComparable, Shape, shape_of
from daemon.jobs.verify.groups import sampled
from daemon.jobs.verify.lake_side import LakeSide
from daemon.jobs.verify.log_changes import LogChanges
from daemon.jobs.verify.lookout import LOOK_EVERY_S, Interrupted, LiveLookout, not_following
from daemon.jobs.verify.looks import Seen, looked
from daemon.jobs.verify.report import shown
from daemon.jobs.verify.source_side import Pacer, SourceSide
from daemon.jobs.verify.targets import Compared
from daemon.jobs.verify.work import MOST_FOUND, MOST_SHOWN, Table
from daemon.sinks.kinds import sinks_of
from offsets.snapshot import Snapshot
from sparkwriter.jobs.checksums import NotWanted
from sparkwriter.sql.checksums import Grid
from sparkwriter.sql.schema import iceberg_type


class Changed(Exception):
    """The source's table is not defined as it was when the comparison began."""


@dataclass(frozen=True, slots=True)
class Open:
    """A table that is being compared, with what it takes. One thread's."""

    database: Database
    primary: Primary
    described: SourceTable
    state: TargetState
    streamed: Streamed
    shape: Shape
    source: SourceSide
    target: LakeSide


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

    def advance(self, table: Table) -> Table:
        """Do the next part. Raises Interrupted, NotComparable, Changed, and what sides raise."""
        try:
            with self.opened(self._control.snapshot(self._pipeline), table.grid) as here:
                if table.definition not in ("", here.described.definition):
                    raise Changed
                if table.left is None:
                    return self._first(table, here)
                return self._next(table, here)
        except NotWanted as error:
            raise Interrupted from error

    # --- the first pass

    def _first(self, table: Table, here: Open) -> Table:
        grid, intervals = here.source.grid()
        part = float(self._job.wanted.params["sample"])
        some = sampled(intervals, part, self._job.id)
        rows = here.described.rows
        digits = compare.digits_of(some, rows)
        aside = compare.Aside(lambda: here.source.sums(some, digits))
        target = self._target(here.shape, grid, lambda: aside.failed)
        found = compare.first_pass(aside, target, some, digits)
        notes = list(here.shape.notes)
        if here.shape.missing:
            notes.append(f"the target lacks the columns {', '.join(here.shape.missing)}")
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
        )

    # --- closer

    def _next(self, table: Table, here: Open) -> Table:
        assert table.left
        parts, rest = compare.next_parts(table.left)
        target = here.target
        if compare.needs_closer(parts[0]):
            found = compare.closer(here.source, target, parts)
            return replace(table, left=(*found, *rest))
        keys = compare.suspects(here.source, target, parts)
        seen, assumed = self._looked(keys, here, target)
        if self._definition() != here.described.definition:
            raise Changed
        return _with(replace(table, left=tuple(rest)), seen, here.shape, assumed)

    def _looked(self, keys: Sequence[Key], here: Open, target: LakeSide) -> tuple[Seen, bool]:
        if not keys:
            return Seen(), False
        snapshot = self._control.snapshot(self._pipeline)
        lookout = LiveLookout(
            self._control,
            self._pipeline,
            str(self.compared.target),
            (here.source, target),
            here.primary,
            self.moments(snapshot),
            self.changes(snapshot, here),
            self.settings,
            self._say,
        )
        return looked(keys, lookout), lookout.assumed

    # --- what it takes

    def moments(self, snapshot: Snapshot) -> LogMoments:
        """The log of the partitions that may hold the table."""
        return moments_of(self._control, self._pipeline, snapshot, str(self.compared.target))

    def changes(self, snapshot: Snapshot, here: Open) -> LogChanges:
        """What the log changes in the target."""
        topics = TopicFormats(snapshot.formats)
        return LogChanges(
            make_format(self.section.format, self.section.format_options(), topics),
            Router(self._control.config.routes(self._pipeline)),
            self._control.source(self._pipeline).reader(),
            str(self.compared.target),
            here.shape.keys,
        )

    @contextmanager
    def opened(self, snapshot: Snapshot, grid: Grid | None = None) -> Iterator[Open]:
        """The table on both sides. Raises NotComparable, and what both raise."""
        target = self.compared.target
        if sinks_of(self._control.config)[target.sink].catalog() is None:
            raise NotComparable(f"tables of sink {target.sink} can't be read back yet")
        if (why := not_following(snapshot, str(target))) is not None:
            raise NotComparable(why)
        state = self._control.sinks()[target.sink].open(target)
        if state.schema is None:
            raise NotComparable("there is no such table: the stream has brought no row of it yet")
        if state.mode is Mode.APPEND:
            raise NotComparable("it is a changelog: its rows are what happened, not what is")
        database = open_database(self._control.config, self.compared.database)
        primary = Primary(self._control.config, self.compared.database, database)
        try:
            described = database.describe(self.compared.table)
            kind = self._database.address.kind
            streamed = self._streamed(described, kind, snapshot, state.schema)
            shape = shape_of(described, streamed, state.schema)
            shows = partial(self._await_shown, primary)
            source = SourceSide(database, kind, described, shape, self._told, shows)
            stored = self._target(shape, grid, lambda: False)
            yield Open(database, primary, described, state, streamed, shape, source, stored)
        finally:
            primary.close()
            database.close()

    def _await_shown(self, primary: Primary) -> None:
        """A replica is read when it has what the log has: a row that it still lacks would be told
        as different. Raises Interrupted, and DatabaseAway where it stays behind."""
        position, since_s = primary.position(), time.monotonic()
        while not primary.shown(position):
            if time.monotonic() - since_s > self.settings.wait_s:
                name, wait_s = self.compared.database, self.settings.wait_s
                raise DatabaseAway(f"database.{name}: not at {position} within {wait_s:g} s")
            self._say(f"waits until the replica has applied {position}")
            if self._control.wait(LOOK_EVERY_S):
                raise Interrupted

    def _streamed(
        self, described: SourceTable, kind: str, snapshot: Snapshot, target: TableSchema
    ) -> Streamed:
        """The texts that the stream's values have, by format."""
        format_ = self._control.config.pipeline[self._pipeline].format
        if format_ == AUTO:
            lanes = snapshot.targets[str(self.compared.target)].hwms
            known = [f for lane in lanes if (f := snapshot.formats.get(lane.topic)) is not None]
            if not known:
                raise NotComparable("the format of its topics is not known yet")
            format_ = known[0]
        stored = {column.name: iceberg_type(column.type) for column in target.columns}
        return as_streamed(described, kind, format_, self.compared.types, stored)

    def _target(self, shape: Shape, grid: Grid | None, failed: Callable[[], bool]) -> LakeSide:
        return LakeSide(
            self._control.spark,
            lambda: bool(self._control.asked) or failed(),
            self.compared.target,
            shape,
            grid,
        )

    def _definition(self) -> str:
        database = open_database(self._control.config, self.compared.database)
        try:
            return database.describe(self.compared.table).definition
        finally:
            database.close()

    def _told(self, rows: int) -> None:
        """After each statement to the source."""
        self._read += rows
        self._pacer.read(rows)
        if self._control.asked:
            raise Interrupted
        self._control.tell(self._progress(), f"compares {self.compared.target}")

    def _say(self, message: str) -> None:
        self._control.tell(self._progress(), f"{self.compared.target}: {message}")

    def _progress(self) -> Progress:
        total = self._job.progress.total
        return Progress(self._read, None if total is None else max(total, self._read))


def _with(table: Table, seen: Seen, shape: Shape, assumed: bool) -> Table:
    notes = table.notes
    idle = "that an idle partition had passed a moment was assumed (verify.idle_s), not proved"
    if assumed and idle not in notes:
        notes = (*notes, idle)
    room = MOST_SHOWN - len(table.shown)
    return replace(
        table,
        found=(*table.found, *(found.key for found in seen.differing))[:MOST_FOUND],
        shown=(*table.shown, *(shown(found, shape) for found in seen.differing[:room])),
        undecided=(*table.undecided, *sorted(seen.undecided.items())),
        notes=notes,
    )


def now_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
