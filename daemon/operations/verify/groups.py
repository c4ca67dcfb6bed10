"""Which rows are looked at closer: from intervals to groups, from these to keys. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from changes.sql.spark.checksums import CELLS, Grid, Interval
from daemon.operations.verify.sides import NONE, Group, Sum
from databases.base.port import Key

FEWEST_ROWS = 5_000
"""Rows of an interval. Fewer: more statements, each of which costs the database something by
itself. More: a single difference has more rows looked at."""

MOST_INTERVALS = 1000
"""Of a table: each is a statement to the database."""

GROUP_ROWS = 64
"""Rows of a group within an interval that differs: about so many hashes are read for one row."""

MOST_DIGITS = 3
"""4,096 groups: as many lines from each statement to the database."""

AT_ONCE = 10_000
"""Rows whose hashes are compared at once, and keys that are looked at together."""


@dataclass(frozen=True, slots=True)
class Differing:
    """Groups of one interval that differ. ``digits`` is the length of each prefix, ``rows`` at most
    how many there are on one side."""

    interval: Interval
    digits: int
    prefixes: tuple[str, ...]
    rows: int

    def document(self) -> list[Any]:
        """As JSON keeps it."""
        return [*self.interval, self.digits, list(self.prefixes), self.rows]

    @classmethod
    def of(cls, document: Sequence[Any]) -> Differing:
        """Read back what ``document`` gave."""
        low, high, digits, prefixes, rows = document
        return cls(Interval(low, high), digits, tuple(prefixes), rows)


def intervals_of(grid: Grid, bounds: Iterable[int]) -> list[Interval]:
    """Intervals between bounds that grow, moved up to the grid; the first and the last are open.

    Where many rows are in one cell of the grid they are in one interval, whatever the bounds are.
    """
    cells = sorted({cell for bound in bounds if (cell := grid.cell(bound)) <= CELLS})
    edges = [grid.edge(cell) for cell in cells]
    return [Interval(low, high) for low, high in zip([None, *edges], [*edges, None], strict=True)]


def rows_of_interval(rows: int) -> int:
    """How many rows an interval is to have in a table of about so many."""
    return max(FEWEST_ROWS, -(-rows // MOST_INTERVALS))


def digits_for(rows: int, of_group: int) -> int:
    """Digits of a key's hash by which so many rows are parted into groups of that size."""
    digits = 0
    while digits < MOST_DIGITS and rows > of_group * 16**digits:
        digits += 1
    return digits


def sampled(intervals: Sequence[Interval], part: float, seed: str) -> list[Interval]:
    """A random part of the intervals, at least one, in order; the same for the same seed."""
    if part >= 1:
        return list(intervals)
    number = max(1, round(len(intervals) * part))
    chosen = sorted(Random(seed).sample(range(len(intervals)), number))
    return [intervals[place] for place in chosen]


def differing(
    intervals: Sequence[Interval],
    digits: int,
    source: Mapping[Group, Sum],
    target: Mapping[Group, Sum],
) -> list[Differing]:
    """What differs, by interval, in order."""
    found: dict[int, list[str]] = {}
    rows: dict[int, int] = {}
    for group in sorted(source.keys() | target.keys()):
        here, there = source.get(group, NONE), target.get(group, NONE)
        if here != there:
            place, prefix = group
            found.setdefault(place, []).append(prefix)
            rows[place] = rows.get(place, 0) + max(here.rows, there.rows)
    return [
        Differing(intervals[place], digits, tuple(prefixes), rows[place])
        for place, prefixes in found.items()
    ]


def bunches(parts: Sequence[Differing], rows: int = AT_ONCE) -> Iterator[list[Differing]]:
    """The parts in bunches of about so many rows; parts of one bunch have the same digits."""
    bunch: list[Differing] = []
    for part in parts:
        full = sum(other.rows for other in bunch) + part.rows > rows
        if bunch and (full or bunch[0].digits != part.digits):
            yield bunch
            bunch = []
        bunch.append(part)
    if bunch:
        yield bunch


def cut(part: Differing, rows: int = AT_ONCE) -> list[Differing]:
    """A part whose groups are many, in several of about so many rows."""
    if part.rows <= rows or len(part.prefixes) < 2:
        return [part]
    number = -(-part.rows // rows)
    size = -(-len(part.prefixes) // number)
    pieces = [part.prefixes[at : at + size] for at in range(0, len(part.prefixes), size)]
    share = -(-part.rows // len(pieces))
    return [Differing(part.interval, part.digits, piece, share) for piece in pieces]


def suspects(source: Mapping[Key, str | None], target: Mapping[Key, str | None]) -> list[Key]:
    """The keys whose rows have not the same hash on both sides, in order.

    A row without a hash, for its text is longer than the database makes one, is one of them.
    """
    keys = source.keys() | target.keys()
    return sorted(
        key
        for key in keys
        if key not in source
        or key not in target
        or source[key] is None
        or source[key] != target[key]
    )
