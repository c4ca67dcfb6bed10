"""The source's side of a comparison: short statements, one at a time, within its limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from daemon.databases.checksums import Checksums, Kind
from daemon.databases.port import Database, Key, SourceTable, Texts
from daemon.jobs.verify.columns import Shape
from daemon.jobs.verify.groups import intervals_of, rows_of_interval
from daemon.jobs.verify.sides import NONE, Group, Sum
from sparkwriter.sql.checksums import Grid, Interval, TextColumn

STATEMENT_ROWS = 200_000
"""Rows of one statement where a table is read in ranges: some tenths of a second."""

LOOK_UPS = 500
"""Keys of one look-up."""


class SourceSide:
    """``sides.Side`` over a database's own table. One thread's.

    ``told``: called after each statement with the rows that it read; it may raise, or wait.
    ``await_shown``: called before rows are read; returns when a read has all that is in the log.
    """

    def __init__(
        self,
        database: Database,
        kind: Kind,
        table: SourceTable,
        shape: Shape,
        told: Callable[[int], None] = lambda rows: None,
        await_shown: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._await_shown = await_shown
        self._table = table
        self._shape = shape
        self._told = told
        columns = [TextColumn(database.compared(p.source), p.free) for p in shape.pairs]
        keys = [TextColumn(database.compared(p.source), p.free) for p in shape.keys]
        self._sql = Checksums(database, kind, table, columns, keys)

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """The table in intervals of about equal numbers of rows, by a walk over its key's index."""
        bounds = [] if self._shape.number is None else list(self._bounds())
        if not bounds:
            return None, [Interval()]
        grid = Grid.between(min(bounds), max(bounds))
        return grid, intervals_of(grid, bounds)

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """See ``Side``."""
        self._await_shown()
        found: dict[Group, Sum] = {}
        for place, interval in enumerate(intervals):
            for condition in self._conditions(interval):
                read = 0
                for prefix, rows, total in self._database.ask(self._sql.sums(condition, digits)):
                    group = (place, str(prefix))
                    # A row whose text has no hash is counted, and adds nothing: the sums differ.
                    more = 0 if total is None else int(str(total))
                    found[group] = found.get(group, NONE).plus(int(str(rows)), more)
                    read += int(str(rows))
                self._told(read)
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
                self._told(0)
        return found

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``. A row that the database's collation finds under another text is none."""
        columns = [pair.source for pair in self._shape.pairs]
        places = [self._shape.pairs.index(pair) for pair in self._shape.keys]
        self._await_shown()
        found: dict[Key, Texts] = {}
        for at in range(0, len(keys), LOOK_UPS):
            asked = self._database.rows(self._table, columns, keys[at : at + LOOK_UPS])
            for key, texts in asked.items():
                if tuple(texts[place] for place in places) == key:
                    found[key] = self._shape.read(texts)
            self._told(0)
        return found

    def _conditions(self, interval: Interval) -> Iterator[str]:
        """An interval is read at once; a table without intervals in ranges of its key."""
        if interval != Interval():
            yield self._sql.within(interval)
            return
        for part in self._database.ranges(self._table, STATEMENT_ROWS):
            yield self._database.predicate(self._table, part)

    def _bounds(self) -> Iterator[int]:
        rows = rows_of_interval(self._table.rows)
        for part in self._database.ranges(self._table, rows):
            if part.high is not None:
                yield int(part.high[0])
            self._told(0)


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
