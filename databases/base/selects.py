"""The SELECTs over a table's key: ranges, bounds, look-ups; each database has its words. Pure.

Bounds are literals in the text: the database alone compares them, in its own collation.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

from changes.model.model import TableName
from changes.sql.forms import bytes_text
from changes.sql.quoted import quoted
from changes.sql.spark.canonical import compared as compared_form
from changes.sql.spark.checksums import TextColumn
from databases.base.errors import DatabaseRefused
from databases.base.port import ALL_ROWS, Key, KeyRange, SourceColumn, SourceTable

_DIGITS = re.compile(r"\(\d+\)", re.ASCII)

MOST_KEYS = 500
"""Keys of one look-up: each is a condition in its text, which no server takes without end."""


class Words(ABC):
    """The words of one kind of database, and the statements that are made of them. Raises
    DatabaseRefused for what it has no words for."""

    sign_of_names: str
    """What stands around a name."""
    compares_rows: bool
    """Whether ``(a, b) > (1, 2)`` is read from an index."""

    @abstractmethod
    def text(self, column: SourceColumn) -> str:
        """The SQL of a column's canonical text. A column without a form has none."""

    @abstractmethod
    def sent(self, column: SourceColumn) -> str:
        """What a read gets of it: the text, but bytes as they are where the form is HEX."""

    @abstractmethod
    def lost(self, column: SourceColumn) -> str | None:
        """The condition of values that the stream has as null: dates of no calendar, numbers that
        are none. None where the type has no such values."""

    @abstractmethod
    def literal(self, column: SourceColumn, text: str) -> str:
        """The value of a canonical text, to be compared with the column."""

    @abstractmethod
    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        """A row's hash in hexadecimal digits, as ``changes.sql.spark.checksums`` has it."""

    @abstractmethod
    def number(self, digits: str, other: int) -> str:
        """The number of 16 such digits, which may be signed: sums are compared modulo 2^64. Where
        there are none, another one."""

    def sign(self, column: SourceColumn, sign: str) -> str:
        """The operator that compares the column as its index does."""
        return sign

    def quote(self, name: str) -> str:
        """A name, whatever is in it."""
        if "\0" in name:
            raise DatabaseRefused("a name with a NUL")
        return quoted(name, self.sign_of_names)

    def table(self, name: TableName) -> str:
        """A table's qualified name."""
        return f"{self.quote(name.database)}.{self.quote(name.table)}"

    def query(
        self, table: SourceTable, columns: Sequence[SourceColumn], part: KeyRange = ALL_ROWS
    ) -> str:
        """A SELECT of the columns' canonical texts as ``c0``, ``c1`` …: for JDBC and for ``ask``.

        A column of ``Form.HEX`` comes as bytes, not as text: a text in hex has bounds. It carries
        its values in it, quoted, and has no parameter.
        """
        return (
            f"SELECT {_listed(map(self.sent, columns))} FROM {self.table_sql(table)}"
            f" WHERE {self.predicate(table, part)}"
        )

    def table_sql(self, table: SourceTable) -> str:
        """What follows FROM: the table's own rows, and no others'."""
        name = self.table(table.name)
        own = f"ONLY {name}" if table.only else name
        if table.rows_where is None:
            return own
        return f"(SELECT * FROM {own} WHERE {table.rows_where}) AS streamed"

    def compared(self, column: SourceColumn) -> str:
        """The SQL of one column's text for checksums in the database: the canonical text of
        ``changes.sql.spark.canonical.compared(form)``, and null where the stream has null for a
        value: zero and infinite dates, numbers that are none."""
        if column.form is None:
            return self.text(column)
        text = self.text(replace(column, form=compared_form(column.form)))
        lost = self.lost(column)
        return text if lost is None else f"CASE WHEN {lost} THEN NULL ELSE {text} END"

    def predicate(self, table: SourceTable, part: KeyRange) -> str:
        """The SQL of a range's condition."""
        bounds = ((part.low, ">", ">"), (part.high, "<", "<="))
        found = [self._beyond(table, key, *signs) for key, *signs in bounds if key is not None]
        return " AND ".join(found) or "1 = 1"

    def bound(self, table: SourceTable, low: Key | None, rows: int) -> str:
        """The SELECT of the key that so many rows lead to, counted behind ``low``; none if there
        are fewer."""
        keys = key_columns(table)
        order = ", ".join(self.quote(column.sql_name) for column in keys)
        return (
            f"SELECT {_listed(map(self.text, keys))} FROM {self.table_sql(table)}"
            f" WHERE {self.predicate(table, KeyRange(low))} ORDER BY {order}"
            f" LIMIT 1 OFFSET {rows - 1}"
        )

    def look_up(
        self, table: SourceTable, columns: Sequence[SourceColumn], keys: Sequence[Key]
    ) -> str:
        """The SELECT of some rows by their keys: the key's texts first, then the columns'."""
        texts = _listed([*map(self.text, key_columns(table)), *map(self.sent, columns)])
        return f"SELECT {texts} FROM {self.table_sql(table)} WHERE {self.matching(table, keys)}"

    def matching(self, table: SourceTable, keys: Sequence[Key]) -> str:
        """The SQL of the condition of some rows by their keys, of ``MOST_KEYS`` at most. It may
        follow ``query`` of all rows behind AND, in parentheses."""
        columns = key_columns(table)
        conditions = (
            " AND ".join(self._one(*pair, "=") for pair in zip(columns, key, strict=True))
            for key in keys
        )
        return " OR ".join(f"({one})" for one in conditions)

    def between(self, column: SourceColumn, first: str, end: str, below: str = "<") -> str:
        """The SQL of the condition that a column of dates or times is ``first`` at least and below
        ``end``, both canonical texts; ``below``: ``<=`` where ``end`` is in it. A null is not."""
        # Of the type with its digits, PostgreSQL would round a bound to these.
        plain = replace(column, type=_DIGITS.sub("", column.type))
        return f"{self._one(plain, first, '>=')} AND {self._one(plain, end, below)}"

    def _one(self, column: SourceColumn, text: str, sign: str) -> str:
        name, value = self.quote(column.sql_name), self.literal(column, text)
        return f"{name} {self.sign(column, sign)} {value}"

    def _beyond(self, table: SourceTable, key: Key, other: str, last: str) -> str:
        """The rows whose key is beyond ``key`` in one direction; ``last`` compares its last
        column."""
        columns = key_columns(table)
        pairs = list(zip(columns, key, strict=True))
        if len(pairs) == 1:
            return self._one(*pairs[0], last)
        if self.compares_rows and all(self.sign(column, last) == last for column in columns):
            names = ", ".join(self.quote(column.sql_name) for column in columns)
            return f"({names}) {last} ({', '.join(self.literal(*pair) for pair in pairs)})"
        # The first column's bound alone is what every optimizer reads a range of the index from.
        ways = []
        for place, pair in enumerate(pairs):
            sign = last if place == len(pairs) - 1 else other
            same = (self._one(*one, "=") for one in pairs[:place])
            ways.append(" AND ".join([*same, self._one(*pair, sign)]))
        return f"({self._one(*pairs[0], other + '=')} AND (({') OR ('.join(ways)})))"


def key_columns(table: SourceTable) -> list[SourceColumn]:
    """The columns of the key. Raises DatabaseRefused where it can't be walked."""
    if not table.keys:
        raise DatabaseRefused(f"{table.name} has no key: its rows can't be told apart")
    return [table.column(name) for name in table.keys]


def text_of(value: object) -> str | None:
    """The canonical text of what a column of ``Words.query`` has given."""
    if isinstance(value, bytes | memoryview):
        return bytes_text(bytes(value))
    return None if value is None else str(value)


def _listed(expressions: Iterable[str]) -> str:
    return ", ".join(f"{each} AS c{place}" for place, each in enumerate(expressions))
