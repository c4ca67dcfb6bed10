"""Reads the rows in Tencent DTS's messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, UnsetType

from changes.formats.engine.bulk_rows import AtOnce, BulkRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.layout import Refused
from changes.formats.tencent.flat import rows_of_many, texts_of
from changes.formats.tencent.message import read_columns, row_events
from changes.formats.tencent.values import Cell, TextRule, cells_of, declared, way_of

LETTERS = {0: "I", 1: "U", 2: "D"}
_SHAPES_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an event."""

    shape: RowShape
    ways: tuple[TextRule, ...]


def columns_of(columns: Sequence[Any]) -> Columns:
    """Raises Refused."""
    names = tuple([column.name for column in columns])
    if not names:
        raise Refused("an event of rows without columns")
    types = {c.name: declared(c.originalType) for c in columns if c.originalType}
    keys = tuple([column.name for column in columns if column.isKey])
    ways = tuple([way_of(column.originalType) for column in columns])
    return Columns(RowShape(names, types, keys), ways)


def letter_of(event: Any) -> str:
    """Raises Refused."""
    op = LETTERS.get(event.dmlEventType)
    if op is None:
        raise Refused(f"an event of unknown type {event.dmlEventType}")
    return op


class TencentRows(BulkRows):
    """The ``Rows`` of Tencent DTS. ``local`` is the zone of points in time which name none."""

    zone = "UTC"
    """TIMESTAMP is text with its zone; it is UTC when a converter sees it."""
    shows_key = False
    moves_freely = True
    completes = False
    """An update's new image is completed here, in every mode."""

    def __init__(self, local: str) -> None:
        super().__init__()
        self._known: dict[tuple[Any, ...], Columns] = {}
        self._local = local

    def at_once(self, values: Sequence[bytes]) -> AtOnce | None:
        found = rows_of_many(values)
        if found is None:
            return None
        raw_columns, flat = found
        columns = self._columns(raw_columns)
        return columns.shape, flat, lambda: texts_of(flat, columns.ways, self._local)

    def images(self, value: bytes) -> Iterator[RowImage]:
        self.reading = None
        for table, event in row_events(value):
            self.reading = table
            if event.rows:
                op = letter_of(event)
                yield from self.images_of(event, op, self._columns(tuple(event.columns)))

    def images_of(self, event: Any, op: str, columns: Columns) -> Iterator[RowImage]:
        """The rows of an event; raises Refused."""
        shape, ways = columns.shape, columns.ways
        for row in event.rows:
            image = row.oldColumns if op == "D" else row.newColumns
            now = cells_of(image, shape.names, ways, self._local)
            was = None
            if op == "U" and row.oldColumns:
                old = cells_of(row.oldColumns, shape.names, ways, self._local)
                was = _image(shape, old) or None
                # What only the old row holds did not change.
                if UNSET in now:
                    now = [o if n is UNSET else n for n, o in zip(now, old, strict=True)]
            yield RowImage(op, _image(shape, now), was, shape)

    def _columns(self, raw_columns: tuple[bytes, ...]) -> Columns:
        found = self._known.get(raw_columns)
        if found is None:
            if len(self._known) >= _SHAPES_KEPT:
                self._known.clear()
            found = self._known[raw_columns] = columns_of(read_columns(raw_columns))
        return found

    def last_table(self, value: bytes) -> str:
        tables = [table for table, _ in row_events(value)]
        return tables[-1] if tables else "a message without rows"


def _image(shape: RowShape, cells: Sequence[Cell]) -> dict[str, str | None]:
    pairs = zip(shape.names, cells, strict=True)
    if UNSET not in cells:
        return dict(pairs)  # type: ignore[arg-type]
    return {name: cell for name, cell in pairs if not isinstance(cell, UnsetType)}
