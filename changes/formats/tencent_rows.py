"""Decodes the rows of one target out of Tencent DTS's messages, an event at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from changes.convert import Converter
from changes.declared import Declared
from changes.formats.flat_rows import Leftover, Trying, moved_records
from changes.formats.key_runs import KeyRun
from changes.formats.layout import Refused, Unfit
from changes.formats.row_blocks import BlockLayout, Cell, RowBlocks, Shape, with_keys
from changes.formats.row_images import TextRow
from changes.formats.tencent_flat import rows_of_many, texts_of
from changes.formats.tencent_message import read_columns, row_events
from changes.formats.tencent_values import Way, cells_of, cells_of_rows, declared, way_of
from changes.model import (
    BadMessage,
    BadRecord,
    Changes,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableSchema,
)

LETTERS = {0: "I", 1: "U", 2: "D"}
_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}

UTC = "UTC"
"""TIMESTAMP is text with its zone; it is UTC when a converter sees it."""

_SHAPES_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Columns:
    """What an event says of its columns."""

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


class TencentTableDecoder:
    """The ``TableDecoder`` of Tencent DTS.

    A call that raises leaves what is known of the columns as it was, so the records before the
    bad one can be decoded again without it.
    """

    def __init__(
        self,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        self._options = options
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = BlockLayout({}, keys, {}, given=Declared.of(types))
        self._known: dict[tuple[Any, ...], Columns] = {}
        self._run = KeyRun()
        self._seen = False
        self._trying = Trying()

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return None

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        blocks = RowBlocks(self._layout, self._fixed, self._run.begun(partition, offsets))
        reading = _Reading(blocks, self._known, self._options.time_zone, self._trying)
        bad = reading.add_all(values)
        converter = Converter(UTC, self._options.zero_dates)
        try:
            changes = blocks.changes(converter, partition, offsets)
        except BadRecord as misfit:
            table = last_table(values[misfit.index])
            raise BadRecord(misfit.index, f"{table}: {misfit.reason}") from misfit
        if bad is not None:
            raise bad
        if changes is not None:
            self._layout, self._seen = blocks.layout, True
            self._run = blocks.run.ended(blocks.count)
        return changes


class _Reading:
    """One call's way through its messages."""

    def __init__(
        self,
        blocks: RowBlocks,
        known: dict[tuple[Any, ...], Columns],
        zone: str,
        trying: Trying,
    ) -> None:
        self._about = ""
        self._blocks = blocks
        self._trying = trying
        self._known = known
        self._zone = zone

    def add_all(self, values: Sequence[bytes]) -> BadRecord | None:
        """Take messages in, up to the first that can't be read: gives what is wrong with it."""
        for start, some in self._trying.left_over(values, self._add_many):
            for place, value in enumerate(some, start):
                try:
                    self._add_message(value, place)
                except (Refused, BadMessage) as refused:
                    unfit = isinstance(refused, Unfit)
                    return BadRecord(place, f"{self._about}{refused}", of_table=unfit)
        return None

    def _add_many(self, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        """Take messages in at once where all of their rows are alike, else nothing of them."""
        found = rows_of_many(values)
        if found is None:
            return None
        told, flat = found
        blocks = self._blocks
        try:
            columns = self._columns(told)
            blocks.learn(columns.shape)
        except (Refused, BadMessage):
            return None  # read one by one they tell at which record
        moved = moved_records(flat, columns.shape.names, blocks.layout.keys or ())
        texts = None if moved is None else texts_of(flat, columns.ways, self._zone)
        if moved is None or texts is None:
            return None
        left = blocks.add_flat(columns.shape, texts, flat, moved, start)
        return ((place, [values[place - start]]) for place in left)

    def _add_message(self, packed: bytes, place: int) -> None:
        """Take a message in; raises Refused, BadMessage."""
        self._about = ""
        for table, event in row_events(packed):
            self._about = f"{table}: "
            if event.rows:
                self._add(event, letter_of(event), place)

    def _columns(self, told: tuple[bytes, ...]) -> Columns:
        found = self._known.get(told)
        if found is None:
            if len(self._known) >= _SHAPES_KEPT:
                self._known.clear()
            found = self._known[told] = columns_of(read_columns(told))
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
        # What the columns do not name of a key, neither image tells.
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
