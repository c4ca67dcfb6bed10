"""Decodes the rows of one target out of Tencent DTS's messages, an event at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from changes.formats.engine.block_decoder import BlockDecodePass, BlockTableDecoder
from changes.formats.engine.flat_rows import BulkBackoff, Leftover, moved_records
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_blocks import Cell, RowBlocks, Shape, with_keys
from changes.formats.engine.row_images import TextRow
from changes.formats.tencent.flat import rows_of_many, texts_of
from changes.formats.tencent.message import read_columns, row_events
from changes.formats.tencent.values import Way, cells_of, cells_of_rows, declared, way_of
from changes.model.model import BadMessage, ColumnTypes, FormatOptions, Mode

LETTERS = {0: "I", 1: "U", 2: "D"}
_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}

UTC = "UTC"
"""TIMESTAMP is text with its zone; it is UTC when a converter sees it."""

_SHAPES_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an event."""

    shape: Shape
    ways: tuple[Way, ...]


def columns_of(columns: Sequence[Any]) -> Columns:
    """Raises Refused."""
    names = tuple([column.name for column in columns])
    if not names:
        raise Refused("an event of rows without columns")
    types = {c.name: declared(c.originalType) for c in columns if c.originalType}
    keys = tuple([column.name for column in columns if column.isKey])
    ways = tuple([way_of(column.originalType) for column in columns])
    return Columns(Shape(names, types, keys), ways)


def letter_of(event: Any) -> str:
    """Raises Refused."""
    op = LETTERS.get(event.dmlEventType)
    if op is None:
        raise Refused(f"an event of unknown type {event.dmlEventType}")
    return op


class TencentTableDecoder(BlockTableDecoder):
    """The ``TableDecoder`` of Tencent DTS."""

    def __init__(
        self,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        super().__init__(options, mode, keys, types)
        self._known: dict[tuple[Any, ...], Columns] = {}

    @property
    def _zone(self) -> str:
        return UTC

    def _decode_pass(self, blocks: RowBlocks) -> _DecodePass:
        return _DecodePass(blocks, self._backoff, self._known, self._options.time_zone)

    def _last_table(self, value: bytes) -> str:
        return last_table(value)


class _DecodePass(BlockDecodePass):
    """Reads one call's messages. ``zone`` is that of points in time which name none."""

    def __init__(
        self,
        blocks: RowBlocks,
        backoff: BulkBackoff,
        known: dict[tuple[Any, ...], Columns],
        zone: str,
    ) -> None:
        super().__init__(blocks, backoff)
        self._known = known
        self._zone = zone

    def _add_many(self, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        found = rows_of_many(values)
        if found is None:
            return None
        raw_columns, flat = found
        blocks = self._blocks
        try:
            columns = self._columns(raw_columns)
            blocks.learn(columns.shape)
        except (Refused, BadMessage):
            return None  # reading one by one finds the record
        moved = moved_records(flat, columns.shape.names, blocks.layout.keys or ())
        texts = None if moved is None else texts_of(flat, columns.ways, self._zone)
        if moved is None or texts is None:
            return None
        left = blocks.add_flat(columns.shape, texts, flat, moved, start)
        return ((place, [values[place - start]]) for place in left)

    def _add_message(self, value: bytes, place: int) -> None:
        self._about = ""
        for table, event in row_events(value):
            self._about = f"{table}: "
            if event.rows:
                self._add(event, letter_of(event), place)

    def _columns(self, raw_columns: tuple[bytes, ...]) -> Columns:
        found = self._known.get(raw_columns)
        if found is None:
            if len(self._known) >= _SHAPES_KEPT:
                self._known.clear()
            found = self._known[raw_columns] = columns_of(read_columns(raw_columns))
        return found

    def _add(self, event: Any, op: str, place: int) -> None:
        columns, blocks, zone = self._columns(tuple(event.columns)), self._blocks, self._zone
        shape, ways = columns.shape, columns.ways
        blocks.learn(shape)
        if op != "U":
            images = [row.oldColumns if op == "D" else row.newColumns for row in event.rows]
            blocks.add(shape, cells_of_rows(images, shape.names, ways, zone), op, place)
            return
        pairs = [_update(row, columns, zone) for row in event.rows]
        cells = list(itertools.chain.from_iterable(now for now, _ in pairs))
        keys = blocks.layout.keys
        if not keys:
            blocks.add(shape, cells, op, place)
            return
        # Key columns that the columns do not name are in neither image.
        wider, cells = with_keys(shape, cells, keys)
        blocks.learn(wider)
        beyond: list[Cell] = [UNSET] * (len(wider.names) - len(shape.names))
        places = [wider.names.index(key) for key in keys]
        olds = [[(was + beyond)[p] for p in places] for _, was in pairs]
        blocks.update(wider, cells, olds, place, lambda row: pairs[row][1])


def _update(row: Any, columns: Columns, zone: str) -> tuple[list[Cell], list[Cell]]:
    """An updated row and its old one; what only the old one holds did not change."""
    names, ways = columns.shape.names, columns.ways
    now = cells_of(row.newColumns, names, ways, zone)
    if not row.oldColumns:
        return now, [UNSET] * len(names)
    was = cells_of(row.oldColumns, names, ways, zone)
    if UNSET in now:
        now = [w if n is UNSET else n for n, w in zip(now, was, strict=True)]
    return now, was


def last_table(packed: bytes) -> str:
    """The table of a message's last rows, for an error."""
    tables = [table for table, _ in row_events(packed)]
    return tables[-1] if tables else "a message without rows"


def text_rows(event: Any, zone: str) -> Iterator[TextRow]:
    """The rows of an event, one by one, for people; raises Refused."""
    op, columns = letter_of(event), columns_of(event.columns)
    shape = columns.shape
    for row in event.rows:
        if op == "U":
            now, was = _update(row, columns, zone)
            yield TextRow(op, _image(shape, now), _image(shape, was), shape.keys, shape.types)
            continue
        image = row.oldColumns if op == "D" else row.newColumns
        cells = cells_of(image, shape.names, columns.ways, zone)
        yield TextRow(op, _image(shape, cells), None, shape.keys, shape.types)


def _image(shape: Shape, cells: Sequence[Cell]) -> dict[str, str | None]:
    pairs = zip(shape.names, cells, strict=True)
    return {name: cell for name, cell in pairs if not isinstance(cell, type(UNSET))}
