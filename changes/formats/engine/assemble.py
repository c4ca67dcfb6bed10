"""Assembles decoded rows, still text, into one Arrow table, a column at a time."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Struct
from msgspec.structs import astuple

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP, POSITION
from changes.model.positions import with_ends
from changes.model.types import SourceType
from changes.sql.convert import ValueMisfit


class Misfit(Exception):
    """A value can't be converted: the place of its record, and why."""

    def __init__(self, record: int, reason: str) -> None:
        super().__init__(reason)
        self.record = record


class ColumnConverter(Protocol):
    """Converts columns of text to Arrow's, as one format writes its values.

    ``nulled`` counts the values that became null because the lake can't hold them.
    """

    nulled: int

    def column(
        self, text: pa.Array, kind: SourceType, declared: str | None, *, key: bool
    ) -> pa.Array:
        """Raises ValueMisfit for the first value that does not fit."""
        ...


BLOCK_ROWS = 512
"""Rows that are read, then turned into columns, at once. Fewer: the calls cost more than the cells
(32: 1.4 times slower; 256: a tenth). More: the rows have left the processor's cache when their
columns are gathered (50,000 at once: 3 times slower)."""


class Text(NamedTuple):
    """A column's values as text, and where they were carried (None: everywhere)."""

    values: pa.Array
    carried: pa.Array | None

    def part(self, start: int, end: int) -> Text:
        """Some of the rows, without a copy."""
        carried = None if self.carried is None else self.carried[start:end]
        return Text(self.values[start:end], carried)


def as_texts(columns: Sequence[Sequence[object]]) -> list[Text]:
    """Several columns of one length, slices of one array: a call costs as much as 100 cells."""
    count = len(columns[0])
    try:
        cells = pa.array(list(itertools.chain.from_iterable(columns)), pa.string())
    except pa.ArrowTypeError:
        return [_as_text(values) for values in columns]
    return [Text(cells.slice(place * count, count), None) for place in range(len(columns))]


def _as_text(values: Sequence[object]) -> Text:
    """One column's values; msgspec's UNSET is a value that was not carried."""
    try:
        return Text(pa.array(values, pa.string()), None)
    except pa.ArrowTypeError:
        carried = pa.array([value is not UNSET for value in values])
        return Text(pa.array([None if v is UNSET else v for v in values], pa.string()), carried)


def texts_of(rows: Sequence[Struct]) -> list[Text]:
    """Rows of text cells as columns."""
    return as_texts(list(zip(*map(astuple, rows), strict=True)))


