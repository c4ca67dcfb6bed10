"""Collects rows of the protobuf formats as lists of text, and cuts them into columns.

The cells of an event are one list, row after row, and a column is every n-th of them. There are no
structs, as for JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from msgspec import UNSET, Struct, UnsetType

from changes.formats.engine.assemble import (
    BLOCK_ROWS,
    Misfit,
    Pieces,
    RowSegment,
    Text,
    as_texts,
    assemble,
)
from changes.formats.engine.flat_rows import FlatRows, spans
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.lacking import carried_by_inserts
from changes.formats.engine.layout import Layout, Refused, other_key
from changes.model.model import BadRecord, Changes, Mode
from changes.sql.convert import Converter

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

    def __init__(self, layout: BlockLayout, fixed: bool, run: KeyRun) -> None:
        self.layout = layout
        self.run = run
        self.segments: list[RowSegment] = []
        self.count = 0
        """Row changes so far; one that changes a key makes two rows."""
        self._fixed = fixed
        self._learned: set[Shape] = set()
        """What the layout holds already."""
        self._names: tuple[str, ...] = ()
        """Of the latest rows' cells: a shape's, or all columns' where several shapes met."""
        self._cells: list[Cell] = []
        self._rows = 0
        self._segment_layout: BlockLayout | None = None

    def learn(self, shape: Shape) -> None:
        """Take in what rows that come now are like; raises Refused."""
        if shape in self._learned:
            return
        if len(set(shape.names)) < len(shape.names):
            raise Refused("two columns of one name")
        layout = self.layout
        if not self._fixed and shape.keys != layout.keys:
            if layout.keys is None:
                layout = layout.with_keys(shape.keys)
            elif set(shape.keys) != set(layout.keys):
                raise other_key(layout.keys, shape.keys)
        layout = layout.grown(shape.types, shape.names, b"")
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        if layout is not self.layout:
            self.flush()
            self._learned.clear()
        self.layout = layout
        self._learned.add(shape)

    def add(self, shape: Shape, cells: Sequence[Cell], op: str, record: int) -> None:
        """Add rows of one event; raises Refused."""
        self.learn(shape)
        self._take(shape, cells, op.encode() * (len(cells) // len(shape.names)), record)

    def add_columns(
        self, shape: Shape, texts: Sequence[Text], ops: bytes, records: Sequence[int]
    ) -> None:
        """Add rows that are columns already, each with its record; raises Refused."""
        self.learn(shape)
        self.flush()
        self._register(ops, records)
        self._add_block(shape.names, texts, len(ops))

    def add_flat(
        self,
        shape: Shape,
        texts: Sequence[Text],
        flat: FlatRows,
        moved: Sequence[int],
        start: int,
    ) -> Iterator[int]:
        """Add rows that were read at once, but for those of the messages ``moved``.

        Gives the place of each of these when it is its turn. ``start`` is the first message's.
        """
        for begin, end, alone in spans(flat.records, moved):
            if begin < end:
                part = [text.part(begin, end) for text in texts] if moved else texts
                records = [start + record for record in flat.records[begin:end]]
                self.add_columns(shape, part, flat.ops[begin:end], records)
            if alone is not None:
                yield start + alone

    def _take(self, shape: Shape, cells: Sequence[Cell], ops: bytes, record: int) -> None:
        self._register(ops, [record] * len(ops))
        if not self._rows:
            self._names = shape.names
        elif shape.names != self._names:
            # Minimal images come in many shapes: a block for each would have a row or two.
            every = tuple(self.layout.columns)
            self._cells = _placed(self._cells, self._names, every)
            cells = _placed(cells, shape.names, every)
            self._names = every
        self._cells += cells
        self._rows += len(ops)
        if self._rows >= BLOCK_ROWS:
            self.flush()

    def _register(self, ops: bytes, records: Sequence[int]) -> None:
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(RowSegment(self.layout.columns))
        segment = self.segments[-1]
        self.count += len(ops)
        segment.ops += ops
        segment.records += records

    def update(
        self,
        shape: Shape,
        cells: list[Cell],
        olds: Sequence[Sequence[Cell]],
        record: int,
        before: Callable[[int], Sequence[Cell]],
    ) -> None:
        """Add updated rows; ``olds`` has each row's old key, in the order of the layout's keys,
        and ``before`` gives all of an old row, in the order of ``shape``'s names.

        Where a key changed, a row before it ends the old one. A part of the key that the new row
        does not hold is what it was. ``shape`` holds all columns of the key and has been learned.
        """
        width, keys = len(shape.names), self.layout.keys or ()
        places = [shape.names.index(key) for key in keys]
        if all(
            cells[p::width] == list(column)
            for p, column in zip(places, zip(*olds, strict=True), strict=True)
        ):
            self._take(shape, cells, b"U" * len(olds), record)
            return
        for row, old in enumerate(olds):
            now = cells[row * width : (row + 1) * width]
            was = [now[p] if o is UNSET else o for p, o in zip(places, old, strict=True)]
            for place, value in zip(places, was, strict=True):
                if now[place] is UNSET:
                    now[place] = value
            if was == [now[place] for place in places]:
                self._take(shape, now, b"U", record)
                continue
            if not self._leaves(places, was, before(row), now):
                self._take(shape, now, b"U", record)
                continue
            ended: list[Cell] = [None] * width
            for place, value in zip(places, was, strict=True):
                ended[place] = value
            self._take(shape, ended, b"D", record)
            # Read back: the block may have been closed, and the segment is still the same one.
            self.segments[-1].moved.append(len(self.segments[-1].ops))
            self._take(shape, now, b"U", record)
            self.count -= 1

    def _leaves(
        self, places: Sequence[int], old: list[Cell], before: Sequence[Cell], now: Sequence[Cell]
    ) -> bool:
        """Whether the old key's row ends where this one moves away from it."""
        beside = [place for place in range(len(now)) if place not in places]
        was = [before[p] if p < len(before) else UNSET for p in beside]
        key, after = tuple([now[p] for p in places]), [now[p] for p in beside]
        return self.run.moves(self.count, tuple(old), was, key, after)

    def flush(self) -> None:
        """Turn the latest rows into columns."""
        if not self._rows:
            return
        names, width = self._names, len(self._names)
        texts = as_texts([self._cells[place::width] for place in range(width)])
        self._add_block(names, texts, self._rows)
        self._cells, self._rows = [], 0

    def _add_block(self, names: Sequence[str], texts: Sequence[Text], rows: int) -> None:
        block = dict(zip(names, texts, strict=True))
        for name in self.segments[-1].columns:
            if name not in block:
                block[name] = Text(pa.nulls(rows, pa.string()), pa.array([False] * rows))
        self.segments[-1].blocks.append(block)

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
        return Changes(
            table,
            layout.schema,
            mode,
            self.count,
            converter.nulled,
            carried_by_inserts(pieces),
            pieces.begins,
            pieces,
        )


def _placed(cells: Sequence[Cell], names: tuple[str, ...], every: tuple[str, ...]) -> list[Cell]:
    """Rows of some columns as rows of all; UNSET for the missing ones."""
    if names == every:
        return list(cells)
    width, where = len(names), {name: place for place, name in enumerate(names)}
    places = [where.get(name, width) for name in every]
    found: list[Cell] = []
    for start in range(0, len(cells), width):
        row = [*cells[start : start + width], UNSET]
        found += [row[place] for place in places]
    return found


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
