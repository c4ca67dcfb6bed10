"""Checksums over canonical texts, in the words of databases: the same numbers as Spark's
(``changes.sql.spark.checksums``, which has the rules). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from changes.sql.spark.checksums import HASH_DIGITS, Interval, TextColumn
from databases.base.database import Database
from databases.base.port import KeyRange, SourceTable
from databases.base.url import Kind


class HashWords(Protocol):
    """What differs between databases."""

    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        """A row's hash in hexadecimal digits."""
        ...

    def number(self, digits: str, other: int) -> str:
        """The number of 16 digits, which may be signed: sums are compared modulo 2^64. Where there
        are none, another one."""
        ...


class MySqlHashes:
    """MySQL and MariaDB. A text above ``max_allowed_packet`` has no hash there, but null."""

    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        """See ``HashWords``."""
        return f"SHA2(CONCAT({', '.join(map(self._field, columns))}), 256)"

    def number(self, digits: str, other: int) -> str:
        """See ``HashWords``."""
        # Of two signs the larger numbers might be lost.
        return f"CAST(COALESCE(CONV({digits}, 16, 10), '{other}') AS UNSIGNED)"

    def _field(self, column: TextColumn) -> str:
        text, free = column
        whole = f"CONCAT(CHAR_LENGTH({text}), ':', {text})" if free else f"CONCAT({text}, ',')"
        return f"COALESCE({whole}, 'n,')"


class PostgreSqlHashes:
    """PostgreSQL 11 and later."""

    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        """See ``HashWords``."""
        joined = " || ".join(map(self._field, columns))
        return f"encode(sha256(convert_to({joined}, 'UTF8')), 'hex')"

    def number(self, digits: str, other: int) -> str:
        """See ``HashWords``."""
        return f"COALESCE(('x' || {digits})::bit(64)::bigint, {other})"

    def _field(self, column: TextColumn) -> str:
        text, free = column
        whole = f"char_length({text})::text || ':' || ({text})" if free else f"({text}) || ','"
        return f"coalesce({whole}, 'n,')"


WORDS: dict[Kind, HashWords] = {"mysql": MySqlHashes(), "postgresql": PostgreSqlHashes()}


class Checksums:
    """The SELECTs of one table's checksums."""

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        columns: Sequence[TextColumn],
        keys: Sequence[TextColumn],
        unhashed: int = 0,
    ) -> None:
        """``columns`` and ``keys`` as ``Database.compared`` gives them. ``unhashed``: what a row
        adds that has no hash; two sides that both have such rows must not add the same."""
        self._database = database
        self._words = WORDS[database.kind]
        self._table = table
        self._from = database.table_sql(table)
        self._columns = tuple(columns)
        self._keys = tuple(keys)
        self._unhashed = unhashed

    def within(self, interval: Interval) -> str:
        """The condition of an interval of the key's first column."""
        low = None if interval.low is None else (str(interval.low),)
        high = None if interval.high is None else (str(interval.high),)
        first = replace(self._table, keys=self._table.keys[:1])
        return self._database.predicate(first, KeyRange(low, high))

    def sums(self, condition: str, digits: int) -> str:
        """Digits of the key's hash, rows and the sum of their hashes, for each such digits."""
        hashed = f"LEFT({self._words.row_hash(self._columns)}, {HASH_DIGITS})"
        number = self._words.number(hashed, self._unhashed)
        return (
            f"SELECT {self._prefix(digits)} AS p, COUNT(*), SUM({number})"
            f" FROM {self._from} WHERE {condition} GROUP BY 1"
        )

    def hashes(self, condition: str, digits: int, prefixes: Collection[str]) -> str:
        """The keys' texts and the hash of each row under some digits of its key's hash."""
        names = ", ".join(f"{column.text} AS k{at}" for at, column in enumerate(self._keys))
        hashed = f"LEFT({self._words.row_hash(self._columns)}, {HASH_DIGITS})"
        sql = f"SELECT {names}, {hashed} AS h FROM {self._from} WHERE {condition}"
        if not digits:
            return sql
        wanted = ", ".join(f"'{prefix}'" for prefix in sorted(prefixes))
        return f"{sql} AND {self._prefix(digits)} IN ({wanted})"

    def _prefix(self, digits: int) -> str:
        return f"LEFT({self._words.row_hash(self._keys)}, {digits})" if digits else "''"
