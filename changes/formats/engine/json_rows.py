"""Decodes messages of one row each, of typed JSON values: shared by Maxwell and GoldenGate.

A block of messages is read by the layout's decoder and handled a member at a time. A message that
does not fit the layout is read by itself, slowly, and the layout grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Raw, Struct
from msgspec.structs import astuple

from changes.formats.engine.assemble import BLOCK_ROWS, Misfit, Pieces, RowSegment, assemble
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.json_layout import (
    Documents,
    JsonLayout,
    is_document,
    may_move,
    moves,
    with_nulls,
    with_olds,
)
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.lacking import Inserts, lacked_by_inserts, shows_null
from changes.formats.engine.layout import Refused, Unfit, decoded, other_key
from changes.model.model import (
    BadRecord,
    Changes,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableName,
    TableSchema,
)
from changes.sql.convert import Converter

_DELETE = ord("D")


@dataclass(frozen=True, slots=True)
class Row:
    """One message's row with nothing assumed about its columns; ``op`` is I, U or D.

    ``names`` is the text in which the record names its key, ``keys`` the names in it.
    """

    op: str
    now: Mapping[str, Raw]
    was: Mapping[str, Raw] | None
    names: bytes
    keys: tuple[str, ...]


class Dialect(Protocol):
    """A format's description of its messages. A change has its row in ``now``, a D perhaps only in
    ``was``; the replaced values of an update are in ``was``, as far as the message has them."""

    letters: Mapping[str, str]
    """I, U or D by the value of ``kind``."""

    deletes_by_was: bool
    """Which of two images of a deleted row counts."""

    drops_nulls: bool
    """Whether messages leave nulls out: then an insert lacks nothing, and a column that an update
    lacks but had before is null."""

    def message(self, row: type[Struct]) -> type[Struct]:
        """Make the struct of a message: kind, now, was, names, and odd, which is None unless the
        message has to be read slowly."""
        ...

    def bodies(self, values: Sequence[bytes]) -> Sequence[bytes]:
        """The messages themselves, of records that may be packed."""
        ...

    def key_texts(self, names: Sequence[Raw], values: Sequence[bytes]) -> Sequence[bytes]:
        """The texts by which records name their keys: ``Row.names``; ``names`` is that member of
        the messages."""
        ...

    def read(self, value: bytes) -> Row:
        """Read any message of rows; raises Refused."""
        ...

    def table_of(self, value: bytes) -> TableName | None:
        """The table of a row, for errors; None where it is unknown."""
        ...


class JsonTableDecoder(DecoderDefaults):
    """The ``TableDecoder`` of such a format.

    A call that raises does not change the layout, so the records before the bad one can be decoded
    again without it.
    """

    def __init__(
        self,
        dialect: Dialect,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        self._dialect = dialect
        self._options = options
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        configured = ConfiguredTypes.of(types)
        self._layout = JsonLayout(dialect.message, {}, keys, {}, configured=configured)
        self._names: frozenset[bytes] = frozenset()
        self._run = KeyRun()
        self._seen = False
        self._inserts = Inserts(shows_nulls=not dialect.drops_nulls)

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return None

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        run = self._run.begun(partition, offsets)
        decoding = _DecodePass(self._dialect, self._layout, self._fixed, self._names, run)
        refused = decoding.read(values)
        layout = decoding.layout
        converter = Converter(self._options.time_zone, self._options.zero_dates)
        table = None
        if decoding.segments:
            pieces = Pieces(decoding.segments, layout.columns, layout.keys or (), self._fixed)
            try:
                table = assemble(pieces, converter, layout.declared, partition, offsets)
            except Misfit as misfit:
                raise self._bad(misfit.record, misfit, values) from misfit
        if refused is not None:
            raise self._bad(decoding.place, refused, values) from refused
        if table is None:
            return None
        self._layout, self._names, self._seen = layout, frozenset(decoding.names), True
        self._run = decoding.run.ended(decoding.count)
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
        self._inserts, carried = self._inserts.after(pieces, decoding.lacked, decoding.shows_nulls)
        return Changes(
            table,
            layout.schema,
            mode,
            decoding.count,
            converter.nulled,
            carried,
            pieces.begins,
            pieces,
        )

    def _bad(self, place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
        """Put the table's name before the reason; several tables may feed one target."""
        table = self._dialect.table_of(values[place])
        reason = str(error) if table is None else f"{table}: {error}"
        return BadRecord(place, reason, of_table=isinstance(error, Unfit))


