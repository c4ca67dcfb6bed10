"""The source's side of a comparison, by checksums that its database makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from daemon.databases.checksums import Checksums
from daemon.databases.port import Database, Key, SourceTable, Texts
from daemon.databases.selects import MOST_KEYS
from daemon.jobs.verify.columns import Shape
from daemon.jobs.verify.database_side import DatabaseSide
from daemon.jobs.verify.groups import intervals_of, rows_of_interval
from sparkwriter.sql.checksums import Grid, Interval, TextColumn


class SourceSide(DatabaseSide):
    """``sides.ComparedSource`` over a database's own table, within its limits. One thread's.

    ``await_shown``: returns when a read has all that is in the log; it may raise.
    """

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        shape: Shape,
        told: Callable[[int], None] = lambda rows: None,
        await_shown: Callable[[], None] = lambda: None,
    ) -> None:
        self._shape = shape
        columns = [TextColumn(database.compared(p.source), p.free) for p in shape.pairs]
        keys = [TextColumn(database.compared(p.source), p.free) for p in shape.keys]
        sql = Checksums(database, table, columns, keys)
        super().__init__(database, table, sql, told, await_shown=await_shown)

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """See ``ComparedSource``: by a walk over its key's index."""
        bounds = [] if self._shape.number is None else list(self._bounds())
        if not bounds:
            return None, [Interval()]
        grid = Grid.between(min(bounds), max(bounds))
        return grid, intervals_of(grid, bounds)

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
            self._told(0)
        return found

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
