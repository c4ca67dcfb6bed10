"""The row changes that tables hold of a partition, by their pipelines' tables of counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.counts_table import CountsTable
from offsets.counts import CountRow, RowCounts, held
from offsets.gate_record import ClosedPartition


class Held(NamedTuple):
    """``counts``: by table. ``made``: when the newest of them was written, in seconds since 1970;
    0: there are none."""

    counts: Mapping[str, RowCounts]
    made: int


class HeldMinutes:
    """Of tables whose pipelines count. One thread's."""

    def __init__(self, parts: Iterable[tuple[PipelineConfig, Collection[str]]]) -> None:
        """``parts``: each pipeline with its tables; one that does not count is left out. Raises
        NoAnswer where its sink answers no queries."""
        self._tables = [
            (CountsTable(pipeline, TargetName.parse(pipeline.section.counts)), frozenset(targets))
            for pipeline, targets in parts
            if pipeline.section.counts is not None
        ]

    def __bool__(self) -> bool:
        """Whether anything is counted."""
        return bool(self._tables)

    def of(self, minutes: range) -> Held:
        """What there is now. Raises NoAnswer, DatabaseError."""
        found: dict[str, RowCounts] = {}
        made = 0
        for table, targets in self._tables:
            rows = table.of_minutes(minutes, targets)
            made = max(made, *(row.made for row in rows), 0)
            found |= sums(rows, targets, minutes)
        return Held(found, made)

    def newest(self, minutes: range) -> Mapping[int, int]:
        """By minute when its newest row was written. Raises NoAnswer, DatabaseError."""
        found: dict[int, int] = {}
        for table, targets in self._tables:
            for minute, made in table.newest(minutes, targets).items():
                found[minute] = max(made, found.get(minute, 0))
        return found


class LateChanges:
    """Finds closed partitions of which there are other counts now. One thread's, of one gate."""

    def __init__(self) -> None:
        self._checked: dict[tuple[int, int], int] = {}

    def changed(
        self, held: HeldMinutes, closed: Sequence[ClosedPartition], length_ms: int
    ) -> Iterator[tuple[int, str]]:
        """Where such a partition begins, and why, in words. What there is of one is read only where
        something was written since. Raises NoAnswer, DatabaseError."""
        if not held:
            return
        starts = [each.begin_ms for each in closed]
        newest = held.newest(_minutes(min(starts), max(starts) - min(starts) + length_ms))
        for each in closed:
            minutes, name = _minutes(each.begin_ms, length_ms), (each.begin_ms, each.version)
            made = max((newest[minute] for minute in minutes if minute in newest), default=0)
            if made <= self._checked.get(name, each.made or 0):
                continue
            self._checked[name] = made
            now = held.of(minutes).counts
            if differing := [table for table, n in now.items() if each.counts.get(table) != n]:
                yield each.begin_ms, f"other counts of {', '.join(differing)}"


def _minutes(begin_ms: int, length_ms: int) -> range:
    return range(begin_ms // 60_000, (begin_ms + length_ms) // 60_000)


def sums(
    rows: Sequence[CountRow], targets: Collection[str], minutes: range
) -> dict[str, RowCounts]:
    """Of each target all its changes of these minutes, of which the rows are. Pure."""
    found = dict.fromkeys(sorted(targets), RowCounts())
    lanes: dict[tuple[str, object], list[CountRow]] = {}
    for row in rows:
        lanes.setdefault((row.target, row.lane), []).append(row)
    for (target, _), mine in lanes.items():
        for minute, counts in held(mine).minutes().items():
            if minute in minutes and target in found:
                found[target] = found[target].plus(counts)
    return found
