"""Reads rows of a source's table into Arrow, through its one connection: where Spark does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from changes.model.model import ZeroDates
from changes.sql.forms import Form
from changes.sql.spark.arrow_texts import TextUnreadable, read
from changes.sql.spark.schema import arrow_type
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.fetching import fetch_rows
from databases.base.port import ALL_ROWS, KeyRange, SourceTable
from databases.streamed import StreamedColumn

Rows = list[tuple[object, ...]]

ROWS_AT_ONCE = 10_000
"""Of one table of Arrow. Fewer cost more each; more are more memory."""

BYTES_AT_ONCE = 16 << 20
"""The same, of long rows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The columns of a table that the stream has, in order, and how they are read. One thread's."""

    database: Database
    table: SourceTable
    columns: tuple[StreamedColumn, ...]
    zero_dates: ZeroDates

    def rows(self, part: KeyRange = ALL_ROWS, condition: str = "") -> Iterator[pa.Table]:
        """The rows of a range, by the source's names, as one statement sees them; of these the ones
        for which a condition holds. Memory is bounded. Raises DatabaseAway, DatabaseRefused."""
        sql = self.database.query(self.table, [one.column for one in self.columns], part)
        if condition:
            sql = f"{sql} AND ({condition})"
        coming = self.database.stream(sql, fetch_rows(self.table))
        for some in together(coming, ROWS_AT_ONCE, BYTES_AT_ONCE):
            yield self._table(some)

    def _table(self, rows: Rows) -> pa.Table:
        values = zip(*rows, strict=True)
        arrays = [self._array(one, list(of)) for one, of in zip(self.columns, values, strict=True)]
        return pa.table(arrays, [one.column.name for one in self.columns])

    def _array(self, one: StreamedColumn, values: list[object]) -> pa.Array:
        column, form = one.column, one.column.form
        assert form is not None
        zeros: ZeroDates = "error" if column.name in self.table.keys else self.zero_dates
        try:
            texts = pa.array(values, pa.binary() if form is Form.HEX else pa.string())
            return read(form, one.type, texts, zeros)
        except TextUnreadable as error:
            raise DatabaseRefused(f"{self.table.name}, column {column.name}: {error}") from error

    @property
    def empty(self) -> pa.Table:
        """No row."""
        fields = [pa.field(one.column.name, arrow_type(one.type)) for one in self.columns]
        return pa.schema(fields).empty_table()


def together(lists: Iterable[Rows], rows: int, size: int) -> Iterator[Rows]:
    """Lists of rows, joined until they have so many rows, or about so many bytes."""
    joined: Rows = []
    held = 0
    for some in lists:
        joined += some
        held += sum(len(v) for row in some for v in row if isinstance(v, str | bytes))
        if len(joined) >= rows or held >= size:
            yield joined
            joined, held = [], 0
    if joined:
        yield joined
