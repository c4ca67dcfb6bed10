"""Decodes the row records of one target of Alibaba DTS, a record at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct

from changes.formats.aliyun.record import Images, Record, read_record, table_name
from changes.formats.aliyun.values import declared_types, text_of
from changes.formats.engine.assemble import Misfit, Pieces, RowSegment, assemble
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.lacking import carried_by_inserts
from changes.formats.engine.layout import Refused, Unfit, other_key
from changes.formats.engine.row_blocks import BlockLayout
from changes.model.model import BadRecord, Changes, ColumnTypes, FormatOptions, Mode, TableSchema
from changes.sql.convert import Converter

LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "INIT": "I"}
"""What happened to a row, by the operation of its record."""

UTC = "UTC"
"""TIMESTAMP comes as a point in time, so no zone is needed to read it."""

_tag = msgspec.json.Decoder(dict[str, list[str]])

Image = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One record's row: texts by column; what an image does not hold is left out of it."""

    op: str
    now: Image
    was: Image | None
    keys: tuple[str, ...]
    types: Mapping[str, str]


def row_of(record: Record) -> Row:
    """Raises Refused where the record holds no row, or one that can't be read."""
    op = LETTERS.get(record.operation)
    if op is None:
        raise Refused(f"an operation {record.operation}, which is no row's")
    types = declared_types(record.fields, record.source)
    if len(dict(record.fields)) < len(record.fields):
        raise Refused("two fields of one name")
    before, after = _image(record, record.before, types), _image(record, record.after, types)
    now = before if op == "D" else after
    if now is None:
        image = "beforeImages" if op == "D" else "afterImages"
        raise Refused(f"a record of operation {record.operation} without {image}")
    return Row(op, now, before if op == "U" else None, key_of(record), types)


def key_of(record: Record) -> tuple[str, ...]:
    """The primary key's columns; other unique keys may be null, so none of them is taken."""
    text = record.tags.get("pk_uk_info")
    if not text:
        return ()
    try:
        return tuple(_tag.decode(text).get("PRIMARY", ()))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"the tag pk_uk_info is not an object of lists: {error}") from error


def _image(record: Record, images: Images | str | None, types: Mapping[str, str]) -> Image | None:
    if not images or isinstance(images, str):
        return None
    if len(images) != len(record.fields):
        raise Refused(f"{len(images)} values for {len(record.fields)} fields")
    found: Image = {}
    for (name, _), value in zip(record.fields, images, strict=True):
        try:
            text = text_of(value, types.get(name))
        except Refused as refused:
            raise Refused(f"{name}: {refused}") from refused
        if text is not UNSET:
            found[name] = text
    return found


class AliyunTableDecoder(DecoderDefaults):
    """The ``TableDecoder`` of Alibaba DTS's records.

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
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = BlockLayout({}, keys, {}, configured=ConfiguredTypes.of(types))
        self._run = KeyRun()
        self._seen = False

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return None

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        decoding = _DecodePass(self._layout, self._fixed, self._run.begun(partition, offsets))
        for place, value in enumerate(values):
            try:
                decoding.add(value, place)
            except Refused as refused:
                raise _bad(place, refused, values) from refused
        if not decoding.segments:
            return None
        layout = decoding.layout
        converter = Converter(UTC, self._options.zero_dates)
        pieces = Pieces(decoding.segments, layout.columns, layout.keys or (), self._fixed)
        try:
            table = assemble(pieces, converter, layout.declared, partition, offsets)
        except Misfit as misfit:
            raise _bad(misfit.record, misfit, values) from misfit
        assert table is not None
        self._layout, self._seen = layout, True
        self._run = decoding.run.ended(decoding.count)
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
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


def _bad(place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
    """Put the table's name before the reason; several tables may feed one target."""
    unfit = isinstance(error, Unfit)
    try:
        table = table_name(read_record(values[place]).object_name)
    except Refused:
        return BadRecord(place, str(error), of_table=unfit)
    return BadRecord(place, f"{table}: {error}", of_table=unfit)


class _DecodePass:
    """Reads one call's records into rows as structs, in segments of one layout each."""

    def __init__(self, layout: BlockLayout, fixed: bool, run: KeyRun) -> None:
        self.layout = layout
        self.run = run
        self.segments: list[RowSegment] = []
        self.count = 0
        self._fixed = fixed
        self._segment_layout: BlockLayout | None = None

    def add(self, value: bytes, place: int) -> None:
        """Read one record; raises Refused."""
        row = row_of(read_record(value))
        self._learn(row)
        layout, segment = self.layout, self._segment()
        if row.was is not None and not layout.keys:  # of a changelog: the rest did not change
            segment.add(self._struct({**row.was, **row.now}), row.op, place)
            self._end_row(segment)
            return
        now = self._struct(row.now)
        if row.was is not None:
            before = self._struct(row.was)
            layout.complete_key(before, now)
            if layout.moves(before, now) and self._leaves(before, now):
                segment.add(layout.gone(before, now), "D", place)
                segment.moved.append(len(segment.ops))
        segment.add(now, row.op, place)
        self._end_row(segment)

    def _end_row(self, segment: RowSegment) -> None:
        self.count += 1
        if segment.is_full:
            segment.close_block()

    def _leaves(self, before: Struct, now: Struct) -> bool:
        """Whether the old key's row ends where this one moves away from it."""
        layout = self.layout
        after, was = layout.beside_key(now), layout.beside_key(before)
        old = layout.key_of(layout.gone(before, now))
        return self.run.moves(self.count, old, was, layout.key_of(now), after)

    def _struct(self, image: Image) -> Struct:
        fields = self.layout.fields
        return self.layout.row(**{fields[name]: text for name, text in image.items()})

    def _segment(self) -> RowSegment:
        if self._segment_layout is not self.layout:
            self._segment_layout = self.layout
            self.segments.append(RowSegment(self.layout.columns))
        return self.segments[-1]

    def _learn(self, row: Row) -> None:
        """Extend the layout by the record's columns and key."""
        layout = self.layout
        if not row.now:
            raise Refused("a row without columns")
        if not self._fixed and row.keys != layout.keys:
            if layout.keys is None:
                layout = layout.with_keys(row.keys)
            elif set(row.keys) != set(layout.keys):
                raise other_key(layout.keys, row.keys)
        if not layout.fields.keys() >= {*row.now, *(row.was or ())} or any(
            layout.declared.get(name) != declared for name, declared in row.types.items()
        ):
            carried = dict.fromkeys((*row.now, *(row.was or ())))
            layout = layout.grown(row.types, carried, b"")
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        self.layout = layout
