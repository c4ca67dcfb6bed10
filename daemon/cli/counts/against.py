"""Compares the changes of a log with the numbers that the source says beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from changes.model.model import TableName
from daemon.cli.base.texts import time_text
from daemon.cli.counts.expected import OPERATIONS, ExpectedCounts
from daemon.cli.counts.names import TableNames
from daemon.cli.counts.result import Cell, CellKey
from offsets.counts import RowCounts
from settings.counted import counted

MOST_SHOWN = 1000
"""Minutes of a target that are named."""

NONE = RowCounts()


@dataclass(frozen=True, slots=True)
class LackingMinute:
    """A minute in which the log has fewer changes of a table than the source says."""

    table: str
    minute: int
    operation: str
    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class SourceSays:
    """What the source says of one target. ``lacking``: the first thousand minutes with fewer
    changes in the log, ``more`` how many others. ``why``: what can't be told, a line each;
    ``expected`` then is None."""

    by: str
    expected: int | None = None
    lacking: tuple[LackingMinute, ...] = ()
    more: int = 0
    why: tuple[str, ...] = ()


class Against:
    """One range of one pipeline's log. One thread's. ``by``: who says how many there are."""

    def __init__(
        self,
        minutes: range,
        targets: Callable[[TableName], tuple[str, ...]],
        expected: ExpectedCounts,
    ) -> None:
        self._minutes, self._targets, self._expected = minutes, targets, expected
        self.by = expected.by
        self.begin()

    def begin(self) -> None:
        """The log is read from its begin: forget what was seen of it."""
        self._names = TableNames(self._targets)
        self._seen: set[TableName] = set()
        self._found: dict[TableName, dict[int, list[int]]] = {}
        self._wanted = self._by_table()[0]
        self.missing = sum(n.total for each in self._wanted.values() for n in each.values())
        """So many changes have not come yet."""

    def see(self, table: TableName) -> None:
        """A table that the log has changes of, whenever they were."""
        if table not in self._seen and self._targets(table):
            self._seen.add(table)
            self._names.seen(table)

    def add(self, table: TableName, minute: int, column: int) -> None:
        """A change of the range."""
        found = self._found.setdefault(table, {}).setdefault(minute, [0, 0, 0])
        wanted = self._wanted.get(table, {}).get(minute, NONE)
        self.missing -= found[column] < wanted[column]
        found[column] += 1

    def _by_table(self) -> tuple[dict[TableName, Mapping[int, RowCounts]], dict[TableName, str]]:
        """What is said of the asked tables, and why of some nothing is."""
        told: dict[TableName, Mapping[int, RowCounts]] = {}
        why: dict[TableName, str] = {}
        for name in (*self._expected.tables, *self._expected.why):
            for table in self._tables(name):
                if name in self._expected.why:
                    why[table] = self._expected.why[name]
                elif table in told or len(self._tables(name)) > 1:
                    why[table] = f"{name} may be of several tables"
                else:
                    told[table] = self._expected.tables[name]
        return {table: each for table, each in told.items() if table not in why}, why

    def _tables(self, name: str) -> Collection[TableName]:
        """Those that a name may mean."""
        found = self._names.expected({name: 1})
        return self._names.possible(name) if found is None else found

    def said(self, settled: Callable[[str], bool]) -> dict[str, SourceSays]:
        """By target. ``settled``: whether the log of a target goes so far behind the range that
        what it lacks comes no more."""
        told, why = self._by_table()
        tables: dict[str, list[TableName]] = {}
        for table in sorted({*self._seen, *told, *why}):
            for target in self._targets(table):
                tables.setdefault(target, []).append(table)
        return {
            target: self._of_target(mine, told, why, settled(target))
            for target, mine in tables.items()
        }

    @property
    def nothing(self) -> SourceSays:
        """What is said of a target that nothing is known of."""
        why = self._expected.why_all or f"{self.by} has {self._expected.lacks} of it"
        return SourceSays(self.by, why=(why,))

    def _of_target(
        self,
        tables: Collection[TableName],
        told: Mapping[TableName, Mapping[int, RowCounts]],
        why: Mapping[TableName, str],
        settled: bool,
    ) -> SourceSays:
        if self._expected.why_all:
            return self.nothing
        untold = [
            f"{self.by}: {why.get(table) or f'it has {self._expected.lacks} of {table}'}"
            for table in tables
            if table not in told
        ]
        lacking: list[LackingMinute] = []
        beyond: list[LackingMinute] = []
        for table in tables:
            for each in self._differing(table, told.get(table)):
                (lacking if each.found < each.expected else beyond).append(each)
        untold += _first(beyond, "messages came again, or were not counted there")
        if not settled:
            untold += _first(lacking, "the log does not go far behind that yet")
            lacking = []
        total = sum(n.total for t in tables if t in told for n in told[t].values())
        left = max(0, len(lacking) - MOST_SHOWN)
        why_not = tuple(dict.fromkeys(untold))
        return SourceSays(
            self.by, None if untold else total, tuple(lacking[:MOST_SHOWN]), left, why_not
        )

    def _differing(
        self, table: TableName, told: Mapping[int, RowCounts] | None
    ) -> Iterator[LackingMinute]:
        if told is None:
            return
        seen = self._found.get(table, {})
        for minute in sorted(seen.keys() | told.keys()):
            found = seen.get(minute, [0, 0, 0])
            for column, wanted in enumerate(told.get(minute, NONE)):
                if found[column] != wanted:
                    name = OPERATIONS[column]
                    yield LackingMinute(str(table), minute, name, wanted, found[column])

    def cells(
        self, cells: Mapping[CellKey, Cell], said: Mapping[str, SourceSays]
    ) -> Mapping[CellKey, Cell]:
        """The cells with what the source says, of the targets that it tells: what is missing has no
        partition, so it counts to the last one with changes of the minute."""
        short: dict[tuple[str, int], int] = {}
        for target, each in said.items():
            for lacks in each.lacking:
                at = target, lacks.minute
                short[at] = short.get(at, 0) + lacks.expected - lacks.found
        found: dict[CellKey, Cell] = {}
        for key in sorted(cells, reverse=True):
            cell, says = cells[key], said.get(key.target)
            if says is None or says.expected is None:
                found[key] = cell
                continue
            missing = short.pop((key.target, key.minute), 0)
            found[key] = replace(cell, expected=cell.found.total + missing)
        return found


def lacking_minute_line(each: LackingMinute, by: str) -> str:
    """A minute whose changes are not all in the log."""
    at = f"{time_text(each.minute * 60_000)[:16]}Z"
    what = counted(each.expected, each.operation)
    return f"{at}: {each.table} has {each.found} of {what} in the log, by {by}"


def _first(lines: list[LackingMinute], reason: str) -> Iterator[str]:
    if not lines:
        return
    one = lines[0]
    at = f"{time_text(one.minute * 60_000)[:16]}Z"
    others = f", and so on, {counted(len(lines), 'time')}" if len(lines) > 1 else ""
    what = counted(one.found, one.operation)
    yield f"{at}: {one.table} has {what} where {one.expected} are said{others}: {reason}"
