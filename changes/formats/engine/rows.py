"""Rows of any format on their way to columns of text: how records hold them, and one call's pass.

A format says how its records hold rows (``Rows``): one record after another as images, and for
speed many at once as a block. The layout of the columns, the key, keys that change and the order
of rows are the engine's (``Pass``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from msgspec import Struct

from changes.formats.engine.assemble import ColumnConverter, RowSegment, Text
from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.flat_rows import FlatRows, spans
from changes.formats.engine.images import RowShape
from changes.formats.engine.key_runs import MOVES_ALONE, KeyRun, OfKeys, run_key
from changes.formats.engine.layout import Layout, Refused, RowLayout, other_key
from changes.model.model import BadMessage, ColumnTypes, FormatOptions
from changes.sql.convert import Converter


class Rows(ABC):
    """How the records of one target hold rows. One for each decoder, used by one thread.

    What it remembers from record to record only saves work: a call of a decoder may fail, and
    records be decoded again. What has to be right then is in the layout, and in ``Pass.memory``.
    """

    zone: str | None = None
    """The zone of times that name none, for the converter; None: the configured one."""
    own_types = True
    """Whether declared types are in the source's own words, to be compared with statements."""
    drops_nulls = False
    """Whether messages leave nulls out: then an insert lacks nothing, and a column that an update
    lacks but had before is null."""
    tells_inserts = True
    """Whether a column that an insert lacks is one that took its default."""
    moves_freely = False
    """Whether the source checks keys row by row, so that a row only ever moves to a free key."""

    whole = False
    """Whether a row is all of its table's: what it lacks is null, also where only the target knows
    the column."""

    @cached_property
    def given(self) -> dict[str, str]:
        """Where rows are whole, the columns that they have got from the target, by name in small
        letters."""
        return {}

    def layout(self, keys: tuple[str, ...] | None, types: ColumnTypes) -> Layout:
        """Make the layout of a target without columns, with the configured key and types.

        Raises ValueError for an invalid type."""
        return RowLayout({}, keys, {}, configured=ConfiguredTypes.of(types))

    def memory(self, *, fixed: bool) -> Any:
        """Make the first ``Pass.memory``. ``fixed``: the configuration names the key."""
        return None

    def converter(self, options: FormatOptions) -> ColumnConverter:
        """Make the converter of one call's columns."""
        return Converter(self.zone or options.time_zone, options.zero_dates)

    def segment(self, into: Pass) -> RowSegment:
        """Make the segment of the present layout's rows."""
        return RowSegment(into.layout.columns, into.layout.texts)

    @abstractmethod
    def add_one(self, into: Pass) -> None:
        """Add the rows of the record at ``into.place``, slowly and exactly; raises Refused,
        BadMessage."""

    def block(self, into: Pass) -> bool:
        """Add as many records, from ``into.place`` on, as can be read at once. Whether it is to be
        called again; else the record at that place is read by itself."""
        return False

    def table_of(self, value: bytes, error: Exception) -> object | None:
        """The table to name in an error about a record, where its head does not tell: one of a
        message of several, or one that is configured. None: the head tells."""
        return None

    def declared_types(self, layout: Layout, memory: Any) -> Mapping[str, str]:
        """See ``TableDecoder.declared_types``."""
        return layout.declared_types if self.own_types else {}

    def take_column_changes(self, memory: Any) -> tuple[ColumnChange, ...]:
        """Take the changes out of the memory: see ``TableDecoder.take_column_changes``."""
        return ()


