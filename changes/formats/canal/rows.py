"""Decodes Canal's row messages of one target: to columns of text, then each column at once."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from changes.formats.canal import slow_path as careful
from changes.formats.canal.layout import LETTERS, CanalLayout, HandleKey, place_texts
from changes.formats.engine.assemble import BLOCK_ROWS, Misfit, Pieces, RowSegment, assemble
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.lacking import carried_by_inserts
from changes.formats.engine.layout import Refused, Unfit, decoded, other_key
from changes.model.model import BadRecord, Changes, ColumnTypes, FormatOptions, Mode, TableSchema
from changes.model.positions import position_text
from changes.model.records import Values
from changes.sql.convert import Converter

_FIRST_MESSAGES = 32
"""Messages decoded at once before it is known how many rows each has. More: thousands of rows
when they are large. Fewer: a small call takes more turns."""


class CanalTableDecoder(DecoderDefaults):
    """The ``TableDecoder`` of Canal JSON.

    A call that raises does not change the layout, so the records before the bad one can be decoded
    again without it.
    """

    def __init__(
        self,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        self._options = options
        self._positions = None if mode is Mode.APPEND else options.extra.get("positions")
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = CanalLayout({}, keys, {}, configured=ConfiguredTypes.of(types))
        self._types = Raw()
        self._names = Raw()
        self._run = KeyRun()
        self._seen = False

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return self._positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._layout.declared_types

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        run = self._run.begun(partition, offsets)
        decoding = _DecodePass(self._layout, self._fixed, self._types, self._names, run)
        if self._positions is not None:
            decoding.positions = {}
        refused = decoding.read(values)
        layout = decoding.layout
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
        table = None
        converter = Converter(self._options.time_zone, self._options.zero_dates)
        if decoding.segments:
            keys = layout.keys or ()
            marks = decoding.positions
            pieces = Pieces(decoding.segments, layout.columns, keys, self._fixed, marks)
            try:
                table = assemble(pieces, converter, layout.declared, partition, offsets)
            except Misfit as misfit:
                raise _bad(misfit.record, misfit, values) from misfit
        if refused is not None:
            raise _bad(decoding.place, refused, values) from refused
        if table is None:
            return None
        self._layout, self._seen = layout, True
        self._run = decoding.run.ended(decoding.count)
        # Copies: the parts of a message keep all of it in memory, which is written over.
        self._types, self._names = decoding.types.copy(), decoding.names.copy()
        return Changes(
            table,
            layout.schema,
            mode,
            decoding.count,
            converter.nulled,
            carried_by_inserts(pieces),
            pieces.begins,
            pieces,
        )


class _Named(Struct, gc=False):
    database: str
    table: str


_named = msgspec.json.Decoder(_Named)


def _bad(place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
    """Put the table's name before the reason; several tables may feed one target."""
    unfit = isinstance(error, Unfit)
    try:
        named = _named.decode(values[place])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return BadRecord(place, str(error), of_table=unfit)
    return BadRecord(place, f"{named.database}.{named.table}: {error}", of_table=unfit)


