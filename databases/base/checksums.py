"""Checksums over canonical texts, in the words of databases: the same numbers as Spark's
(``changes.sql.spark.checksums``, which has the rules). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from changes.sql.spark.checksums import HASH_DIGITS, Interval, TextColumn
from databases.base.port import KeyRange, SourceTable
from databases.base.selects import Words


class Checksums:
    """The SELECTs of one table's checksums."""

    def __init__(
        self,
        words: Words,
        table: SourceTable,
        columns: Sequence[TextColumn],
        keys: Sequence[TextColumn],
        unhashed: int = 0,
    ) -> None:
        """``columns`` and ``keys`` as ``Words.compared`` gives them. ``unhashed``: what a row
        adds that has no hash; two sides that both have such rows must not add the same."""
        self._words = words
        self._table = table
        self._from = words.table_sql(table)
        self._columns = tuple(columns)
        self._keys = tuple(keys)
        self._unhashed = unhashed

    def within(self, interval: Interval) -> str:
        """The condition of an interval of the key's first column."""
        low = None if interval.low is None else (str(interval.low),)
        high = None if interval.high is None else (str(interval.high),)
        first = replace(self._table, keys=self._table.keys[:1])
        return self._words.predicate(first, KeyRange(low, high))

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
