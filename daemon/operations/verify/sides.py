"""The two sides of a comparison: what is read of the source's table, and of the target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from changes.model.model import TargetName
from changes.sql.spark import checksums
from changes.sql.spark.checksums import Grid, Interval, Lake
from changes.sql.spark.words import dotted, quote
from daemon.operations.verify.columns import ComparedShape, NotComparable
from daemon.operations.verify.partition import PartitionBounds
from databases.base.port import Key, Texts

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm

MODULUS = 1 << 64

Group = tuple[int, str]
"""Rows of one interval whose key's hash begins with some digits: the interval's place, and those.
"""


class Sum(NamedTuple):
    """How many rows, and the sum of their hashes modulo 2^64."""

    rows: int
    total: int

    def plus(self, rows: int, total: int) -> Sum:
        """With further rows."""
        return Sum(self.rows + rows, (self.total + total) % MODULUS)


NONE = Sum(0, 0)


class Side(Protocol):
    """One table. Each method reads what is there now. One thread's."""

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """The sums of all groups that have a row."""
        ...

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        """The hash of each row in these groups; None where it has none. Raises NotComparable where
        several rows have one key."""
        ...

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """The rows of these keys that are there, as canonical texts of the compared columns."""
        ...


class ComparedSource(Side, Protocol):
    """The source's table."""

    def grid(self) -> tuple[Grid | None, list[Interval]]:
        """The table in intervals of about equal numbers of rows; one that is open, without a grid,
        where its rows are told apart by their keys' hashes alone."""
        ...


class TargetSide(Side, Protocol):
    """The target's table."""

    def keys(self, keys: Sequence[Key], names: Sequence[str]) -> pa.Table:
        """The key columns of these rows, as they are stored."""
        ...


# The target's side of a comparison, where Spark reads the target's table by its name.


class LakeSide:
    """``sides.Side`` over a table of a catalog. One thread's."""

    def __init__(
        self,
        spark: Callable[[Callable[[SparkJvm], object]], object],
        asked: Callable[[], bool],
        target: TargetName,
        shape: ComparedShape,
        grid: Grid | None,
        version: str | None = None,
        part: PartitionBounds | None = None,
    ) -> None:
        """``version``: the snapshot that is read, None: the present one. ``part``: whose rows are
        summed up, None: of all. Rows are looked up by their keys wherever they are."""
        self._spark = spark
        self._asked = asked
        self._target, self._shape = target, shape
        self._version, rows = version, dotted(*target)
        if version is not None:
            rows = f"(SELECT * FROM {rows} VERSION AS OF {int(version)})"
        self._rows = rows
        if shape.deleted is not None:
            rows = f"(SELECT * FROM {rows} WHERE NOT coalesce({quote(shape.deleted)}, false))"
        self._lake = Lake(
            rows,
            tuple(pair.stored for pair in shape.pairs),
            tuple(pair.stored for pair in shape.keys),
            shape.number,
            grid,
        )
        self._summed = self._lake
        if part is not None:
            only = f"(SELECT * FROM {rows} WHERE {part.lake})"
            self._summed = self._lake._replace(source=only)

    def why_unlike(self) -> str | None:
        """Why the version can't be compared, None: it can."""
        if self._version is None:
            return None
        snapshots = dotted(*self._target, "snapshots")
        found = f"SELECT 1 FROM {snapshots} WHERE snapshot_id = {int(self._version)}"
        if not self._ask(found, "snapshots"):
            return f"its snapshot {self._version} is gone: it was filled again, or has expired"
        names = self._arrow(f"SELECT * FROM {self._rows} LIMIT 0").column_names
        lacks = {pair.name for pair in self._shape.pairs} - set(names)
        return f"its columns were others then: no {', '.join(sorted(lacks))}" if lacks else None

    def bounds(self) -> tuple[int, int, int] | None:
        """The lowest and the highest of the key's numbers, and how many rows; None of no rows."""
        number = self._lake.number
        sql = f"SELECT min({number}), max({number}), count(*) FROM {self._lake.source}"
        ((low, high, rows),) = self._ask(sql, "bounds")
        return None if low is None else (int(low), int(high), int(rows))

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """See ``Side``."""
        rows = self._ask(checksums.sums(self._summed, intervals, digits), "sums")
        return {
            (int(slot), str(prefix)): Sum(int(count), (int(low) + (int(high) << 32)) % MODULUS)
            for slot, prefix, count, low, high in rows
        }

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        """See ``Side``."""
        if not groups:
            return {}
        rows = self._ask(checksums.hashes(self._summed, intervals, digits, groups), "hashes")
        found: dict[Key, str | None] = {}
        for *texts, hashed in rows:
            key = self._key(texts)
            if key in found:
                raise NotComparable(f"{self._target} has several rows of the key {', '.join(key)}")
            found[key] = str(hashed)
        return found

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``."""
        if not keys:
            return {}
        parts = len(keys[0])
        rows = self._ask(checksums.look_up(self._lake, keys), "rows")
        return {tuple(map(str, row[:parts])): tuple(row[parts:]) for row in rows}

    def _key(self, texts: Sequence[Any]) -> Key:
        """A key as it can be looked up. Raises NotComparable: a catalog keeps no key unique, and
        not its columns without NULL, so another tool may leave rows that no key tells apart."""
        if None in texts:
            raise NotComparable(f"{self._target} has a row with NULL in its key")
        return tuple(map(str, texts))

    def keys(self, keys: Sequence[Key], names: Sequence[str]) -> pa.Table:
        """The key columns of these rows, as they are stored."""
        sql = checksums.look_up(self._lake, keys, [quote(name) for name in names])
        return self._arrow(sql).rename_columns(list(names))

    def _arrow(self, sql: str) -> pa.Table:
        found: list[pa.Table] = []

        def act(jvm: SparkJvm) -> None:
            from sparkwriter.session.queries import SparkQueries  # where there is a Spark

            found.append(SparkQueries(jvm.spark, self._asked).arrow(sql))

        self._spark(act)
        return found[-1]

    def _ask(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        found: list[list[tuple[Any, ...]]] = []

        def act(jvm: SparkJvm) -> None:
            from sparkwriter.session.queries import SparkQueries

            found.append(
                SparkQueries(jvm.spark, self._asked).ask(sql, f"verify {self._target}: {what}")
            )

        self._spark(act)
        return found[-1]
