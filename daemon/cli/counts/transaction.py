"""One transaction, as far as its records were seen: does it have what its END says? Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from changes.model.model import TableName
from offsets.position import TopicPartition

RESTARTED = "it began twice before its END, as where a reader restarted within it"


class Numbers:
    """A set of whole numbers that mostly come in order: it needs memory for its gaps alone."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, number: int) -> bool:
        """Add one; False where it is there."""
        at = bisect_right(self._firsts, number)
        if at and number <= self._lasts[at - 1]:
            return False
        behind = at > 0 and self._lasts[at - 1] == number - 1
        before = at < len(self._firsts) and self._firsts[at] == number + 1
        if behind and before:
            self._lasts[at - 1] = self._lasts.pop(at)
            del self._firsts[at]
        elif behind:
            self._lasts[at - 1] = number
        elif before:
            self._firsts[at] = number
        else:
            self._firsts.insert(at, number)
            self._lasts.insert(at, number)
        return True

    def are_within(self, last: int) -> bool:
        """Whether all are from 1 to ``last``."""
        return not self._firsts or (self._firsts[0] >= 1 and self._lasts[-1] <= last)


@dataclass(slots=True)
class TableEvents:
    """The events of one table in a transaction."""

    numbers: Numbers = field(default_factory=Numbers)
    found: int = 0
    places: dict[tuple[TopicPartition, int], None] = field(default_factory=dict)
    """Partition and minute of its changes, truncations left out; the last one comes last."""


class End(NamedTuple):
    """Where a transaction's END is, and what it says; ``tables`` None: nothing that can be used."""

    source: TopicPartition
    offset: int
    minute: int | None
    tables: Mapping[str, int] | None


@dataclass(slots=True)
class Transaction:
    """What was seen of one."""

    tables: dict[TableName, TableEvents] = field(default_factory=dict)
    end: End | None = None
    begun: bool = False
    begun_minute: int | None = None
    restarted: bool = False
    """It began again before its end."""
    torn: str = ""
    """Why its END can't be used, whatever it says."""
    inside: bool = False
    """Some of its changes are in the range."""
    cut: bool = False
    """Its END is the first of its partition, and its BEGIN was not read: it may be cut off."""
    first: tuple[TopicPartition, int] | None = None
    """The place of its first event of an asked table."""

    def begin(self, minute: int | None) -> None:
        """Its BEGIN came, maybe again."""
        self.restarted |= self.begun and self.end is None
        self.begun = True
        if self.begun_minute is None:
            self.begun_minute = minute

    def ended(self, end: End) -> None:
        """Its END came, maybe again: a reader that restarts may end a finished one with nothing."""
        if self.end is not None:
            if end.tables and end.tables != self.end.tables:
                self.torn = "it has two ENDs that differ"
            return
        self.end = end

    def doubt(self, expected: Mapping[TableName, int]) -> str:
        """Why its END is not trusted; empty: it is. ``expected``: by asked table what it says."""
        assert self.end is not None
        if self.torn:
            return self.torn
        if self.end.tables is None:
            return "its END has no number for each table, or they do not add up"
        more = [
            str(table)
            for table, each in self.tables.items()
            if not each.numbers.are_within(expected.get(table, 0))
        ]
        if more:
            return f"its END says fewer than there are of {more[0]}"
        if self.restarted:
            return RESTARTED
        return ""

    def is_whole(self, expected: Mapping[TableName, int]) -> bool:
        """Whether each table has the events that its END says, none more and none less."""
        asked = expected.keys() | self.tables.keys()
        return all(self._found(table) == expected.get(table, 0) for table in asked)

    def lacks(self, expected: Mapping[TableName, int]) -> list[tuple[TableName, int, int]]:
        """The tables with fewer events than expected: how many, and how many there are."""
        found = [(table, number, self._found(table)) for table, number in expected.items()]
        return [each for each in found if each[2] < each[1]]

    def place_of_missing(self, table: TableName, minutes: range) -> tuple[TopicPartition, int]:
        """The partition and minute of the table's last change in the range, else the END's
        partition, and the last minute of the range that the transaction may have."""
        assert self.end is not None
        own = self.tables[table].places if table in self.tables else {}
        for place in reversed(own):
            if place[1] in minutes:
                return place
        last = max(self._minutes())
        return self.end.source, min(max(last, minutes.start), minutes.stop - 1)

    @property
    def has_changes(self) -> bool:
        """Whether any of its changes was seen."""
        return any(each.places for each in self.tables.values())

    @property
    def is_timeless(self) -> bool:
        """Whether nothing that was seen of it tells when it was."""
        return not self._minutes()

    def overlaps(self, minutes: range) -> bool:
        """Whether it may have changes in a range: by its bounds, and by what is there of it."""
        known = self._minutes()
        return bool(known) and min(known) < minutes.stop and max(known) >= minutes.start

    def _minutes(self) -> list[int]:
        known = [minute for each in self.tables.values() for _, minute in each.places]
        ends = self.begun_minute, None if self.end is None else self.end.minute
        return known + [minute for minute in ends if minute is not None]

    def _found(self, table: TableName) -> int:
        return self.tables[table].found if table in self.tables else 0
