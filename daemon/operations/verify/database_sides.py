"""A side of a comparison in a database: checksums of its own, short statements, one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from changes.sql.forms import Form
from changes.sql.spark.arrow_texts import natural, read
from changes.sql.spark.checksums import Grid, Interval, TextColumn
from daemon.operations.verify.columns import ComparedShape, NotComparable, Pair
from daemon.operations.verify.groups import intervals_of, rows_of_interval
from daemon.operations.verify.partition import PartitionBounds
from daemon.operations.verify.sides import NONE, Group, Sum
from databases.base.checksums import Checksums
from databases.base.database import Database
from databases.base.port import Key, SourceColumn, SourceTable, Texts
from databases.base.selects import MOST_KEYS

STATEMENT_ROWS = 200_000
"""Rows of one statement where a table is read in ranges: some tenths of a second."""


class DatabaseSide:
    """Sums and hashes of ``sides.Side``. One thread's.

    ``count``: called after each statement with the rows that it read; it may raise, or wait.
    ``only``: the condition of the rows that count; ``within``: that of a partition, which is read
    at once. ``await_shown``: called before rows are read. ``numbered``: the key is a whole number.
    """

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        sql: Checksums,
        count: Callable[[int], None],
        only: str = "",
        await_shown: Callable[[], None] = lambda: None,
        within: str = "",
        numbered: bool = False,
    ) -> None:
        self._database = database
        self._table = table
        self._sql = sql
        self._count = count
        self._await_shown = await_shown
        self._only = f" AND {only}" if only else ""
        self._within = within
        self._parted = numbered and not within

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """See ``ComparedSource``: by a walk over its key's index."""
        bounds = list(self._bounds()) if self._parted else []
        if not bounds:
            return None, [Interval()]
        grid = Grid.between(min(bounds), max(bounds))
        return grid, intervals_of(grid, bounds)

    def _bounds(self) -> Iterator[int]:
        rows = rows_of_interval(self._table.rows)
        for part in self._database.ranges(self._table, rows):
            if part.high is not None:
                yield int(part.high[0])
            self._count(0)

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """See ``Side``."""
        self._await_shown()
        found: dict[Group, Sum] = {}
        for place, interval in enumerate(intervals):
            for condition in self._conditions(interval):
                read = 0
                for prefix, rows, total in self._database.ask(self._sql.sums(condition, digits)):
                    group = (place, str(prefix))
                    found[group] = found.get(group, NONE).plus(int(str(rows)), int(str(total)))
                    read += int(str(rows))
                self._count(read)
        return found

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        """See ``Side``."""
        self._await_shown()
        found: dict[Key, str | None] = {}
        for place, interval in enumerate(intervals):
            prefixes = {prefix for at, prefix in groups if at == place}
            for condition in self._conditions(interval) if prefixes else ():
                rows = self._database.ask(self._sql.hashes(condition, digits, prefixes))
                for *key, hashed in rows:
                    found[tuple(map(str, key))] = None if hashed is None else str(hashed)
                self._count(0)
        return found

    def _conditions(self, interval: Interval) -> Iterator[str]:
        """An interval is read at once, and a partition: an index of its column may lead to it. A
        table without intervals is read in ranges of its key."""
        if self._within:
            yield self._within + self._only
            return
        if interval != Interval():
            yield self._sql.within(interval) + self._only
            return
        for part in self._database.ranges(self._table, STATEMENT_ROWS):
            yield self._database.predicate(self._table, part) + self._only


# The source's side of a comparison, by checksums that its database makes.


class SourceSide(DatabaseSide):
    """``sides.ComparedSource`` over a database's own table, within its limits. One thread's.

    ``await_shown``: returns when a read has all that is in the log; it may raise.
    """

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        shape: ComparedShape,
        count: Callable[[int], None] = lambda rows: None,
        await_shown: Callable[[], None] = lambda: None,
        within: str = "",
    ) -> None:
        self._shape = shape
        columns = [TextColumn(database.compared(p.source), p.free) for p in shape.pairs]
        keys = [TextColumn(database.compared(p.source), p.free) for p in shape.keys]
        sql = Checksums(database, table, columns, keys)
        numbered = shape.number is not None
        super().__init__(database, table, sql, count, "", await_shown, within, numbered)

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``. A row that the database's collation finds under another text is none."""
        columns = [pair.source for pair in self._shape.pairs]
        places = [self._shape.pairs.index(pair) for pair in self._shape.keys]
        self._await_shown()
        found: dict[Key, Texts] = {}
        for at in range(0, len(keys), MOST_KEYS):
            asked = self._database.rows(self._table, columns, keys[at : at + MOST_KEYS])
            for key, texts in asked.items():
                if tuple(texts[place] for place in places) == key:
                    found[key] = self._shape.read(texts)
            self._count(0)
        return found