class Pass:
    """One call's records on their way to columns of text, in segments of one layout each."""

    def __init__(
        self,
        rows: Rows,
        layout: Layout,
        fixed: bool,
        key_texts: frozenset[bytes],
        run: KeyRun,
        memory: Any = None,
        amid: bool = False,
        by_key: bool = False,
    ) -> None:
        self.rows, self.by_key = rows, by_key
        self.layout: Any = layout
        """Of the kind that ``rows.layout`` makes."""
        self.fixed = fixed
        """Whether the configuration names the key."""
        self.key_texts = set(key_texts)
        """The bytes that name the layout's key."""
        self.run = run
        self.memory = memory
        """What the format has to remember of the records, made by ``rows.memory``: a copy for each
        call, which is kept where the call ends well."""
        self.amid = amid
        """Whether rows were decoded since changes of columns were taken last."""
        self.positions: dict[int, str] | None = None
        """By the record's place; None where the pipeline is configured without positions."""
        self.values: Sequence[bytes] = ()
        self.place = 0
        """The next record."""
        self.segments, self.times = list[RowSegment](), list[tuple[int, Sequence[object]]]()
        self.count = 0
        """Row changes so far; one that changes a key makes two rows."""
        self.halves = 0
        """First halves of changed keys that came as records of their own, so far."""
        self.lacked: set[str] = set()
        """Where nulls may be left out: the columns that an insert lacks."""
        self.shows_nulls = False
        """Whether a null was shown, so that none is left out."""
        self._segment_layout: Layout | None = None
        self._learned: set[RowShape] = set()

    @property
    def number(self) -> int:
        """The number of the next row for ``KeyRun``, both halves of a changed key being one."""
        return self.count - self.halves

    def read(self, values: Sequence[bytes]) -> Exception | None:
        """Read the records; returns the error at ``place``, None when all are read."""
        self.values = values
        try:
            while self.place < len(values):
                if not self.rows.block(self):
                    self.read_one()
        except (Refused, BadMessage) as refused:
            return refused
        return None

    def read_one(self) -> None:
        """Read the record at ``place`` by itself; raises Refused, BadMessage."""
        self.rows.add_one(self)
        self.place += 1

    def learn(self, shape: RowShape, *, bare: bool = False) -> None:
        """Extend the layout by the columns and key of rows that come now; raises Refused, also for
        a ``bare`` one, without columns."""
        if shape in self._learned:
            return
        layout = self._with_key(shape)
        if bare:
            raise Refused("a row without columns")
        if not _knows(layout, shape):
            layout = layout.grown(shape.types, shape.names, shape.types_text or b"")
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        if layout is not self.layout:
            self._learned.clear()
        self._learned.add(shape)
        self.layout = layout

    def _with_key(self, shape: RowShape) -> Layout:
        layout: Layout = self.layout
        if len(set(shape.names)) < len(shape.names):
            raise Refused("two columns of one name")
        if self.fixed or (shape.key_text is not None and shape.key_text in self.key_texts):
            return layout
        if layout.keys is None:
            layout = layout.with_keys(shape.keys)
        elif set(shape.keys) != set(layout.keys):
            raise other_key(layout.keys, shape.keys)
        if shape.key_text is not None:
            self.key_texts.add(shape.key_text)
        return layout

    # --- rows, which the layout knows

    def segment(self) -> RowSegment:
        """The segment of the present layout; a new one where the columns have changed."""
        if self._segment_layout is not self.layout:
            if self.segments:
                self.segments[-1].close_block()
            self._segment_layout = self.layout
            self.segments.append(self.rows.segment(self))
        return self.segments[-1]

    def add(self, op: str, row: Struct, was: Struct | None = None) -> None:
        """Add a row of the record at ``place``, and before it, where its key changed, the end of
        the old one; raises Refused."""
        layout = self.layout
        if was is not None and op == "U" and layout.keys:
            layout.complete_key(was, row)
            if layout.moves(was, row):
                self.check_alone()
                if self._leaves(was, row):
                    self.end_key(layout.gone(was, row))
        segment = self.segment()
        segment.add(row, op, self.place)
        self.count += 1
        if segment.is_full:
            segment.close_block()

    def check_alone(self) -> None:
        """Raise OfKeys where one record changes a key, and each key has a partition: the other
        changes of one of both are in another one."""
        if self.by_key:
            raise OfKeys(MOVES_ALONE)

    def end_key(self, gone: Struct) -> None:
        """Add the end of the key that the next row leaves."""
        segment = self.segment()
        segment.add(gone, "D", self.place)
        # Full as it may look: columns that no message has named yet may be missing.
        segment.moved.append(len(segment.ops))

    def _leaves(self, was: Struct, row: Struct) -> bool:
        """Whether the old key's row ends where this one moves away from it."""
        layout, pair = self.layout, (self.layout.gone(was, row), row)
        old, new = [run_key(zip(layout.keys, layout.key_of(at), strict=True)) for at in pair]
        before, after = layout.beside_key(was), layout.beside_key(row)
        free = self.rows.moves_freely
        return self.run.moves(self.number, old, before, new, after, free=free)

    def comes_from_before(self) -> None:
        """The next row moved here from the key that the row before it ends, a record of its own:
        both make one change."""
        segment = self.segment()
        segment.moved.append(len(segment.ops))
        self.count -= 1
        self.halves -= 1

    def add_rows(self, rows: Sequence[Struct], ops: bytes, records: Iterable[int]) -> None:
        """Add rows none of which changes its key."""
        segment = self.segment()
        segment.rows += rows
        segment.ops += ops
        segment.records += records
        self.count += len(ops)
        if segment.is_full:
            segment.close_block()

    def add_columns(
        self, names: Iterable[str], texts: Iterable[Text], ops: bytes, records: Sequence[int]
    ) -> None:
        """Add rows that are columns already, none of which changes its key."""
        segment = self.segment()
        segment.close_block()
        block = dict(zip(names, texts, strict=True))
        for name in segment.columns:
            if name not in block:
                lacks = pa.array([False] * len(ops))
                block[name] = Text(pa.nulls(len(ops), pa.string()), lacks)
        segment.blocks.append(block)
        segment.ops += ops
        segment.records += records
        self.count += len(ops)

    def add_flat(
        self, names: Sequence[str], texts: Sequence[Text], flat: FlatRows, moved: Sequence[int]
    ) -> Iterator[int]:
        """Add the rows of records that were read at once, from ``place`` on, but for the records
        ``moved``; gives the place of each of these when it is its turn."""
        start = self.place
        for begin, end, alone in spans(flat.records, moved):
            if begin < end:
                part = [text.part(begin, end) for text in texts] if moved else texts
                records = [start + record for record in flat.records[begin:end]]
                self.add_columns(names, part, flat.ops[begin:end], records)
            if alone is not None:
                yield start + alone


def _knows(layout: Layout, shape: RowShape) -> bool:
    """Whether the layout certainly would not grow."""
    if shape.types_text is not None:
        return layout.knows(shape.names, shape.types_text)
    declared = layout.declared
    same = all(declared.get(name) == words for name, words in shape.types.items())
    return same and layout.columns.keys() >= {*shape.names, *shape.types}
