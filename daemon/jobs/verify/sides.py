"""The two sides of a comparison: what is asked of the source's table, and of the target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from daemon.databases.port import Key, Texts
from sparkwriter.sql.checksums import Grid, Interval

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
        """The hash of each row in these groups; None where it has none."""
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
