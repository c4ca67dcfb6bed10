"""Rows of the protobuf formats on their way to columns: lists of text, cut by column.

Their messages are no JSON, so no struct is made for them: an event's cells stand in one list, row
behind row, and each column is every n-th of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from msgspec import UNSET, Struct, UnsetType

from changes.assemble import BLOCK_ROWS, Misfit, Pieces, Segment, Text, as_texts, assemble
from changes.convert import Converter
from changes.formats.layout import Layout, Refused, Unfit
from changes.model import BadRecord, Changes, Mode

Cell = str | UnsetType | None
"""A value as text; None is null, UNSET is one that the row does not hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What rows are like that come alike: their columns in order, declared types, the key."""

    names: tuple[str, ...]
    types: Mapping[str, str]
    keys: tuple[str, ...]


class BlockLayout(Layout):
    """The layout of rows that are not read by msgspec."""

    def message_type(self) -> type[Struct]:
        return self.row


class RowBlocks:
    """One call's rows, in segments of one layout each."""

    def __init__(self, layout: BlockLayout, fixed: bool) -> None:
        self.layout = layout
        self.segments: list[Segment] = []
        self.count = 0
        """Row changes so far; one that changes a key makes two rows."""
        self._fixed = fixed
        self._shape: Shape | None = None
        self._cells: list[Cell] = []
        self._rows = 0
        self._segment_layout: BlockLayout | None = None

    def learn(self, shape: Shape) -> None:
        """Take in what rows that come now are like; raises Refused."""
        if shape is self._shape:
            return
        if len(set(shape.names)) < len(shape.names):
            raise Refused("two columns of one name")
        self.flush()
        layout = self.layout
        if not self._fixed and shape.keys != layout.keys:
            if layout.keys is None:
                layout = layout.with_keys(shape.keys)
            elif set(shape.keys) != set(layout.keys):
                raise Unfit(f"the key was {_list(layout.keys)} and is now {_list(shape.keys)}")
        layout = layout.grown(shape.types, shape.names, b"")
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        self.layout = layout
        self._shape = shape

    def add(self, shape: Shape, cells: Sequence[Cell], op: str, record: int) -> None:
        """Add rows of one event; raises Refused."""
        self.learn(shape)
        self._take(cells, op.encode() * (len(cells) // len(shape.names)), record)

    def _take(self, cells: Sequence[Cell], ops: bytes, record: int) -> None:
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(Segment(self.layout.columns))
        segment = self.segments[-1]
        self._cells += cells
        self._rows += len(ops)
        self.count += len(ops)
        segment.ops += ops
        segment.records += [record] * len(ops)
        if self._rows >= BLOCK_ROWS:
            self.flush()

    def update(
        self, shape: Shape, cells: list[Cell], olds: Sequence[Sequence[Cell]], record: int
    ) -> None:
        """Add updated rows; ``olds`` has each row's old key, in the order of the layout's keys.

        Where a key changed, a row before it ends the old one. A part of the key that the new row
        does not hold is what it was. ``shape`` holds all columns of the key and has been learned.
        """
        width, keys = len(shape.names), self.layout.keys or ()
        places = [shape.names.index(key) for key in keys]
        if all(
            cells[p::width] == list(column)
            for p, column in zip(places, zip(*olds, strict=True), strict=True)
        ):
            self._take(cells, b"U" * len(olds), record)
            return
        for row, old in enumerate(olds):
            now = cells[row * width : (row + 1) * width]
            was = [now[p] if o is UNSET else o for p, o in zip(places, old, strict=True)]
            for place, value in zip(places, was, strict=True):
                if now[place] is UNSET:
                    now[place] = value
            if was == [now[place] for place in places]:
                self._take(now, b"U", record)
                continue
            ended: list[Cell] = [None] * width
            for place, value in zip(places, was, strict=True):
                ended[place] = value
            self._take(ended, b"D", record)
            # Read back: the block may have been closed, and the segment is still the same one.
            self.segments[-1].moved.append(len(self.segments[-1].ops))
            self._take(now, b"U", record)
            self.count -= 1

    def flush(self) -> None:
        """Turn the latest rows into columns."""
        if self._shape is None or not self._rows:
            return
        names, width = self._shape.names, len(self._shape.names)
        texts = as_texts([self._cells[place::width] for place in range(width)])
        block = dict(zip(names, texts, strict=True))
        for name in self.segments[-1].columns:
            if name not in block:
                absent = pa.array([False] * self._rows)
                block[name] = Text(pa.nulls(self._rows, pa.string()), absent)
        self.segments[-1].blocks.append(block)
        self._cells, self._rows = [], 0

    def changes(
        self, converter: Converter, partition: int, offsets: Sequence[int]
    ) -> Changes | None:
        """Make what a decoder gives; raises BadRecord, whose reason lacks the table's name."""
        self.flush()
        if not self.segments:
            return None
        layout = self.layout
        pieces = Pieces(self.segments, layout.columns, layout.keys or (), self._fixed)
        try:
            table = assemble(pieces, converter, layout.declared, partition, offsets)
        except Misfit as misfit:
            raise BadRecord(misfit.record, str(misfit)) from misfit
        assert table is not None
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
        return Changes(table, layout.schema, mode, self.count, converter.nulled)


def with_keys(shape: Shape, cells: list[Cell], keys: Sequence[str]) -> tuple[Shape, list[Cell]]:
    """The same rows with places for those columns of the key that they do not hold."""
    missing = [key for key in keys if key not in shape.names]
    if not missing:
        return shape, cells
    width = len(shape.names)
    wider: list[Cell] = []
    for start in range(0, len(cells), width):
        wider += cells[start : start + width]
        wider += [UNSET] * len(missing)
    return Shape((*shape.names, *missing), shape.types, shape.keys), wider


def _list(keys: Sequence[str]) -> str:
    return f"({', '.join(keys)})" if keys else "none"
