"""Rows of any format on their way to columns of text: how records hold them, and one call's pass.

A format says how its records hold rows (``Rows``): one record after another as images, and for
speed many at once as a block. The layout of the columns, the key, keys that change and the order
of rows are the engine's (``Pass``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import Struct

from changes.formats.engine.assemble import RowSegment, Text
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.flat_rows import FlatRows, spans
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.layout import Layout, Refused, RowLayout, other_key
from changes.model.model import (
    BadMessage,
)


@dataclass(frozen=True, eq=False)
class Shape:
    """What rows are like that come alike: their columns in order, declared types, the key.

    A format that meets one shape often makes it once: the engine knows it again by identity.
    """

    names: tuple[str, ...]
    types: Mapping[str, str]
    keys: tuple[str, ...]
    types_text: bytes | None = None
    """The bytes that declare the types, where equal ones declare equal types."""
    key_text: bytes | None = None
    """The bytes that name the key, likewise."""
    whole: Shape | None = None
    """The same with the columns that only an update's old row holds, if those are no others'."""


class RowImage(NamedTuple):
    """One row change. ``op`` is I, U or D.

    Images hold the columns that are known; ``was`` is an update's old row, None where the record
    has none. Cells are text, null as None, or a JSON value's bytes (``msgspec.Raw``).
    """

    op: str
    now: Mapping[str, Any]
    was: Mapping[str, Any] | None
    shape: Shape
    position: str | None = None


class Rows(ABC):
    """How the records of one target hold rows. One for each decoder, used by one thread.

    What it remembers from record to record only saves work: a call of a decoder may fail, and
    records be decoded again.
    """

    zone: str | None = None
    """The zone of times that name none, for the converter; None: the configured one."""
    drops_nulls = False
    """Whether messages leave nulls out: then an insert lacks nothing, and a column that an update
    lacks but had before is null."""
    completes = True
    """Whether what an update lacks in a changelog is in its old row."""
    own_types = True
    """Whether declared types are in the source's own words, to be compared with statements."""
    shows_key = True
    """Whether people see the key of an update that has no old row as its old row."""
    needs_columns = True
    """Whether a row without any column is an error; else only where no column is known."""

    def layout(self, keys: tuple[str, ...] | None, configured: ConfiguredTypes) -> Layout:
        """Make the layout of a target without columns."""
        return RowLayout({}, keys, {}, configured=configured)

    @abstractmethod
    def images(self, value: bytes) -> Iterable[RowImage]:
        """Read a record's rows, slowly and exactly; raises Refused, BadMessage."""

    @abstractmethod
    def table_of(self, value: bytes, error: Exception) -> object | None:
        """The table to name in an error about a record, None where it is not known."""

    def block(self, into: Pass) -> bool:
        """Add as many records, from ``into.place`` on, as can be read at once. Whether it is to be
        called again; else the record at that place is read by ``images``."""
        return False

    def completed(self, image: RowImage) -> RowImage:
        """An update's row of a changelog, with what only its old one holds."""
        was = image.was or {}
        beside = {name: cell for name, cell in was.items() if name not in image.now}
        shape = image.shape.whole or image.shape
        return image._replace(now={**image.now, **beside}, was=None, shape=shape)

    def fitted(self, layout: Layout, image: RowImage) -> Layout:
        """The layout as this image's values need it."""
        return layout

    def structs(self, into: Pass, image: RowImage) -> tuple[Struct, Struct | None]:
        """The image as rows of the layout, which has its columns; raises Refused."""
        fields = into.layout.fields
        now = into.layout.row(**{fields[name]: cell for name, cell in image.now.items()})
        if image.was is None:
            return now, None
        was = {fields[name]: cell for name, cell in image.was.items() if name in fields}
        return now, into.layout.row(**was)


class Pass:
    """One call's records on their way to columns of text, in segments of one layout each."""

    def __init__(
        self, rows: Rows, layout: Layout, fixed: bool, key_texts: frozenset[bytes], run: KeyRun
    ) -> None:
        self.rows = rows
        self.layout: Any = layout
        """Of the kind that ``rows.layout`` makes."""
        self.fixed = fixed
        """Whether the configuration names the key."""
        self.key_texts = set(key_texts)
        """The bytes that name the layout's key."""
        self.run = run
        self.positions: dict[int, str] | None = None
        """By the record's place; None where the pipeline is configured without positions."""
        self.values: Sequence[bytes] = ()
        self.place = 0
        """The next record."""
        self.segments: list[RowSegment] = []
        self.count = 0
        """Row changes so far; one that changes a key makes two rows."""
        self.lacked: set[str] = set()
        """Where nulls may be left out: the columns that an insert lacks."""
        self.shows_nulls = False
        """Whether a null was shown, so that none is left out."""
        self._segment_layout: Layout | None = None
        self._learned: set[Shape] = set()

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
        """Read the record at ``place`` by its images; raises Refused, BadMessage."""
        for image in self.rows.images(self.values[self.place]):
            if self.positions is not None and image.position is not None:
                self.positions[self.place] = image.position
            if image.op == "U" and image.was and self.rows.completes:
                keys = image.shape.keys if self.layout.keys is None else self.layout.keys
                if not keys:
                    image = self.rows.completed(image)
            self.learn(image.shape, image)
            now, was = self.rows.structs(self, image)
            self.add(image.op, now, was)
        self.place += 1

    def learn(self, shape: Shape, image: RowImage | None = None) -> None:
        """Extend the layout by the columns and key of rows that come now; raises Refused.

        ``image`` is None of rows that are columns already.
        """
        if shape not in self._learned:
            layout = self._with_key(shape)
            if image is not None and not image.now and self._bare_refused(shape):
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
        if image is not None:
            self.layout = self.rows.fitted(self.layout, image)

    def _with_key(self, shape: Shape) -> Layout:
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

    def _bare_refused(self, shape: Shape) -> bool:
        return self.rows.needs_columns or not (self.layout.columns or shape.names or shape.types)

    # --- rows, which the layout knows

    def segment(self) -> RowSegment:
        """The segment of the present layout; a new one where the columns have changed."""
        if self._segment_layout is not self.layout:
            if self.segments:
                self.segments[-1].close_block()
            self._segment_layout = self.layout
            self.segments.append(RowSegment(self.layout.columns, self.layout.texts))
        return self.segments[-1]

    def add(self, op: str, row: Struct, was: Struct | None) -> None:
        """Add a row of the record at ``place``, and before it, where its key changed, the end of
        the old one; raises Refused."""
        layout, segment = self.layout, self.segment()
        if was is not None and op == "U" and layout.keys:
            layout.complete_key(was, row)
            if layout.moves(was, row) and self._leaves(was, row):
                segment.add(layout.gone(was, row), "D", self.place)
                # Full as it may look: columns that no message has named yet may be missing.
                segment.moved.append(len(segment.ops))
        segment.add(row, op, self.place)
        self.count += 1
        if segment.is_full:
            segment.close_block()

    def _leaves(self, was: Struct, row: Struct) -> bool:
        """Whether the old key's row ends where this one moves away from it."""
        layout = self.layout
        old = layout.key_of(layout.gone(was, row))
        before, after = layout.beside_key(was), layout.beside_key(row)
        return self.run.moves(self.count, old, before, layout.key_of(row), after)

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


def _knows(layout: Layout, shape: Shape) -> bool:
    """Whether the layout certainly would not grow."""
    if shape.types_text is not None:
        return layout.knows(shape.names, shape.types_text)
    declared = layout.declared
    same = all(declared.get(name) == words for name, words in shape.types.items())
    return same and layout.columns.keys() >= {*shape.names, *shape.types}
