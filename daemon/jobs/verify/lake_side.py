"""The target's side of a comparison, where Spark reads the target's table by its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from changes.model import TargetName
from daemon.databases.port import Key, Texts
from daemon.jobs.verify.columns import Shape
from daemon.jobs.verify.sides import MODULUS, Group, Sum
from sparkwriter.jobs.checksums import Queries
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.sql import checksums
from sparkwriter.sql.checksums import Grid, Interval, Lake
from sparkwriter.sql.plan import dotted, quote


class LakeSide:
    """``sides.Side`` over a table of a catalog. One thread's."""

    def __init__(
        self,
        spark: Callable[[Callable[[SparkJvm], object]], object],
        asked: Callable[[], bool],
        target: TargetName,
        shape: Shape,
        grid: Grid | None,
    ) -> None:
        self._spark = spark
        self._asked = asked
        self._target = target
        rows = dotted(*target)
        if shape.deleted is not None:
            rows = f"(SELECT * FROM {rows} WHERE NOT coalesce({quote(shape.deleted)}, false))"
        self._lake = Lake(
            rows,
            tuple(pair.stored for pair in shape.pairs),
            tuple(pair.stored for pair in shape.keys),
            shape.number,
            grid,
        )

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        """See ``Side``."""
        rows = self._ask(checksums.sums(self._lake, intervals, digits), "sums")
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
        rows = self._ask(checksums.hashes(self._lake, intervals, digits, groups), "hashes")
        return {tuple(map(str, key)): str(hashed) for *key, hashed in rows}

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``."""
        if not keys:
            return {}
        parts = len(keys[0])
        rows = self._ask(checksums.look_up(self._lake, keys), "rows")
        return {tuple(map(str, row[:parts])): tuple(row[parts:]) for row in rows}

    def keys(self, keys: Sequence[Key], names: Sequence[str]) -> pa.Table:
        """The key columns of these rows, as they are stored."""
        found: list[pa.Table] = []
        sql = checksums.look_up(self._lake, keys, [quote(name) for name in names])

        def act(jvm: SparkJvm) -> None:
            found.append(Queries(jvm.spark, self._asked).arrow(sql))

        self._spark(act)
        return found[-1].rename_columns(list(names))

    def _ask(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        found: list[list[tuple[Any, ...]]] = []

        def act(jvm: SparkJvm) -> None:
            found.append(Queries(jvm.spark, self._asked).ask(sql, f"verify {self._target}: {what}"))

        self._spark(act)
        return found[-1]
