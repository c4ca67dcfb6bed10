"""A source's own database, as jobs ask it: its words, and one connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from changes.model.model import TableName
from databases.base.errors import Cause, DatabaseError, DatabaseRefused
from databases.base.findings import Finding, findings, of_table, problem
from databases.base.log_end import LogEnd
from databases.base.port import (
    Findings,
    JdbcOptions,
    Key,
    KeyRange,
    Moment,
    SourceColumn,
    SourceTable,
    Texts,
)
from databases.base.section import DatabaseSection
from databases.base.selects import MOST_KEYS, Words, key_columns, text_of
from databases.base.session import DatabaseSession, Purpose
from databases.base.session_settings import Server, reading
from databases.base.url import Kind, Login


class Database(Words):
    """One connection: read-only, one thread's at a time; opened by ``opening.open_database``.

    What asks the server raises DatabaseAway or DatabaseRefused. After DatabaseAway the next call
    connects again.
    """

    kind: ClassVar[Kind]
    """What it speaks."""

    def __init__(self, name: str, section: DatabaseSection, login: Callable[[], Login]) -> None:
        """``name``: as messages have it; ``login`` has the password as it is now. Connects at the
        first question."""
        self._name, self._section, self._login = name, section, login
        self._session: DatabaseSession | None = None

    @abstractmethod
    def tables(self, pattern: str) -> list[TableName]:
        """The base tables whose ``database.table`` matches (``*``, ``?``, ``[…]``), in order."""

    @abstractmethod
    def describe(self, table: TableName) -> SourceTable:
        """A table as it is now. Raises DatabaseRefused where there is none."""

    @abstractmethod
    def moment(self) -> Moment:
        """The database's clock and position."""

    @abstractmethod
    def log_end(self) -> LogEnd:
        """Where its log is now: every read before saw only what came into it before."""

    @abstractmethod
    def shows(self, end: LogEnd) -> bool:
        """Whether reads see all that was in the log at that end, an earlier one of this server.
        False where that is not known."""

    @abstractmethod
    def jdbc(self, table: SourceTable | None = None) -> JdbcOptions:
        """How Spark reaches the same database, with a session like this one's.

        With the ``table`` that is read, so many rows are fetched at a time as fit into memory.
        """

    @abstractmethod
    def of_server(self, ahead_us: int) -> Iterable[Finding]:
        """What its settings and rights lack; its clock is so far ahead of this machine's."""

    @abstractmethod
    def _connect(self, login: Login, purpose: Purpose) -> DatabaseSession:
        """A new session."""

    @abstractmethod
    def _limits(self, server: Server) -> dict[str, str]:
        """The settings of a session beside those that all have."""

    @abstractmethod
    def _help(self, text: str) -> str:
        """What gives the right that a question lacked, by the server's message."""

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[object, ...]]:
        """The rows that a SELECT gives, all at once: for small results."""
        with self._asked() as session:
            return session.ask(sql, values)

    def change(self, sql: str) -> None:
        """Run statements in one transaction that writes: only for what is binlogd's own at a
        source, as its publication. They name whole names. PostgreSQL's alone."""
        raise NotImplementedError

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """The rows that a SELECT gives, in lists of about so many: memory is bounded.

        The connection is the iterator's until it ends or is closed.
        """
        with self._asked() as session:
            yield from session.stream(sql, rows)

    def answer(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """As ``stream``, for a statement of a person: the first list has one row, the columns'
        names."""
        with self._asked() as session:
            yield from session.answer(sql, rows)

    def ranges(self, table: SourceTable, rows: int) -> Iterator[KeyRange]:
        """The table in ranges of about so many rows each, by a walk over the key's index. Each
        bound is the key of a row that is there, so ranges are as full as the keys are dense.

        The first begins open, the last ends open; together they hold every row once. An empty
        table is one range. Memory is bounded. The iterator uses the connection at each step; other
        calls may come between. Raises DatabaseRefused for a table without a key.
        """
        if rows < 1:
            raise ValueError("a range has a row at least")
        key_columns(table)
        low = None
        while found := self.ask(self.bound(table, low, rows)):
            high = tuple(str(text) for text in found[0])
            if high == low:
                # Its literal sorts before the row itself: the walk would stand still for ever.
                raise DatabaseRefused(f"{table.name}: the key {high} is not found by its own text")
            yield KeyRange(low, high)
            low = high
        yield KeyRange(low, None)

    def rows(
        self, table: SourceTable, columns: Sequence[SourceColumn], keys: Sequence[Key]
    ) -> dict[Key, Texts]:
        """The rows of these keys that exist, as canonical texts of the columns.

        A key under which the database finds a row is that row's, also where its collation takes
        another text for the same; so the keys should come from the database.
        """
        found: dict[Key, Texts] = {}
        for start in range(0, len(keys), MOST_KEYS):
            some = keys[start : start + MOST_KEYS]
            for row in self.ask(self.look_up(table, columns, some)):
                texts = tuple(map(text_of, row))
                key = tuple(str(text) for text in texts[: len(table.keys)])
                found[key] = texts[len(table.keys) :]
        return found

    def check(self, tables: Sequence[TableName], clock_us: Callable[[], int]) -> Findings:
        """What keeps jobs, or the reader of its log, from working with it.

        ``tables`` are those that a job would read, ``clock_us`` is this machine's clock.
        """
        ahead_us = self.moment().unix_us - clock_us()
        found = [*self.of_server(ahead_us)]
        for table in tables:
            try:
                self.ask(f"SELECT 1 FROM {self.table(table)} LIMIT 0")
                found += of_table(self.describe(table))
            except DatabaseRefused as error:
                found.append(problem(str(error)))
        return findings(found)

    def close(self) -> None:
        """End the connection. Raises nothing."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @contextmanager
    def _asked(self) -> Iterator[DatabaseSession]:
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

    def _settings(self, server: Server) -> dict[str, str]:
        """A session that writes nothing, in which each text is the canonical one."""
        return {**reading(server), **self._limits(server)}

    @property
    def _silence_s(self) -> int:
        """So long may a connection say nothing."""
        return int(self._section.statement_timeout_s) + 60
