"""The two sides of a comparison over the simulated database and sink: rows as texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from zlib import crc32

from changes.sql.spark.checksums import Grid, Interval
from daemon.operations.verify.sides import Group, Sum
from databases.base.port import Key, Texts
from tests.daemon.operations.verify.memory import MemorySide

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]


class PartitionRead:
    """One partition: rows by a value of their column. ``kept``: the keys that the source had in it
    whenever it was read."""

    def __init__(self, column: str, place: int) -> None:
        """``place``: which of two it is, 0 or 1."""
        self._column, self._place = column, place
        self.kept: set[Key] | None = None

    def of(self, now: MemorySide, columns: Sequence[str], *, source: bool) -> MemorySide:
        """Its rows of a side."""
        if self._column not in columns:
            return MemorySide({})
        at = columns.index(self._column) + 1
        rows = {
            key: texts
            for key, texts in now.table.items()
            if (text := texts[at]) is not None and crc32(text.encode()) % 2 == self._place
        }
        if source:
            self.kept = {*rows} if self.kept is None else self.kept & rows.keys()
        return MemorySide(rows)


class MovingSide:
    """``sides.Side`` of a table that changes between any two ranges that are read."""

    def __init__(
        self,
        rows: Callable[[], Rows],
        columns: Sequence[str],
        passing: Callable[[], None],
        partition: PartitionRead | None = None,
        *,
        source: bool = False,
    ) -> None:
        self._partition, self._source = partition, source
        self._rows = rows
        self._columns = columns
        self._passing = passing

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """Two or three ranges; a partition is one."""
        if self._partition is not None:
            return None, [Interval()]
        keys = sorted(key[0] for key in self._rows())
        bounds = keys[:: max(1, len(keys) // 3)][1:3]
        lows = [None, *bounds]
        return None, [Interval(low, high) for low, high in zip(lows, [*bounds, None], strict=True)]

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        found: dict[Group, Sum] = {}
        for place, interval in enumerate(intervals):
            part = self._summed().sums([interval], digits)
            found |= {(place, prefix): total for (_, prefix), total in part.items()}
        return found

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        found: dict[Key, str | None] = {}
        for place, interval in enumerate(intervals):
            wanted = {(0, prefix) for at, prefix in groups if at == place}
            found |= self._summed().hashes([interval], digits, wanted)
        return found

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        return self._now().rows(keys)

    def _summed(self) -> MemorySide:
        now = self._now()
        if self._partition is None:
            return now
        return self._partition.of(now, self._columns, source=self._source)

    def _now(self) -> MemorySide:
        self._passing()
        return MemorySide(
            {
                (str(key[0]),): (str(key[0]), *(row.get(name) for name in self._columns))
                for key, row in self._rows().items()
            }
        )
