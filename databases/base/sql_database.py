"""What ``port.Database`` is in any database that is asked in SQL, once its words are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from changes.model.model import TableName
from databases.base import selects
from databases.base.errors import DatabaseRefused
from databases.base.findings import Finding, findings, of_table, problem
from databases.base.port import (
    ALL_ROWS,
    Findings,
    Key,
    KeyRange,
    Moment,
    SourceColumn,
    SourceTable,
    Texts,
)

# Cuts a table into ranges by its own keys: a walk over the key's index, step by step.

Ask = Callable[[str], list[tuple[object, ...]]]


def walk(words: selects.Dialect, table: SourceTable, rows: int, ask: Ask) -> Iterator[KeyRange]:
    """``Database.ranges``: each bound is the key of a row that is there, so ranges are as full as
    the keys are dense, whatever their distribution."""
    if rows < 1:
        raise ValueError("a range has a row at least")
    selects.key_columns(table)
    low = None
    while True:
        found = ask(selects.bound(words, table, low, rows))
        if not found:
            yield KeyRange(low, None)
            return
        high = tuple(str(text) for text in found[0])
        if high == low:
            # Its literal sorts before the row itself: the walk would stand still for ever.
            raise DatabaseRefused(f"{table.name}: the key {high} is not found by its own text")
        yield KeyRange(low, high)
        low = high


class SqlDatabase(ABC):
    """The part of ``port.Database`` that only its words tell apart."""

    def __init__(self, words: selects.Dialect) -> None:
        self._words = words

    @abstractmethod
    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """See ``port.Database``."""

    @abstractmethod
    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """See ``port.Database``."""

    @abstractmethod
    def describe(self, table: TableName) -> SourceTable:
        """See ``port.Database``."""

    @abstractmethod
    def moment(self) -> Moment:
        """See ``port.Database``."""

    @abstractmethod
    def of_server(self, ahead_us: int) -> Iterable[Finding]:
        """What its settings and rights lack; its clock is so far ahead of this machine's."""

    def ranges(self, table: SourceTable, rows: int) -> Iterator[KeyRange]:
        """See ``port.Database``."""
        return walk(self._words, table, rows, self.ask)

    def query(
        self, table: SourceTable, columns: Sequence[SourceColumn], part: KeyRange = ALL_ROWS
    ) -> str:
        """See ``port.Database``."""
        return selects.query(self._words, table, columns, part)

    def text(self, column: SourceColumn) -> str:
        """See ``port.Database``."""
        return self._words.text(column)

    def compared(self, column: SourceColumn) -> str:
        """See ``port.Database``."""
        return selects.compared(self._words, column)

    def table_sql(self, table: SourceTable) -> str:
        """See ``port.Database``."""
        return selects.rows_of(self._words, table)

    def predicate(self, table: SourceTable, part: KeyRange) -> str:
        """See ``port.Database``."""
        return selects.predicate(self._words, table, part)

    def matching(self, table: SourceTable, keys: Sequence[Key]) -> str:
        """See ``port.Database``."""
        return selects.matching(self._words, table, keys)

    def rows(
        self, table: SourceTable, columns: Sequence[SourceColumn], keys: Sequence[Key]
    ) -> dict[Key, Texts]:
        """See ``port.Database``."""
        return selects.rows(self._words, table, columns, keys, self.ask)

    def check(self, tables: Sequence[TableName], clock_us: Callable[[], int]) -> Findings:
        """See ``port.Database``."""
        ahead_us = self.moment().unix_us - clock_us()
        found = [*self.of_server(ahead_us)]
        for table in tables:
            try:
                self.ask(f"SELECT 1 FROM {self._words.table(table)} LIMIT 0")
                found += of_table(self.describe(table))
            except DatabaseRefused as error:
                found.append(problem(str(error)))
        return findings(found)
