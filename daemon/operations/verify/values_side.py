"""The source's side of a comparison where SQL can't make the target's texts: each row is read, gets
the shape of its route by the stream's own function, and is hashed here.

Slower than sums that the database makes, and as exact. Keys are told apart by their hashes alone:
the table is read once more for what differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

import pyarrow as pa

from changes.sql.spark.arrow_texts import printed, row_text
from changes.sql.spark.checksums import HASH_DIGITS, Grid, Interval
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import ComparedShape, prints_alike
from daemon.operations.verify.database_sides import STATEMENT_ROWS
from daemon.operations.verify.sides import NONE, Group, Sum
from databases.base.port import ALL_ROWS, Key, Texts
from databases.base.selects import MOST_KEYS
from databases.reading import Reading

Row = tuple[Key, Texts]


class ValuesSide:
    """``sides.ComparedSource``. One thread's.

    ``count``: called after each piece of rows with their number; it may raise, or wait.
    ``await_shown``: returns when a read has all that is in the log; it may raise. ``within``: the
    source's condition of a partition: its rows are summed up, and read at once.
    """

    def __init__(
        self,
        reading: Reading,
        wanted: FittedTable,
        shape: ComparedShape,
        count: Callable[[int], None],
        await_shown: Callable[[], None],
        within: str = "",
    ) -> None:
        self._reading = reading
        self._wanted = wanted
        self._count = count
        self._await_shown = await_shown
        self._within = within
        self._names = [pair.name.lower() for pair in shape.pairs]
        self._frees = [pair.free for pair in shape.pairs]
        self._places = [shape.pairs.index(pair) for pair in shape.keys]
        self._key_frees = [pair.free for pair in shape.keys]
        self._keys_are_printed = all(map(prints_alike, shape.keys))

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """See ``ComparedSource``: without intervals."""
        return None, [Interval()]

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """See ``Side``."""
        found: dict[Group, Sum] = {}
        for key, texts in self._all():
            group = (0, self._prefix(key, digits))
            hashed = int(_hash(row_text(texts, self._frees))[:HASH_DIGITS], 16)
            found[group] = found.get(group, NONE).plus(1, hashed)
        return found

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        """See ``Side``."""
        wanted = {prefix for _, prefix in groups}
        return {
            key: _hash(row_text(texts, self._frees))[:HASH_DIGITS]
            for key, texts in (self._all() if wanted else ())
            if self._prefix(key, digits) in wanted
        }

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``."""
        return {key: texts for table in self.values(keys) for key, texts in self._texts(table)}

    def values(self, keys: Sequence[Key]) -> Iterator[pa.Table]:
        """What the target is to have of these keys, as values, in pieces. Where keys are masked the
        source's own are not known: all is read."""
        wanted, reading = frozenset(keys), self._reading
        if self._has_masked_key:
            for shown in self._tables() if keys else ():
                yield self._only(shown, wanted)
            return
        self._await_shown()
        for at in range(0, len(keys), MOST_KEYS):
            condition = reading.database.matching(reading.table, keys[at : at + MOST_KEYS])
            for table in reading.rows(condition=condition):
                yield self._only(self._wanted.shown(table), wanted)
            self._count(0)

    def single(self, keys: Sequence[Key]) -> Mapping[Key, pa.Table]:
        """The same, each row for itself; without keys that have none. A key that is printed
        otherwise than at the source is read alone."""
        found: dict[Key, pa.Table] = {}
        if not self._keys_are_printed:
            for key in keys:
                for table in self.values([key]):
                    found |= {key: table} if table.num_rows else {}
            return found
        for table in self.values(keys):
            for place, (key, _) in enumerate(self._texts(table)):
                found[key] = table.slice(place, 1)
        return found

    def _only(self, shown: pa.Table, keys: Set[Key]) -> pa.Table:
        """Without rows that the database's collation finds under another key's text."""
        if not self._keys_are_printed:
            return shown
        texts = [key in keys for key, _ in self._texts(shown)]
        return shown.filter(pa.array(texts, pa.bool_()))

    @property
    def _has_masked_key(self) -> bool:
        shape = self._wanted.route.shape
        return any(shape.mask_of(key) is not None for key in self._reading.table.keys)

    def _all(self) -> Iterator[Row]:
        for shown in self._tables(self._within):
            yield from self._texts(shown)

    def _tables(self, within: str = "") -> Iterator[pa.Table]:
        reading = self._reading
        self._await_shown()
        ranges = reading.database.ranges(reading.table, STATEMENT_ROWS)
        for part in [ALL_ROWS] if within else ranges:
            for table in reading.rows(part, within):
                yield self._wanted.shown(table)
                self._count(table.num_rows)

    def _texts(self, shown: pa.Table) -> Iterator[Row]:
        columns = dict(zip(map(str.lower, shown.column_names), shown.columns, strict=True))
        texts = [printed(columns[name].combine_chunks()).to_pylist() for name in self._names]
        for row in zip(*texts, strict=True):
            yield tuple(row[place] for place in self._places), row

    def _prefix(self, key: Key, digits: int) -> str:
        return _hash(row_text(key, self._key_frees))[:digits] if digits else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
