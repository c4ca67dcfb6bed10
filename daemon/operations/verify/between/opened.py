"""Opens two targets of one table, and says how they are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from actors.contract.writes import TargetState
from changes.formats import TopicFormats, make_format
from changes.model.model import Mode, TableName
from changes.routes.routing import Router
from changes.sql.spark.checksums import Grid
from daemon.config.config import formats
from daemon.operations.engine.port import Control
from daemon.operations.verify.at_cut import AtCut
from daemon.operations.verify.between.columns import Kept, compared, logged, without
from daemon.operations.verify.between.pairs import FilledTarget
from daemon.operations.verify.between.places import CutPlaces, LivePlaces, Places, sources_of
from daemon.operations.verify.between.unstorable import Nulls
from daemon.operations.verify.columns import ComparedShape, NotComparable
from daemon.operations.verify.database_sides import StoredSide, stored_shape
from daemon.operations.verify.in_flight_here import Interrupted
from daemon.operations.verify.key_texts import keys_of, moves_of
from daemon.operations.verify.log_changes import LogChanges
from daemon.operations.verify.sides import LakeSide
from databases.base.database import Database
from databases.base.port import SourceTable
from offsets.snapshot import Snapshot
from sparkwriter.sinks import sinks_of

TwoSides = tuple[LakeSide | StoredSide, LakeSide | StoredSide]


@dataclass(frozen=True, slots=True)
class OpenPair:
    """Two targets that are being compared. ``definition``: a fingerprint of both tables.
    One thread's."""

    shapes: tuple[ComparedShape, ComparedShape]
    sides: TwoSides
    places: tuple[Places, Places]
    changes: LogChanges
    nulls: Nulls
    definition: str
    notes: tuple[str, ...]


class _Stored:
    """One target as it is now. ``table``: as its own database describes it, if it is in one."""

    def __init__(self, control: Control, one: FilledTarget, connections: ExitStack) -> None:
        self.one = one
        self.name = str(one.target)
        self.recorded: Snapshot = control.snapshot(one.pipeline)
        own = sinks_of(control.config)[one.target.sink]
        self.database: Database | None = own.database()
        if self.database is not None:
            connections.callback(self.database.close)
        elif own.catalog() is None:
            raise NotComparable(f"tables of sink {one.target.sink} can't be read back")
        self.state: TargetState = control.sinks()[one.target.sink].open(one.target)
        if self.state.schema is None:
            raise NotComparable(f"{self.name}: there is no such table yet")
        if self.state.mode is Mode.APPEND:
            raise NotComparable(f"{self.name} is a changelog: its rows are what happened")
        self.kept = Kept(self.name, one.route, self.state.schema)
        self.table: SourceTable | None = None
        if self.database is not None:
            self.table = self.database.describe(TableName(*one.target[1:]))

    @property
    def definition(self) -> str:
        return f"{self.state.schema!r} {'' if self.table is None else self.table.definition}"

    def notes(self) -> Iterator[str]:
        if self.state.rows_may_differ is not None:
            doubt = self.state.rows_may_differ
            yield f"rows of {self.name} may differ from the source's: {doubt}"


