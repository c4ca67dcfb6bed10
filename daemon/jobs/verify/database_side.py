"""A side of a comparison in a database: checksums of its own, short statements, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from daemon.databases.checksums import Checksums
from daemon.databases.port import Database, Key, SourceTable
from daemon.jobs.verify.sides import NONE, Group, Sum
from sparkwriter.sql.checksums import Interval

STATEMENT_ROWS = 200_000
"""Rows of one statement where a table is read in ranges: some tenths of a second."""


class DatabaseSide:
    """Sums and hashes of ``sides.Side``. One thread's.

    ``told``: called after each statement with the rows that it read; it may raise, or wait.
    ``only``: the condition of the rows that count. ``await_shown``: called before rows are read.
    """

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        sql: Checksums,
        told: Callable[[int], None],
        only: str = "",
        await_shown: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._table = table
        self._sql = sql
        self._told = told
        self._await_shown = await_shown
        self._only = f" AND {only}" if only else ""

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

    def _conditions(self, interval: Interval) -> Iterator[str]:
        """An interval is read at once; a table without intervals in ranges of its key."""
        if interval != Interval():
            yield self._sql.within(interval) + self._only
            return
        for part in self._database.ranges(self._table, STATEMENT_ROWS):
            yield self._database.predicate(self._table, part) + self._only