class Pacer:
    """Holds the reads of a source below so many rows a second. One thread's."""

    def __init__(self, rows_per_s: int | None, wait: Callable[[float], object]) -> None:
        self._rows_per_s = rows_per_s
        self._wait = wait
        self._due_s = time.monotonic()

    def read(self, rows: int) -> None:
        """So many rows were read: wait until the next may be."""
        if not self._rows_per_s or not rows:
            return
        self._due_s = max(self._due_s, time.monotonic() - 1.0) + rows / self._rows_per_s
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            self._wait(left_s)


# The target's side of a comparison, where the target is a table of another database.

_OWN_FORM = ("json", "jsonb")
"""Types that may print a text otherwise than it was written."""


class StoredSide(DatabaseSide):
    """``sides.TargetSide``. One thread's."""

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        shape: ComparedShape,
        count: Callable[[int], None],
        part: PartitionBounds | None = None,
        unhashed: int = 1,
    ) -> None:
        """``table``: the target's, as its database describes it; ``shape``: of ``stored_shape``.
        ``part``: whose rows are summed up, None: of all. ``unhashed``: what a row without a hash
        adds; the other side must add something else."""
        self._pairs, self._key_pairs = shape.pairs, shape.keys
        self._columns = [_column(table, pair) for pair in shape.pairs]
        places = [shape.pairs.index(pair) for pair in shape.keys]
        texts = [
            TextColumn(database.text(column), pair.free)
            for column, pair in zip(self._columns, shape.pairs, strict=True)
        ]
        only, self._deleted = "", [c for c in table.columns if c.name == shape.deleted]
        for column in self._deleted:
            only = f"COALESCE({database.text(column)}, '0') = '0'"
        within = ""
        if part is not None:
            column = _column(table, part.pair)
            within = database.between(column, part.first, part.end, part.below)
        names = tuple(self._columns[place].name for place in places)
        table = replace(table, columns=tuple(self._columns), keys=names)
        keys = [texts[place] for place in places]
        sql = Checksums(database, table, texts, keys, unhashed)
        numbered = shape.number is not None
        super().__init__(database, table, sql, count, only, within=within, numbered=numbered)

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``."""
        wanted, count, found = set(keys), len(self._columns), dict[Key, Texts]()
        columns = [*self._columns, *self._deleted]
        for at in range(0, len(keys), MOST_KEYS):
            asked = self._database.rows(self._table, columns, keys[at : at + MOST_KEYS])
            for key, texts in asked.items():
                if key in wanted and texts[count:] != ("1",):
                    found[key] = texts[:count]
            self._count(0)
        return found

    def keys(self, keys: Sequence[Key], names: Sequence[str]) -> pa.Table:
        """See ``TargetSide``."""
        found = {}
        for pair, texts in zip(self._key_pairs, zip(*keys, strict=True), strict=True):
            form = natural(pair.type)
            values = [bytes.fromhex(text) for text in texts] if form is Form.HEX else list(texts)
            found[pair.name] = read(form, pair.type, pa.array(values))
        return pa.table({name: found[name] for name in names})


def stored_shape(shape: ComparedShape, table: SourceTable) -> ComparedShape:
    """The comparison without columns that the target's database prints otherwise than they were
    written. Raises NotComparable where a key is among these."""
    pairs, notes = [], list(shape.notes)
    for pair in shape.pairs:
        column = _column(table, pair)
        if column.form is None:
            notes.append(f"not compared: column {pair.name}: {column.refused}")
        elif column.type in _OWN_FORM:
            notes.append(f"not compared: column {pair.name}: {column.type} has a form of its own")
        else:
            pairs.append(pair)
    if any(pair not in pairs for pair in shape.keys):
        raise NotComparable(f"the key can't be compared: {'; '.join(notes)}")
    whole = shape.whole and len(pairs) == len(shape.pairs)
    return replace(shape, pairs=tuple(pairs), notes=tuple(notes), whole=whole)


def _column(table: SourceTable, pair: Pair) -> SourceColumn:
    """The target's column of a pair, with the form that gives the text of the lake's value."""
    lower = pair.name.lower()
    for column in table.columns:
        if column.name.lower() == lower and column.form is not None:
            form = natural(pair.type)
            return replace(column, form=form if form in (Form.TEXT, Form.BITS) else column.form)
        if column.name.lower() == lower:
            return column
    raise NotComparable(f"column {pair.name} was dropped or renamed by somebody else")
