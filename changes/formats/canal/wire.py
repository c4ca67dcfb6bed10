"""Reads the rows in Canal's protobuf packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from changes.formats.canal.flat import first_of, rows_of_many, texts_of
from changes.formats.canal.message import type_word
from changes.formats.canal.packet import DELETE, INSERT, UPDATE, rows_of, table_of
from changes.formats.engine.bulk_rows import AtOnce, BulkRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.layout import Refused
from changes.model.model import TableName
from changes.sql.mysql.tokens import on_one_line

_SQL_SHOWN = 80
"""Characters of a statement that an error quotes."""

LETTERS = {INSERT: "I", UPDATE: "U", DELETE: "D"}

_SHAPES_KEPT = 1_000
"""Shapes of rows in the cache; minimal images of a wide table have many."""


class CanalWireRows(BulkRows):
    """The ``Rows`` of Canal protobuf."""

    shows_key = False
    moves_freely = True

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[tuple[Any, ...], RowShape] = {}

    def at_once(self, values: Sequence[bytes]) -> AtOnce | None:
        flat = rows_of_many(values)
        first = None if flat is None else first_of(flat)
        if flat is None or first is None:
            return None
        return self._shape(first, ()), flat, lambda: texts_of(flat, first)

    def images(self, value: bytes) -> Iterator[RowImage]:
        self.reading = None
        for entry, change in rows_of(value):
            self.reading = table_of(entry)
            yield from self.images_of(change, letter_of(change, entry))

    def images_of(self, change: Any, op: str) -> Iterator[RowImage]:
        """The rows of a RowChange; raises Refused."""
        check_rows(change)
        if not all(row.beforeColumns if op == "D" else row.afterColumns for row in change.rowDatas):
            raise Refused(f"a row of {_OPS[op]} without columns")
        for row in change.rowDatas:
            columns = row.beforeColumns if op == "D" else row.afterColumns
            now = _cells(columns)
            if op != "U" or not row.beforeColumns:
                yield RowImage(op, now, None, self._shape(columns, ()))
                continue
            # A minimal image has just the columns that changed.
            left_out = [column for column in row.beforeColumns if column.name not in now]
            yield RowImage(op, now, _cells(row.beforeColumns), self._shape(columns, left_out))

    def _shape(self, columns: Sequence[Any], left_out: Sequence[Any]) -> RowShape:
        """``left_out`` are the columns that only the old row holds: those of the key count."""
        signature = (_likeness(columns), _likeness(left_out))
        shape = self._shapes.get(signature)
        if shape is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            keys = [column for column in left_out if column.isKey]
            shape = _shape_of((*columns, *keys))
            if left_out:
                shape = replace(shape, whole=_shape_of((*columns, *left_out)))
            self._shapes[signature] = shape
        return shape

    def last_table(self, value: bytes) -> TableName | str:
        tables = [table_of(entry) for entry, _ in rows_of(value)]
        return tables[-1] if tables else "a packet without rows"


def _cells(columns: Sequence[Any]) -> dict[str, str | None]:
    return {column.name: None if column.isNull else column.value for column in columns}


def _likeness(columns: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([(c.name, c.mysqlType, c.sqlType, c.isKey) for c in columns])


def _names(columns: Sequence[Any]) -> tuple[str, ...]:
    return tuple([column.name for column in columns])


def _shape_of(columns: Sequence[Any]) -> RowShape:
    words = {column.name: type_word(column.mysqlType, column.sqlType) for column in columns}
    types = {name: word for name, word in words.items() if word}
    keys = tuple(dict.fromkeys(column.name for column in columns if column.isKey))
    return RowShape(_names(columns), types, keys)


_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}


def check_rows(change: Any) -> None:
    """Refuse a change without rows: a binlog in statement format."""
    if not change.rowDatas and change.sql:
        sql = on_one_line(change.sql)[:_SQL_SHOWN]
        raise Refused(f"a statement without rows (the source's binlog_format must be ROW): {sql}")


def letter_of(change: Any, entry: Any) -> str:
    """The letter of the rows' change; raises Refused."""
    if change.isDdl:
        raise Refused("a statement (isDdl) in an entry of rows")
    event = change.eventType or entry.header.eventType or UPDATE
    op = LETTERS.get(event)
    if op is None:
        raise Refused(f"a RowChange of event type {event} in an entry of rows")
    return op