class _DecodePass:
    """Reads one call's messages into rows as structs, in segments of one layout each."""

    def __init__(
        self, layout: CanalLayout, fixed: bool, types: Raw, names: Raw, run: KeyRun
    ) -> None:
        self.layout = layout
        self.run = run
        self.types = types
        """The block of types of the latest message, and ``names`` its key's."""
        self.names = names
        self.positions: dict[int, str] | None = None
        """By the record's place; None where the pipeline is configured without positions."""
        self.place = 0
        self.segments: list[RowSegment] = []
        self._segment_layout: CanalLayout | None = None
        self._moved = 0
        self._fixed = fixed
        self._ahead = _FIRST_MESSAGES

    @property
    def count(self) -> int:
        """Row changes so far; one that changes a key makes two rows."""
        return sum(len(segment.ops) for segment in self.segments) - self._moved

    def read(self, values: Sequence[bytes]) -> Refused | None:
        """Read the messages; returns the error at ``place``, None when all are read."""
        try:
            while self.place < len(values):
                self._read_block(values, min(self.place + self._ahead, len(values)))
                if self.segments and self.segments[-1].is_full:
                    self.segments[-1].close_block()
        except Refused as refused:
            return refused
        return None

    def _segment(self) -> RowSegment:
        """The segment of the present layout; a new one where the columns have changed."""
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(RowSegment(self.layout.columns))
        return self.segments[-1]

    def _read_block(self, values: Sequence[bytes], end: int) -> None:
        """Read the messages before ``end``, or as many as fit the present layout."""
        layout = self.layout
        messages = _decoded(layout, values, self.place, end)
        if not messages or not self._take_alike(messages):
            for message in messages:
                if not self._take(message):
                    self._read_careful(values[self.place])
                self.place += 1
                if self.layout is not layout:
                    return
        if self.place < end:
            self._read_careful(values[self.place])
            self.place += 1

    def _take_alike(self, messages: Sequence[Any]) -> bool:
        """Add messages of a known shape at once; False, and none of them, if one is not.

        A loop over them would cost as much as their decoding, so each member is read as a column.
        """
        layout, count = self.layout, len(messages)
        data, types, olds, names, kinds, tidb, before = zip(*map(astuple, messages), strict=True)
        ops = list(map(LETTERS.get, kinds))
        if not all(data) or None in ops or any(before) or any(map(_is_cut, tidb)):
            return False
        if names.count(self.names) < count:
            return False
        if types.count(self.types) < count and not layout.known.issuperset(map(bytes, types)):
            return False
        if layout.keys and not layout.keeps_keys(ops, data, olds):
            return False
        if self.positions is not None:
            texts = place_texts(tidb, ops, data)
            if texts is None:
                return False
            self.positions.update(enumerate(texts, self.place))
        self._add_alike(data, "".join(map(str, ops)))
        self.types = types[-1]
        return True

    def _add_alike(self, data: Sequence[list[Struct]], ops: str) -> None:
        """Add the rows of messages, of each at least one; ``ops`` has a letter for each message."""
        segment, count = self._segment(), len(data)
        rows = list(itertools.chain.from_iterable(data))
        segment.rows += rows
        records: Iterable[int] = range(self.place, self.place + count)
        if len(rows) > count:
            sizes = list(map(len, data))
            ops = "".join(map(operator.mul, ops, sizes))
            records = itertools.chain.from_iterable(map(itertools.repeat, records, sizes))
        segment.ops += ops.encode()
        segment.records += records
        self.place += count
        self._ahead = max(1, BLOCK_ROWS * count // len(rows))

    def _take(self, message: Any) -> bool:
        """Add a message of a known shape; False if it is not and has to be read slowly."""
        layout, data, op = self.layout, message.data, LETTERS.get(message.type)
        if (
            self.positions is not None
            or not data
            or op is None
            or _is_cut(message.tidb)
            or message.pkNames != self.names
        ):
            return False
        if message.mysqlType != self.types:
            if bytes(message.mysqlType) not in layout.known:
                return False
            self.types = message.mysqlType
        if op == "U" and layout.keys:
            if message.updateBefore:
                return False
            if message.old and layout.names_key(message.old):
                if layout.any_moves(data, message.old):
                    return False
                self._add_update(data, message.old, ())
                return True
        segment = self._segment()
        segment.rows += data
        segment.ops += op.encode() * len(data)
        segment.records += [self.place] * len(data)
        return True

    def _read_careful(self, value: bytes) -> None:
        message = careful.read(value)
        if not message.data:
            return
        letter = LETTERS.get(message.type)
        if letter is None:
            raise Refused(f"unknown type {message.type!r}")
        if self.positions is not None:
            self.positions[self.place] = _position(message, letter)
        self._learn(message)
        rows = careful.rows(message, self.layout)
        if not self.layout.columns:
            raise Refused("a row without columns")
        if letter == "U" and self.layout.keys:
            olds = careful.olds(message, self.layout)
            self._add_update(rows, olds, careful.befores(message, self.layout, rows))
            return
        segment = self._segment()
        segment.rows += rows
        segment.ops += letter.encode() * len(rows)
        segment.records += [self.place] * len(rows)

    def _learn(self, message: careful.Message) -> None:
        """Extend the layout by the message's columns and key."""
        layout = self.layout
        if not self._fixed and message.pkNames != self.names:
            names = careful.key_names(message)
            if layout.keys is None:
                layout = layout.with_keys(names)
            elif set(names) != set(layout.keys):
                raise other_key(layout.keys, names)
        self.names = message.pkNames
        self.types = message.mysqlType
        text = bytes(message.mysqlType)
        carried = careful.carried(message)
        if not layout.knows(carried, text):
            layout = layout.grown(careful.types(message), carried, text)
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        self.layout = layout

    def _add_update(
        self,
        rows: Sequence[Struct],
        olds: Sequence[Struct | None],
        befores: Sequence[tuple[object, ...]],
    ) -> None:
        """Add updated rows, and before each whose key changed a delete of the old key.

        ``befores`` are the old rows' other values, where any key changed.
        """
        layout = self.layout
        segment = self._segment()
        for index, row in enumerate(rows):
            before = olds[index] if index < len(olds) else None
            if before is not None:
                layout.complete_key(before, row)
                if layout.moves(before, row) and self._leaves(before, row, befores[index]):
                    segment.add(layout.gone(before, row), "D", self.place)
                    self._moved += 1
                    # Full as it may look: columns that no message has named yet may be missing.
                    segment.moved.append(len(segment.ops))
            segment.add(row, "U", self.place)

    def _leaves(self, before: Struct, row: Struct, beside: tuple[object, ...]) -> bool:
        """Whether moving this row away deletes the old key's row."""
        layout = self.layout
        old = layout.key_of(layout.gone(before, row))
        after = layout.beside_key(row)
        return self.run.moves(self.count, old, beside, layout.key_of(row), after)


def _is_cut(tidb: HandleKey | None) -> bool:
    """Whether a message may have been too large for TiCDC; the slow path decides."""
    return tidb is not None and tidb.is_cut


def _decoded(layout: CanalLayout, values: Sequence[bytes], start: int, end: int) -> list[Any]:
    """Decode messages by the layout, up to the first that does not have it."""
    if layout.keys is None or not layout.columns:
        return []
    if isinstance(values, Values):
        # Each of them is one object, or ``heads`` would have refused it: so they need no frames.
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            messages = layout.decode_lines(values.stretch(start, end))
            if len(messages) == end - start:
                return messages
    return decoded(layout.decode, values[start:end])


def _position(message: careful.Message, letter: str) -> str:
    """When the transaction was committed: TiDB has one change of a key in a transaction."""
    commit = None if message.tidb is None else message.tidb.commitTs
    if commit is None or commit < 0:
        raise Refused("the message has no _tidb.commitTs, which the configured positions are")
    if letter != "D" and (missing := _missing(message)):
        raise Refused(
            f"column {missing} is missing: rows that carry only part of their columns can't be "
            "put in order by a position a row"
        )
    return position_text(commit)


def _missing(message: careful.Message) -> str | None:
    """A column that the message has a type of, but not in every row."""
    for name in careful.types(message):
        if any(row is not None and name not in row for row in message.data or ()):
            return name
    return None
