"""The changes of a log by target, partition and minute, as they are counted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from changes.model.model import TableName
from daemon.cli.counts.against import Against
from daemon.cli.counts.result import Cell, CellKey
from offsets.counts import RowCounts
from offsets.position import TopicPartition

COLUMN = {"I": 0, "U": 1, "D": 2}
"""Where an operation is counted; others are no changes."""

_MISSING = 3


class MinuteCells:
    """One thread's."""

    def __init__(
        self, targets: Callable[[TableName], tuple[str, ...]], against: Against | None
    ) -> None:
        """``against``: what counts them by table, too."""
        self._targets, self._against = targets, against
        self._counts: dict[CellKey, list[int]] = {}
        self._untold: set[CellKey] = set()

    def add(self, table: TableName, op: str, source: TopicPartition, minute: int) -> None:
        """A change of a minute."""
        column = COLUMN[op]
        for counts in self._of(table, source, minute):
            counts[column] += 1
        if self._against is not None:
            self._against.add(table, minute, column)

    def lack(self, table: TableName, source: TopicPartition, minute: int, number: int) -> None:
        """Changes that an END says there are, and that are not there."""
        for counts in self._of(table, source, minute):
            counts[_MISSING] += number

    def untell(self, table: TableName, source: TopicPartition, minute: int) -> None:
        """No END says how many there are."""
        for cell in self._keys(table, source, minute):
            self._counts.setdefault(cell, [0, 0, 0, 0])
            self._untold.add(cell)

    def all(self, told: bool) -> dict[CellKey, Cell]:
        """As they are now. ``told``: by ENDs."""
        return {
            key: Cell(
                RowCounts(*counts[:_MISSING]),
                sum(counts) if told and key not in self._untold else None,
            )
            for key, counts in self._counts.items()
        }

    def _of(self, table: TableName, source: TopicPartition, minute: int) -> Iterator[list[int]]:
        for cell in self._keys(table, source, minute):
            yield self._counts.setdefault(cell, [0, 0, 0, 0])

    def _keys(self, table: TableName, source: TopicPartition, minute: int) -> Iterator[CellKey]:
        return (CellKey(target, *source, minute) for target in self._targets(table))