@dataclass(slots=True)
class RowSegment:
    """Neighbouring rows of one layout. ``columns`` are those of the rows' struct, in its order.

    By row, ``ops`` has the letter of the change (I, U, D) and ``records`` the place of its record.
    ``moved`` are the places of rows whose old key is deleted by the row before them. ``rows``
    holds only the latest rows; earlier ones are columns already, in ``blocks``.
    """

    columns: Mapping[str, SourceType]
    texts: Callable[[Sequence[Struct]], list[Text]] = texts_of
    """Turns rows into columns; raises nothing."""
    rows: list[Struct] = field(default_factory=list)
    ops: bytearray = field(default_factory=bytearray)
    records: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    blocks: list[dict[str, Text]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= BLOCK_ROWS

    def close_block(self) -> None:
        """Turn the latest rows into columns."""
        if self.rows:
            self.blocks.append(dict(zip(self.columns, self.texts(self.rows), strict=True)))
            self.rows.clear()

    def column(self, name: str) -> list[Text]:
        """A column's parts; a column that the segment does not have was not carried.

        Only of a segment that has rows, after ``close_block``.
        """
        if name not in self.columns:
            count = len(self.ops)
            return [Text(pa.nulls(count, pa.string()), pa.array([False] * count))]
        return [block[name] for block in self.blocks]

    def add(self, row: Struct, op: str, record: int) -> None:
        self.rows.append(row)
        self.ops += op.encode()
        self.records.append(record)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The parts of one table. No keys: a changelog."""

    segments: Sequence[RowSegment]
    columns: Mapping[str, SourceType]
    keys: tuple[str, ...]
    null_keys: bool
    """Whether a key may be null: only one that the configuration names."""
    positions: Mapping[int, str] | None = None
    """The source position of each record, where the format has any."""
    times: Sequence[tuple[int, Sequence[object]]] = ()
    """What stretches of records say of the source's time, each behind the place of its first:
    where all are numbers, those of ``Format.source_ms``. That is to be asked for any other record.
    """

    @property
    def ops(self) -> bytes:
        return b"".join(part.ops for part in self.segments)

    @property
    def begins(self) -> str:
        """The letter of the first row; empty where there is none."""
        return next((chr(part.ops[0]) for part in self.segments if part.ops), "")

    @property
    def moved(self) -> list[int]:
        starts = itertools.accumulate((len(part.ops) for part in self.segments), initial=0)
        pairs = zip(starts, self.segments, strict=False)
        return [start + place for start, part in pairs for place in part.moved]

    @property
    def records(self) -> list[int]:
        return list(itertools.chain.from_iterable(part.records for part in self.segments))


def assemble(
    pieces: Pieces,
    converter: ColumnConverter,
    declared: Mapping[str, str],
    partition: int,
    offsets: Sequence[int],
) -> pa.Table | None:
    """Make the table that ``Changes`` describes, None of no row.

    Raises Misfit for the first record that holds a value which does not fit.
    """
    for segment in pieces.segments:
        segment.close_block()
    ops, records = pieces.ops, pieces.records
    if not ops:
        return None
    if pieces.keys:
        return _Columns(pieces, converter, declared, ops, records).upserts()
    table = _Columns(pieces, converter, declared, ops, records).changelog()
    marks = (
        ("_op", letters(ops)),
        ("_partition", pa.repeat(pa.scalar(partition, pa.int32()), len(ops))),
        ("_offset", pa.array(list(map(offsets.__getitem__, records)), pa.int64())),
        ("_index", pa.array(_indexes(records), pa.int32())),
    )
    for place, (name, values) in enumerate(marks):
        table = table.add_column(place, name, values)
    return table


def _indexes(records: Sequence[int]) -> list[int]:
    """Count the rows of each record from 0; those of one stand together."""
    return list(itertools.chain.from_iterable(map(range, Counter(records).values())))


def letters(ops: bytes) -> pa.Array:
    """An array of texts of one letter each, made from its two buffers."""
    offsets = array("i", range(len(ops) + 1))
    return pa.Array.from_buffers(
        pa.string(), len(ops), [None, pa.py_buffer(offsets), pa.py_buffer(ops)]
    )


class _Columns:
    """Converts the columns one after another; keeps the earliest misfit of all of them."""

    def __init__(
        self,
        pieces: Pieces,
        converter: ColumnConverter,
        declared: Mapping[str, str],
        ops: bytes,
        records: list[int],
    ) -> None:
        self._pieces = pieces
        self._converter = converter
        self._declared = declared
        self._ops = ops
        self._records = records
        self._good = len(ops)
        self._reason = ""

    def changelog(self) -> pa.Table:
        columns = {}
        for name, kind in self._pieces.columns.items():
            text, _ = self._text(name)
            columns[name] = self._typed(name, text, kind)
        self._raise()
        return pa.table(columns)

    def upserts(self) -> pa.Table:
        """A row that deletes a key has only the key; its other columns are null, and carried."""
        marks = letters(self._ops.replace(b"I", b"U"))
        gone = pc.equal(marks, "D") if b"D" in self._ops else None
        columns: dict[str, pa.Array] = {OP: marks}
        flags: dict[str, pa.Array] = {}
        for name, kind in self._pieces.columns.items():
            text, carried = self._text(name)
            if name in self._pieces.keys:
                self._check_key(name, text, carried)
            else:
                if gone is not None:
                    text = pc.if_else(gone, pa.scalar(None, pa.string()), text)
                    carried = None if carried is None else pc.or_(carried, gone)
                if carried is not None and not pc.all(carried).as_py():
                    flags[HAS_PREFIX + name] = carried
            columns[name] = self._typed(name, text, kind)
        self._raise()
        return pa.table(columns | flags | self._positions(marks) | self._origins(columns))

    def _positions(self, marks: pa.Array) -> dict[str, pa.Array]:
        given = self._pieces.positions
        if given is None:
            return {}
        texts = pa.array(list(map(given.__getitem__, self._records)), pa.string())
        return {POSITION: with_ends(texts, marks)}

    def _origins(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """The old key of each row that moved: that of the row before it."""
        moved = self._pieces.moved
        if not moved:
            return {}
        ended: list[int | None] = [None] * len(self._ops)
        for place in moved:
            ended[place] = place - 1
        places = pa.array(ended, pa.int64())
        keys = {FROM_PREFIX + key: columns[key].take(places) for key in self._pieces.keys}
        return {FROM: places} | keys

    def _text(self, name: str) -> Text:
        segments = (segment for segment in self._pieces.segments if segment.ops)
        return _joined([part for segment in segments for part in segment.column(name)])

    def _check_key(self, name: str, text: pa.Array, carried: pa.Array | None) -> None:
        if carried is not None:
            missing = pc.index(carried, False).as_py()
            if missing >= 0:
                self._misfit(missing, f"key column {name} is missing")
        if text.null_count and not self._pieces.null_keys:
            null = pc.index(pc.is_null(text), True).as_py()
            self._misfit(null, f"key column {name} is null")

    def _typed(self, name: str, text: pa.Array, kind: SourceType) -> pa.Array:
        """Convert a column, each stretch of rows by the type that it came with."""
        stretches = self._stretches(name, kind)
        if len(stretches) == 1:
            return self._converted(name, text, stretches[0][1], 0)
        arrays, start = [], 0
        for length, as_read in stretches:
            part = text.slice(start, length)
            arrays.append(self._converted(name, part, as_read, start))
            start += length
        return pa.concat_arrays(arrays)

    def _stretches(self, name: str, kind: SourceType) -> list[tuple[int, SourceType]]:
        """Lengths and types, neighbours of one type together, all of them as ``kind``'s values."""
        found: list[tuple[int, SourceType]] = []
        for segment in self._pieces.segments:
            if not segment.ops:
                continue
            own = replace(segment.columns.get(name, kind), arrow=kind.arrow)
            if found and found[-1][1] == own:
                found[-1] = (found[-1][0] + len(segment.ops), own)
            else:
                found.append((len(segment.ops), own))
        return found

    def _converted(self, name: str, text: pa.Array, kind: SourceType, start: int) -> pa.Array:
        """Values after a misfit may not fit either: the call fails at the first one anyway."""
        key, declared = name in self._pieces.keys, self._declared.get(name)
        try:
            return self._converter.column(text, kind, declared, key=key)
        except ValueMisfit as misfit:
            self._misfit(start + misfit.row, f"{name}: {misfit}")
            return pa.nulls(len(text), kind.arrow)

    def _misfit(self, row: int, reason: str) -> None:
        if row < self._good:
            self._good, self._reason = row, reason

    def _raise(self) -> None:
        if self._reason:
            raise Misfit(self._records[self._good], self._reason)


def _joined(parts: Sequence[Text]) -> Text:
    """Copies even a single part: a block's columns share memory, which would all be kept."""
    values = pa.concat_arrays([part.values for part in parts])
    if all(part.carried is None for part in parts):
        return Text(values, None)
    everywhere = [
        pa.array([True] * len(part.values)) if part.carried is None else part.carried
        for part in parts
    ]
    return Text(values, pa.concat_arrays(everywhere))