class _DecodePass:
    """Reads one call's messages into columns of text, in segments of one layout each."""

    def __init__(
        self,
        dialect: Dialect,
        layout: JsonLayout,
        fixed: bool,
        names: frozenset[bytes],
        run: KeyRun,
    ) -> None:
        self.layout = layout
        self.run = run
        self.names = set(names)
        """The texts that name the key of the layout."""
        self.place = 0
        self.segments: list[RowSegment] = []
        self.lacked: set[str] = set()
        """Where nulls may be left out: the columns that an insert lacks."""
        self.shows_nulls = False
        """Whether a null was shown, so that none is left out."""
        self._dialect = dialect
        self._fixed = fixed
        self._segment_layout: JsonLayout | None = None
        self._moved = 0

    @property
    def count(self) -> int:
        """Row changes so far; one that changes a key makes two rows."""
        return sum(len(segment.ops) for segment in self.segments) - self._moved

    def read(self, values: Sequence[bytes]) -> Refused | None:
        """Read the messages; returns the error at ``place``, None when all are read."""
        try:
            while self.place < len(values):
                self._read_block(values[self.place : self.place + BLOCK_ROWS])
        except Refused as refused:
            return refused
        return None

    def _read_block(self, values: Sequence[bytes]) -> None:
        """Read these messages, or as many as the present layout fits."""
        layout = self.layout
        messages = self._decoded(values)
        if messages and not self._add_alike(messages, values):
            for message, value in zip(messages, values, strict=False):
                if not self._add_known(message, value):
                    self._read_careful(value)
                if self.layout is not layout:
                    return
        if self.layout is layout and len(messages) < len(values):
            self._read_careful(values[len(messages)])

    def _decoded(self, values: Sequence[bytes]) -> list[Any]:
        """Decode messages by the layout, up to the first that does not fit it."""
        layout = self.layout
        if layout.keys is None or not layout.columns:
            return []
        return decoded(layout.decode, self._dialect.bodies(values))

    def _add_alike(self, messages: Sequence[Any], values: Sequence[bytes]) -> bool:
        """Add messages that all fit the layout; False, and none of them, if one does not.

        A loop over them would cost as much as their decoding, so each member is read as a column.
        True also where the layout has to change first: then none was added.
        """
        kinds, nows, wases, names, odds = zip(*map(astuple, messages), strict=True)
        row, letters = self.layout.row, self._dialect.letters
        if odds.count(None) < len(odds) or not letters.keys() >= set(kinds):
            return False
        if not self._name_key(names, values[: len(names)]):
            return False
        ops = "".join(map(letters.__getitem__, kinds)).encode()
        rows: list[Any] = list(nows)
        by_was = self._dialect.deletes_by_was and b"D" in ops
        if by_was or set(map(type, nows)) != {row}:
            for place, op in enumerate(ops):
                if op == _DELETE:
                    rows[place] = self._ended(nows[place], wases[place])
                if not isinstance(rows[place], row):
                    return False
        self._add(ops, rows, wases)
        return True

    def _add_known(self, message: Any, value: bytes) -> bool:
        """Add a message of a known shape; False if it is not and has to be read slowly."""
        letters, row = self._dialect.letters, self.layout.row
        if message.kind not in letters or message.odd is not None:
            return False
        op = letters[message.kind]
        now = self._ended(message.now, message.was) if op == "D" else message.now
        if not isinstance(now, row) or not self._name_key((message.names,), (value,)):
            return False
        self._add(op.encode(), [now], (message.was,))
        return True

    def _ended(self, now: object, was: object) -> object:
        """The image of a deleted row."""
        first, second = (was, now) if self._dialect.deletes_by_was else (now, was)
        return first if isinstance(first, self.layout.row) else second

    def _name_key(self, names: Sequence[Raw], values: Sequence[bytes]) -> bool:
        """Whether these all name the key that the layout has."""
        return self._fixed or self.names.issuperset(self._dialect.key_texts(names, values))

    def _add(self, ops: bytes, rows: Sequence[Struct], olds: Sequence[Any]) -> None:
        """Add rows with their old images, one for each message. Where a column turns out to hold
        documents, only the layout changes, and nothing is added."""
        layout = self.layout
        records: Sequence[int] = range(self.place, self.place + len(rows))
        after = self.place + len(rows)
        moved: list[int] = []
        if layout.keys and may_move(layout, ops, rows, olds):
            ops, rows, olds, records, moved = moves(
                layout, ops, rows, olds, self.place, self.run, self.count
            )
        if not layout.keys and not self._dialect.drops_nulls:
            rows = with_olds(layout, ops, rows, olds)
        try:
            texts = layout.texts(rows)
        except Documents as found:
            self.layout = layout.with_documents(found.names)
            return
        if self._dialect.drops_nulls:
            self.shows_nulls = self.shows_nulls or any(map(shows_null, texts))
            self.lacked |= lacked_by_inserts(ops, dict(zip(layout.columns, texts, strict=True)))
            texts = with_nulls(layout, ops, olds, texts)
        segment = self._segment()
        segment.moved += [len(segment.ops) + place for place in moved]
        segment.blocks.append(dict(zip(layout.columns, texts, strict=True)))
        segment.ops += ops
        segment.records += records
        self._moved += len(moved)
        self.place = after

    def _segment(self) -> RowSegment:
        """The segment of the present layout; a new one where the columns have changed."""
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(RowSegment(self.layout.columns))
        return self.segments[-1]

    def _read_careful(self, value: bytes) -> None:
        row = self._dialect.read(value)
        self._learn(row)
        layout = self.layout
        was = None if row.was is None else layout.row_of(row.was)
        self._add(row.op.encode(), [layout.row_of(row.now)], [was])

    def _learn(self, row: Row) -> None:
        """Extend the layout by the message's columns and key."""
        layout = self.layout
        if not self._fixed and row.names not in self.names:
            if layout.keys is None:
                layout = layout.with_keys(row.keys)
            elif set(row.keys) != set(layout.keys):
                raise other_key(layout.keys, row.keys)
            self.names.add(row.names)
        images = (row.now, row.was or {})
        if not row.now:
            raise Refused("a row without columns")
        carried = dict.fromkeys(name for image in images for name in image)
        if not layout.knows(carried, b""):
            layout = layout.grown({}, carried, b"")
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        documents = {
            name for image in images for name, raw in image.items() if is_document(raw)
        } - layout.documents
        self.layout = layout.with_documents(documents) if documents else layout
