"""What ``port.Database`` is in any database that is asked in SQL, once its words are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from changes.model.model import TableName
from databases.base import selects
from databases.base.errors import Cause, DatabaseError, DatabaseRefused
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
from databases.base.section import DatabaseSection
from databases.base.session import DatabaseSession, Purpose
from databases.base.session_settings import Server, reading
from databases.base.url import Login

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


S = TypeVar("S", bound=DatabaseSession)


class SqlDatabase(ABC, Generic[S]):
    """The part of ``port.Database`` that only its words and its session tell apart."""

    def __init__(self, name: str, section: DatabaseSection, login: Callable[[], Login]) -> None:
        """``name``: as messages have it; ``login`` has the password as it is now. Connects at the
        first question."""
        self._name, self._section, self._login = name, section, login
        self._session: S | None = None

    @property
    @abstractmethod
    def _words(self) -> selects.Dialect:
        """Its SQL."""

    @abstractmethod
    def _connect(self, login: Login, purpose: Purpose) -> S:
        """A new session."""

    @abstractmethod
    def _limits(self, server: Server) -> dict[str, str]:
        """The settings of a session beside those that all have."""

    @abstractmethod
    def _help(self, text: str) -> str:
        """What gives the right that a question lacked, by the server's message."""

    def _settings(self, server: Server) -> dict[str, str]:
        """A session that writes nothing, in which each text is the canonical one."""
        return {**reading(server), **self._limits(server)}

    @property
    def _silence_s(self) -> int:
        """So long may a connection say nothing."""
        return int(self._section.statement_timeout_s) + 60

    @contextmanager
    def _asked(self) -> Iterator[S]:
        """The session, made where there is none. After a failure the next question makes one."""
        if self._session is None or not self._session.is_open:
            purpose = Purpose(self._settings, self._name, self._silence_s, self._help)
            self._session = self._connect(self._login(), purpose)
        try:
            yield self._session
        except DatabaseError as error:
            if error.cause is not Cause.REFUSED:
                self.close()
            raise

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[object, ...]]:
        """See ``port.Database``."""
        with self._asked() as session:
            return session.ask(sql, values)

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """See ``port.Database``."""
        with self._asked() as session:
            yield from session.stream(sql, rows)

    def close(self) -> None:
        """See ``port.Database``."""
        if self._session is not None:
            self._session.close()
            self._session = None

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
