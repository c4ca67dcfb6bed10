"""Compares one table: one pass of sums over both sides, then closer where these differ, to keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from actors.runtime.aside import Aside
from changes.sql.spark.checksums import Interval
from daemon.operations.verify import groups
from daemon.operations.verify.groups import Differing
from daemon.operations.verify.sides import Group, Side, Sum
from databases.base.port import Key

INTERVALS_AT_ONCE = 200
"""Intervals that differ whose groups are summed up together: each group is a line from both sides.
"""


@dataclass(frozen=True, slots=True)
class FirstPass:
    """``rows``: of the source, of the target. ``intervals``: how many were compared."""

    rows: tuple[int, int]
    intervals: int
    left: tuple[Differing, ...]


def digits_of(intervals: Sequence[Interval], rows: int) -> int:
    """By how many digits of the keys' hashes the first pass parts about so many rows: a table
    without intervals is parted by these alone."""
    whole = list(intervals) == [Interval()]
    return groups.digits_for(rows, groups.FEWEST_ROWS) if whole else 0


def first_pass(
    aside: Aside[Mapping[Group, Sum]], target: Side, intervals: Sequence[Interval], digits: int
) -> FirstPass:
    """One pass over each side, at the same time: ``aside`` is the source's, which has begun."""
    try:
        there = target.sums(intervals, digits)
    finally:
        here = aside.result()
    return FirstPass(
        (sum(s.rows for s in here.values()), sum(s.rows for s in there.values())),
        len(intervals) * 16**digits,
        tuple(groups.differing(intervals, digits, here, there)),
    )


def closer(source: Side, target: Side, left: Sequence[Differing]) -> list[Differing]:
    """The next part of what is left, looked at again in smaller groups."""
    rows = max(part.rows for part in left)
    digits = groups.digits_for(rows, groups.GROUP_ROWS)
    if digits <= left[0].digits:
        return [piece for part in left for piece in groups.cut(part)]
    intervals = [part.interval for part in left]
    found = groups.differing(
        intervals, digits, source.sums(intervals, digits), target.sums(intervals, digits)
    )
    return [piece for part in found for piece in groups.cut(part)]


def next_parts(left: Sequence[Differing]) -> tuple[list[Differing], list[Differing]]:
    """What is looked at next together, and the rest."""
    if needs_closer(left[0]):
        number = 0
        while number < min(len(left), INTERVALS_AT_ONCE) and needs_closer(left[number]):
            number += 1
        return list(left[:number]), list(left[number:])
    bunch = next(groups.bunches([part for part in left if not needs_closer(part)]))
    taken = {id(part) for part in bunch}
    return bunch, [part for part in left if id(part) not in taken]


def advanced(
    source: Side, target: Side, left: Sequence[Differing]
) -> tuple[list[Differing], list[Key]]:
    """Look closer at the next part of what is left: what is left then, and keys whose rows seem to
    differ. Of these come as many as are looked at together: each look waits for log and target."""
    parts, rest = next_parts(left)
    if needs_closer(parts[0]):
        return [*closer(source, target, parts), *rest], []
    keys = suspects(source, target, parts)
    while rest and len(keys) < groups.AT_ONCE and not needs_closer(rest[0]):
        parts, rest = next_parts(rest)
        keys += suspects(source, target, parts)
    return rest, keys


def needs_closer(part: Differing) -> bool:
    """Whether it is a whole interval of many rows: its groups are summed up first."""
    return part.digits == 0 and part.rows > groups.GROUP_ROWS


def suspects(source: Side, target: Side, parts: Sequence[Differing]) -> list[Key]:
    """The keys in these parts whose rows have not the same hash on both sides."""
    parts = sorted(parts, key=lambda part: _order(part.interval))
    intervals: list[Interval] = []
    wanted: set[tuple[int, str]] = set()
    for part in parts:
        if not intervals or intervals[-1] != part.interval:
            intervals.append(part.interval)
        wanted |= {(len(intervals) - 1, prefix) for prefix in part.prefixes}
    digits = parts[0].digits
    return groups.suspects(
        source.hashes(intervals, digits, wanted), target.hashes(intervals, digits, wanted)
    )


def _order(interval: Interval) -> tuple[bool, int]:
    return (interval.low is not None, interval.low or 0)
