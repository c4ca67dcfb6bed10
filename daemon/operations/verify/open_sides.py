"""Opens the two sides of a table's comparison, and says how its columns are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from actors.contract.writes import TargetState
from changes.formats import AUTO
from changes.model.model import Mode, TableName, TableSchema
from changes.routes.shaping.names import ShapeRefused
from changes.sql.spark.checksums import Grid
from daemon.operations.engine.port import Control
from daemon.operations.engine.source_targets import Compared
from daemon.operations.load.columns import FittedTable, streamed_of
from daemon.operations.verify.at_cut import AtCut
from daemon.operations.verify.columns import (
    ComparedShape,
    NotComparable,
    prints_alike,
    shape_by_values,
    shape_of,
)
from daemon.operations.verify.database_sides import SourceSide, StoredSide, stored_shape
from daemon.operations.verify.in_flight_here import LOOK_EVERY_S, Interrupted, not_following
from daemon.operations.verify.partition import Partition, PartitionBounds, bounds_of
from daemon.operations.verify.sides import ComparedSource, LakeSide, TargetSide
from daemon.operations.verify.values_side import ValuesSide
from databases.base.database import Database
from databases.base.errors import DatabaseAway, DatabaseRefused
from databases.base.port import SourceTable
from databases.opening import Primary, open_database
from databases.streamed import Streamed
from offsets.snapshot import Snapshot
from sparkwriter.sinks import sinks_of


@dataclass(frozen=True, slots=True)
class Open:
    """A table that is being compared, with what it takes. ``wanted``: what of the source's table
    the target is made of; ``values``: its rows as the target is to have them; ``part``: of which
    the two are compared, None: of all. One thread's."""

    database: Database
    primary: Primary
    described: SourceTable
    state: TargetState
    wanted: FittedTable
    shape: ComparedShape
    values: ValuesSide
    source: ComparedSource
    target: TargetSide
    part: PartitionBounds | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """``count``: called after each piece that was read of the source, with its rows; ``say`` shows
    what is waited for. ``cut``: the target is read as it is in it. ``partition``: whose rows are
    compared, None: all."""

    control: Control
    pipeline: str
    compared: Compared
    count: Callable[[int], None]
    say: Callable[[str], None]
    cut: AtCut | None = None
    partition: Partition | None = None

    @contextmanager
    def opened(self, snapshot: Snapshot, grid: Grid | None) -> Iterator[Open]:
        """The table on both sides. Raises NotComparable, and what both raise."""
        compared, target = self.compared, self.compared.target
        cut, name = self.cut, str(target)
        why = not_following(snapshot, name) if cut is None else cut.refuses(name, snapshot)
        if why is not None:
            raise NotComparable(why)
        own = sinks_of(self.control.config)[target.sink]
        tables = own.database()
        if tables is None and own.catalog() is None:
            raise NotComparable(f"tables of sink {target.sink} can't be read back")
        with ExitStack() as connections:
            if tables is not None:
                connections.callback(tables.close)
            database = open_database(self.control.config, compared.database)
            connections.callback(database.close)
            primary = Primary(self.control.config, compared.database, database)
            connections.callback(primary.close)
            state = self._state()
            assert state.schema is not None
            described = database.describe(compared.table).renamed(compared.route.reader_renames)
            stored = None if tables is None else tables.describe(TableName(*target[1:]))
            streamed = self._streamed(described, snapshot, state.schema)
            wanted = FittedTable(described, streamed.columns, compared.route, described.keys, None)
            shape, by_values = _compared(wanted, streamed, state.schema, stored)
            part = None if self.partition is None else bounds_of(self.partition, shape, wanted)
            source, values = self._sources(primary, database, wanted, shape, by_values, part)
            there: TargetSide
            if tables is None or stored is None:
                there = self._lake(shape, grid, lambda: False, part)
                if (why := there.why_unlike()) is not None:
                    raise NotComparable(why)
            else:
                there = StoredSide(tables, stored, shape, self._asked, part)
            yield Open(
                database, primary, described, state, wanted, shape, values, source, there, part
            )

    def _sources(
        self,
        primary: Primary,
        database: Database,
        wanted: FittedTable,
        shape: ComparedShape,
        by_values: bool,
        part: PartitionBounds | None,
    ) -> tuple[ComparedSource, ValuesSide]:
        """The source's side, and its rows as the target is to have them."""
        within = ""
        if part is not None:
            within = database.between(part.column, part.first, part.end, part.below)
        reading = wanted.reading(database, self.control.config.pipeline[self.pipeline].zero_dates)
        shows = partial(self._await_shown, primary)
        values = ValuesSide(reading, wanted, shape, self.count, shows, within)
        if by_values:
            return values, values
        return SourceSide(database, wanted.source, shape, self.count, shows, within), values

    def parted(self, here: Open, grid: Grid | None, failed: Callable[[], bool]) -> TargetSide:
        """The target's side for intervals on a grid. ``failed``: the result is not needed now."""
        lake = isinstance(here.target, LakeSide)
        return self._lake(here.shape, grid, failed, here.part) if lake else here.target

    def _lake(
        self,
        shape: ComparedShape,
        grid: Grid | None,
        failed: Callable[[], bool],
        part: PartitionBounds | None,
    ) -> LakeSide:
        return LakeSide(
            self.control.spark,
            lambda: bool(self.control.asked) or failed(),
            self.compared.target,
            shape,
            grid,
            None if self.cut is None else self.cut.versions[str(self.compared.target)],
            part,
        )

    def _state(self) -> TargetState:
        target = self.compared.target
        state = self.control.sinks()[target.sink].open(target)
        if state.schema is None:
            raise NotComparable("there is no such table: the stream has brought no row of it yet")
        if state.mode is Mode.APPEND:
            raise NotComparable("it is a changelog: its rows are what happened, not what is")
        return state

    def _streamed(
        self, described: SourceTable, snapshot: Snapshot, target: TableSchema
    ) -> Streamed:
        """The texts that the stream's values have, by format."""
        config, compared = self.control.config, self.compared
        format_ = config.pipeline[self.pipeline].format
        if format_ == AUTO:
            lanes = snapshot.targets[str(compared.target)].hwms
            known = [f for lane in lanes if (f := snapshot.formats.get(lane.topic)) is not None]
            if not known:
                raise NotComparable("the format of its topics is not known yet")
            format_ = known[0]
        kind = config.database[compared.database].address.kind
        try:
            return streamed_of(described, compared.route, kind, format_, target)
        except DatabaseRefused as error:
            raise NotComparable(str(error)) from error

    def _await_shown(self, primary: Primary) -> None:
        """Wait until the replica has what the log has: a row that it still lacks would count as
        different. Raises Interrupted, and DatabaseAway where it stays behind."""
        position, since_s = primary.position(), time.monotonic()
        wait_s = self.control.config.pipeline[self.pipeline].verify.wait_s
        while not primary.shown(position):
            if time.monotonic() - since_s > wait_s:
                name = self.compared.database
                raise DatabaseAway(f"database.{name}: not at {position} within {wait_s:g} s")
            self.say(f"waits until the replica has applied {position}")
            if self.control.wait(LOOK_EVERY_S):
                raise Interrupted

    def _asked(self, rows: int) -> None:
        """After each statement to the target's database."""
        if self.control.asked:
            raise Interrupted


def _compared(
    wanted: FittedTable, streamed: Streamed, target: TableSchema, stored: SourceTable | None
) -> tuple[ComparedShape, bool]:
    """How they are compared, and whether the source's rows are read for it."""
    by_values = bool(wanted.route.shape)
    if not by_values:
        shape = shape_of(wanted.source, streamed, target)
        by_values = stored is not None and not all(map(prints_alike, shape.pairs))
    if by_values:
        try:
            shown = wanted.schema
        except ShapeRefused as error:
            raise NotComparable(str(error)) from error
        shape = shape_by_values(wanted.source, streamed, shown, target)
    return (shape if stored is None else stored_shape(shape, stored)), by_values
