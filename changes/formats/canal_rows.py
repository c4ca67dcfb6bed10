"""Decodes the row messages of one target: columns of text first, then each column at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from changes.assemble import BLOCK_ROWS, Misfit, Pieces, Segment, assemble
from changes.convert import Converter
from changes.formats import canal_careful as careful
from changes.formats.canal_layout import LETTERS, Layout, Refused
from changes.model import BadRecord, Changes, FormatOptions, Mode, TableSchema


class CanalTableDecoder:
    """The ``TableDecoder`` of Canal JSON.

    A call that raises leaves what is known of the columns as it was, so the records before the
    bad one can be decoded again without it.
    """

    def __init__(self, options: FormatOptions, mode: Mode, keys: tuple[str, ...] | None) -> None:
        self._options = options
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = Layout({}, keys, {})
        self._seen = False

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        reading = _Reading(self._layout, self._fixed)
        refused = reading.read(values)
        layout = reading.layout
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
        table = None
        converter = Converter(self._options.time_zone, self._options.zero_dates)
        if reading.segments:
            pieces = Pieces(reading.segments, layout.columns, layout.keys or (), self._fixed)
            try:
                table = assemble(pieces, converter, layout.declared, partition, offsets)
            except Misfit as misfit:
                raise _bad(misfit.record, str(misfit), values) from misfit
        if refused is not None:
            raise _bad(reading.place, str(refused), values) from refused
        if table is None:
            return None
        self._layout, self._seen = layout, True
        return Changes(table, layout.schema, mode, reading.count, converter.nulled)


class _Named(Struct, gc=False):
    database: str
    table: str


_named = msgspec.json.Decoder(_Named)


def _bad(place: int, reason: str, values: Sequence[bytes]) -> BadRecord:
    """Put the table's name before the reason; several tables may feed one target."""
    try:
        named = _named.decode(values[place])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return BadRecord(place, reason)
    return BadRecord(place, f"{named.database}.{named.table}: {reason}")


class _Reading:
    """One call's way through its messages: rows as structs, in segments of one layout each."""

    def __init__(self, layout: Layout, fixed: bool) -> None:
        self.layout = layout
        self.place = 0
        self.segments: list[Segment] = []
        self._segment_layout: Layout | None = None
        self._moved = 0
        self._fixed = fixed
        self._types = Raw()
        self._names = Raw()

    @property
    def count(self) -> int:
        """Row changes so far; one that changes a key makes two rows."""
        return sum(len(segment.ops) for segment in self.segments) - self._moved

    def read(self, values: Sequence[bytes]) -> Refused | None:
        """Take the messages in; give what stopped it at ``place``, None when all are in."""
        try:
            while self.place < len(values):
                if not self._read_known(values):
                    self._read_careful(values[self.place])
                    self.place += 1
                if self.segments and self.segments[-1].is_full:
                    self.segments[-1].seal()
        except Refused as refused:
            return refused
        return None

    def _segment(self) -> Segment:
        """The segment of the present layout; a new one where the columns have changed."""
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(Segment(self.layout.columns))
        return self.segments[-1]

    def _read_known(self, values: Sequence[bytes]) -> bool:
        """Read while messages have a known shape: the fast way, a block at most.

        False where it stopped at a message that has to be read the careful way.
        """
        layout, place = self.layout, self.place
        if layout.keys is None or not layout.columns:
            return False
        segment = self._segment()
        rows, ops, records = segment.rows, segment.ops, segment.records
        decode, no_key, keyed, known = layout.decode, layout.no_key, bool(layout.keys), layout.known
        types, names, letter = self._types, self._names, LETTERS.get
        stopped = False
        for value in itertools.islice(values, place, place + BLOCK_ROWS):
            try:
                message = decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                stopped = True
                break
            if message.mysqlType != types:
                if bytes(message.mysqlType) not in known:
                    stopped = True
                    break
                types = message.mysqlType
            data, op = message.data, letter(message.type)
            if message.pkNames != names or not data or op is None or message.tidb is not None:
                stopped = True
                break
            if op == "U" and keyed and (message.old or message.updateBefore):
                if message.updateBefore:
                    stopped = True
                    break
                if _names_key(message.old, no_key):
                    self.place = place
                    self._add_update(data, message.old)
                    place += 1
                    continue
            if len(data) == 1:
                rows.append(data[0])
                ops.append(op)
                records.append(place)
            else:
                rows += data
                ops += op * len(data)
                records += [place] * len(data)
                if len(rows) >= BLOCK_ROWS:
                    place += 1
                    break
            place += 1
        self._types, self.place = types, place
        return not stopped

    def _read_careful(self, value: bytes) -> None:
        message = careful.read(value)
        if not message.data:
            return
        letter = LETTERS.get(message.type)
        if letter is None:
            raise Refused(f"unknown type {message.type!r}")
        self._learn(message)
        rows = careful.rows(message, self.layout)
        if letter == "U" and self.layout.keys:
            self._add_update(rows, careful.olds(message, self.layout))
            return
        segment = self._segment()
        segment.rows += rows
        segment.ops += letter * len(rows)
        segment.records += [self.place] * len(rows)

    def _learn(self, message: careful.Message) -> None:
        """Take in what the message tells of columns and key."""
        layout = self.layout
        if not self._fixed and message.pkNames != self._names:
            names = careful.key_names(message)
            if layout.keys is None:
                layout = layout.with_keys(names)
            elif set(names) != set(layout.keys):
                raise Refused(f"the key was {_list(layout.keys)} and is now {_list(names)}")
        self._names = message.pkNames
        self._types = message.mysqlType
        text = bytes(message.mysqlType)
        layout = layout.grown(careful.types(message), careful.carried(message), text)
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        self.layout = layout

    def _add_update(self, rows: Sequence[Struct], olds: Sequence[Struct | None]) -> None:
        """Add updated rows, before each whose key changed the old key's end."""
        layout = self.layout
        segment = self._segment()
        for index, row in enumerate(rows):
            before = olds[index] if index < len(olds) else None
            if before is not None:
                layout.complete_key(before, row)
                if layout.moves(before, row):
                    segment.add(layout.gone(before, row), "D", self.place)
                    self._moved += 1
                    # Full as it may look: columns that no message has named yet may be missing.
                    segment.moved.append(len(segment.ops))
            segment.add(row, "U", self.place)


def _names_key(olds: Sequence[Struct | None], no_key: Struct) -> bool:
    """Tell whether any old image holds a key column: most updates' don't."""
    return any(old is not None and old != no_key for old in olds)


def _list(keys: Sequence[str]) -> str:
    return f"({', '.join(keys)})" if keys else "none"
