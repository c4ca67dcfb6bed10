"""The row changes that tables hold of a partition, by their pipelines' tables of counts."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.counts_table import CountsTable
from offsets.counts import CountRow, RowCounts, held
from offsets.gate_record import ClosedPartition


class Held(NamedTuple):
    """``counts``: by table. ``made``: by table of counts when the newest of them was written there,
    in seconds since 1970; 0: there are none. Each has a clock of its own."""

    counts: Mapping[str, RowCounts]
    made: Mapping[str, int]


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
        made: dict[str, int] = {}
        for table, targets in self._tables:
            rows = table.of_minutes(minutes, targets)
            made[str(table.table)] = max((row.made for row in rows), default=0)
            found |= sums(rows, targets, minutes)
        return Held(found, made)

    def newest(self, minutes: range) -> Mapping[str, Mapping[int, int]]:
        """By table of counts and minute when the newest row was written. Raises NoAnswer,
        DatabaseError."""
        return {str(table.table): table.newest(minutes, targets) for table, targets in self._tables}


class LateChanges:
    """Finds closed partitions of which there are other counts now. One thread's, of one gate."""

    def __init__(self) -> None:
        self._checked: dict[tuple[int, int], Mapping[str, int]] = {}

    def changed(
        self, held: HeldMinutes, closed: Sequence[ClosedPartition], length_ms: int
    ) -> Generator[tuple[int, str]]:
        """Where such a partition begins, and why, in words. What there is of one is read only where
        something was written since. One whose reopening fails comes again; a table that the closing
        told nothing of makes none. Raises NoAnswer, DatabaseError."""
        if not held:
            return
        starts = [each.begin_ms for each in closed]
        newest = held.newest(_minutes(min(starts), max(starts) - min(starts) + length_ms))
        for each in closed:
            minutes, name = _minutes(each.begin_ms, length_ms), (each.begin_ms, each.version)
            made = {
                table: max((at for minute, at in found.items() if minute in minutes), default=0)
                for table, found in newest.items()
            }
            seen = self._checked.get(name, each.made or {})
            if all(at <= seen.get(table, 0) for table, at in made.items()):
                continue
            now = held.of(minutes).counts
            told = each.counts
            if differing := [table for table, n in now.items() if told.get(table) not in (None, n)]:
                yield each.begin_ms, f"other counts of {', '.join(differing)}"
            self._checked[name] = made


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
