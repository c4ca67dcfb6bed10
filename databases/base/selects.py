"""The SELECTs over a table's key: ranges, bounds, look-ups. Pure; a dialect has the words.

Bounds are literals in the text: the database alone compares them, in its own collation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from changes.model.model import TableName
from changes.sql.forms import bytes_text
from changes.sql.spark.canonical import compared as compared_form
from databases.base.errors import DatabaseRefused
from databases.base.port import Key, KeyRange, SourceColumn, SourceTable, Texts

MOST_KEYS = 500
"""Keys of one look-up: each is a condition in its text, which no server takes without end."""


class Dialect(Protocol):
    """The words of one kind of database."""

    compares_rows: bool
    """Whether ``(a, b) > (1, 2)`` is read from an index."""

    def quote(self, name: str) -> str:
        """A name, whatever is in it."""
        ...

    def table(self, name: TableName) -> str:
        """A table's qualified name."""
        ...

    def text(self, column: SourceColumn) -> str:
        """The column's canonical text. Raises DatabaseRefused for a column without a form."""
        ...

    def sent(self, column: SourceColumn) -> str:
        """What a read gets of it: the text, but bytes as they are where the form is HEX."""
        ...

    def lost(self, column: SourceColumn) -> str | None:
        """The condition of values that the stream has as null: dates of no calendar, numbers that
        are none. None where the type has no such values."""
        ...

    def sign(self, column: SourceColumn, sign: str) -> str:
        """The operator that compares the column as its index does."""
        ...

    def literal(self, column: SourceColumn, text: str) -> str:
        """The value of a canonical text, to be compared with the column."""
        ...


def query(
    words: Dialect, table: SourceTable, columns: Sequence[SourceColumn], part: KeyRange
) -> str:
    """``Database.query``."""
    return (
        f"SELECT {_listed(map(words.sent, columns))} FROM {rows_of(words, table)}"
        f" WHERE {predicate(words, table, part)}"
    )


def rows_of(words: Dialect, table: SourceTable) -> str:
    """What follows FROM: the table's own rows, and no others'."""
    name = words.table(table.name)
    own = f"ONLY {name}" if table.only else name
    if table.rows_where is None:
        return own
    return f"(SELECT * FROM {own} WHERE {table.rows_where}) AS streamed"


def compared(words: Dialect, column: SourceColumn) -> str:
    """``Database.compared``."""
    if column.form is None:
        return words.text(column)
    text, lost = words.text(replace(column, form=compared_form(column.form))), words.lost(column)
    return text if lost is None else f"CASE WHEN {lost} THEN NULL ELSE {text} END"


def predicate(words: Dialect, table: SourceTable, part: KeyRange) -> str:
    """``Database.predicate``."""
    if part.low is None and part.high is None:
        return "1 = 1"
    conditions = []
    if part.low is not None:
        conditions.append(_beyond(words, table, part.low))
    if part.high is not None:
        conditions.append(_up_to(words, table, part.high))
    return " AND ".join(conditions)


def bound(words: Dialect, table: SourceTable, low: Key | None, rows: int) -> str:
    """The SELECT of the key that so many rows lead to, counted behind ``low``; none if there are
    fewer."""
    keys = key_columns(table)
    order = ", ".join(words.quote(column.sql_name) for column in keys)
    return (
        f"SELECT {_listed(map(words.text, keys))} FROM {rows_of(words, table)}"
        f" WHERE {predicate(words, table, KeyRange(low))} ORDER BY {order}"
        f" LIMIT 1 OFFSET {rows - 1}"
    )


def look_up(
    words: Dialect, table: SourceTable, columns: Sequence[SourceColumn], keys: Sequence[Key]
) -> str:
    """The SELECT of some rows by their keys: the key's texts first, then the columns'."""
    texts = _listed([*map(words.text, key_columns(table)), *map(words.sent, columns)])
    return f"SELECT {texts} FROM {rows_of(words, table)} WHERE {matching(words, table, keys)}"


def matching(words: Dialect, table: SourceTable, keys: Sequence[Key]) -> str:
    """``Database.matching``."""
    wanted = key_columns(table)
    return " OR ".join(
        "("
        + " AND ".join(
            f"{words.quote(column.sql_name)} {words.sign(column, '=')}"
            f" {words.literal(column, text)}"
            for column, text in zip(wanted, key, strict=True)
        )
        + ")"
        for key in keys
    )


def key_columns(table: SourceTable) -> list[SourceColumn]:
    """The columns of the key. Raises DatabaseRefused where it can't be walked."""
    if not table.keys:
        raise DatabaseRefused(f"{table.name} has no key: its rows can't be told apart")
    return [table.column(name) for name in table.keys]


def batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """The keys in look-ups of a bounded size."""
    for start in range(0, len(keys), MOST_KEYS):
        yield keys[start : start + MOST_KEYS]


def _listed(expressions: Iterable[str]) -> str:
    return ", ".join(f"{each} AS c{place}" for place, each in enumerate(expressions))


def _beyond(words: Dialect, table: SourceTable, key: Key) -> str:
    return _compared(words, table, key, ">", ">")


def _up_to(words: Dialect, table: SourceTable, key: Key) -> str:
    return _compared(words, table, key, "<", "<=")


def _compared(words: Dialect, table: SourceTable, key: Key, other: str, last: str) -> str:
    """The rows whose key is beyond ``key`` in one direction; ``last`` compares its last column."""
    columns = key_columns(table)
    names = [words.quote(column.sql_name) for column in columns]
    values = [words.literal(c, text) for c, text in zip(columns, key, strict=True)]
    if len(names) == 1:
        return f"{names[0]} {words.sign(columns[0], last)} {values[0]}"
    if words.compares_rows and all(words.sign(column, last) == last for column in columns):
        return f"({', '.join(names)}) {last} ({', '.join(values)})"

    def one(place: int, sign: str) -> str:
        return f"{names[place]} {words.sign(columns[place], sign)} {values[place]}"

    # The first column's bound alone is what every optimizer reads a range of the index from.
    ways = []
    for place in range(len(names)):
        same = [one(i, "=") for i in range(place)]
        sign = last if place == len(names) - 1 else other
        ways.append(" AND ".join([*same, one(place, sign)]))
    return f"({one(0, other + '=')} AND (({') OR ('.join(ways)})))"


def rows(
    words: Dialect,
    table: SourceTable,
    columns: Sequence[SourceColumn],
    keys: Sequence[Key],
    ask: Callable[[str], list[tuple[object, ...]]],
) -> dict[Key, Texts]:
    """``Database.rows``."""
    found: dict[Key, Texts] = {}
    for some in batches(keys):
        for row in ask(look_up(words, table, columns, some)):
            texts = tuple(map(text_of, row))
            key = tuple(str(text) for text in texts[: len(table.keys)])
            found[key] = texts[len(table.keys) :]
    return found


def text_of(value: object) -> str | None:
    """The canonical text of what a column of ``Database.query`` has given."""
    if isinstance(value, bytes | memoryview):
        return bytes_text(bytes(value))
    return None if value is None else str(value)