@dataclass(frozen=True, slots=True)
class PairOpening:
    """``read``: called after each piece that was read, with its rows. ``cut``: the first target is
    read as it is in it."""

    control: Control
    pair: tuple[FilledTarget, FilledTarget]
    read: Callable[[int], None]
    cut: AtCut | None = None

    @contextmanager
    def opened(self, grid: Grid | None) -> Iterator[OpenPair]:
        """Both tables. Raises NotComparable, and what sinks raise."""
        with ExitStack() as connections:
            first, second = (_Stored(self.control, one, connections) for one in self.pair)
            self._check(first, second)
            shapes = _shapes(first, second)
            nulls = Nulls(
                (self._nulls_of(first), self._nulls_of(second)),
                tuple(pair.source.form for pair in shapes[0].pairs),
            )
            sides = (
                self._side(first, shapes[0], grid, 0, self.cut),
                self._side(second, shapes[1], grid, 1, None),
            )
            if isinstance(sides[0], LakeSide) and (why := sides[0].why_unlike()) is not None:
                raise NotComparable(why)
            notes = (*first.notes(), *second.notes(), *nulls.notes((first.name, second.name)))
            yield OpenPair(
                shapes,
                sides,
                self._places(first, second),
                self._changes(first, shapes[0]),
                nulls,
                _fingerprint(first.definition, second.definition),
                (*notes, *self._read_otherwise()),
            )

    def _check(self, first: _Stored, second: _Stored) -> None:
        if self.cut is not None:
            why = self.cut.refuses(first.name, first.recorded)
            if why is not None:
                raise NotComparable(why)
        for each in (second,) if self.cut is not None else (first, second):
            if each.name in each.recorded.rebuilding:
                raise NotComparable(f"{each.name} is being rebuilt or loaded")

    def _side(
        self, of: _Stored, shape: ComparedShape, grid: Grid | None, unhashed: int, cut: AtCut | None
    ) -> LakeSide | StoredSide:
        if of.database is not None and of.table is not None:
            return StoredSide(of.database, of.table, shape, self._after, None, unhashed)
        version = None if cut is None else cut.versions[of.name]
        asked = lambda: bool(self.control.asked)  # noqa: E731
        return LakeSide(self.control.spark, asked, of.one.target, shape, grid, version)

    def _nulls_of(self, of: _Stored) -> str | None:
        """The kind of database whose sink stores NULL for what it does not hold."""
        section = self.control.config.sink[of.one.target.sink]
        nulls = of.database is not None and getattr(section, "unstorable", "refuse") == "null"
        return of.database.kind if nulls and of.database is not None else None

    def _after(self, rows: int) -> None:
        """After each statement to a target's database."""
        self.read(rows)
        if self.control.asked:
            raise Interrupted

    def _places(self, first: _Stored, second: _Stored) -> tuple[Places, Places]:
        sources = sources_of([(each.one, each.recorded, each.state) for each in (first, second)])
        live = LivePlaces(self.control, second.one, sources)
        if self.cut is not None:
            return CutPlaces({s: at for s, at in self.cut.places.items() if s in sources}), live
        return LivePlaces(self.control, first.one, sources), live

    def _changes(self, first: _Stored, shape: ComparedShape) -> LogChanges:
        """What the log changes in the first target: it is the second one's log, too."""
        pipeline = first.one.pipeline
        topics = TopicFormats(first.recorded.formats)
        of = logged(first.one.table, first.kept)
        return LogChanges(
            make_format(*formats(self.control.config)(pipeline), topics),
            Router(self.control.config.routes(pipeline)),
            self.control.source(pipeline).reader(),
            first.name,
            partial(keys_of, keys=shape.keys, wanted=of),
            partial(moves_of, keys=shape.keys, wanted=of),
        )

    def _read_otherwise(self) -> Iterator[str]:
        """Settings by which two pipelines make other values of one message."""
        one, other = (self.control.config.pipeline[each.pipeline] for each in self.pair)
        for name in ("format", "time_zone", "zero_dates", "options"):
            if getattr(one, name) != getattr(other, name):
                names = " and ".join(each.pipeline for each in self.pair)
                yield (
                    f"pipelines {names} differ in {name}: a value that it changes is told as"
                    " different"
                )


def _shapes(first: _Stored, second: _Stored) -> tuple[ComparedShape, ComparedShape]:
    """How both are compared, without what either one's own database keeps in another form."""
    shapes = compared(first.kept, second.kept)
    left = [
        shape if each.table is None else stored_shape(shape, each.table)
        for shape, each in zip(shapes, (first, second), strict=True)
    ]
    return without(shapes, (left[0], left[1]))


def _fingerprint(*definitions: str) -> str:
    return hashlib.sha256("\n".join(definitions).encode()).hexdigest()[:32]
