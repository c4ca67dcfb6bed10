"""Explains Debezium's records: each change with its key and what is known of both images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
from msgspec import Raw

from changes.formats.debezium.convert import DebeziumConverter
from changes.formats.debezium.keys import deleted_key, replaced_key
from changes.formats.debezium.layout import NULL, string_of
from changes.formats.debezium.parts import columns_of, key_of
from changes.formats.debezium.places import moment
from changes.formats.debezium.record import Record
from changes.formats.debezium.types import Field, Sense, Wire, WireType, from_schema, words
from changes.formats.debezium.unsent import Unavailable
from changes.formats.debezium.untyped import ConfiguredWireTypes
from changes.formats.engine.explain import shortest
from changes.formats.engine.format import RowChange
from changes.formats.engine.layout import Refused
from changes.model.model import FormatOptions, TableName
from changes.sql.convert import ValueMisfit

Image = dict[str, object]


def explain_row(
    packed: bytes, record: Record, options: FormatOptions, unavailable: Unavailable
) -> Iterator[RowChange]:
    """Explain a record of a row; raises Refused."""
    table = record.table or TableName("", "")
    key = key_of(packed, lenient=True)
    keys = () if key is None else tuple(key.columns)
    ts_ms = moment(record.payload)
    shown = _Shown(record.fields or columns_of(key.field if key else None), options)
    if record.letter == "D":
        if record.before is None and key is None:
            raise Refused("a deleted row without image and without key")
        image = shown.image(deleted_key(record, key, keys, configured=False))
        before = None if record.before is None else shown.image(record.before)
        yield RowChange(table, "D", image, before, None, ts_ms, shown.misfit)
        return
    if record.after is None:
        raise Refused("an insert or update without the new row")
    unavailable = unavailable.within(record.payload or {})
    after = shown.image(unavailable.without(record.after))
    image = {name: after[name] for name in keys if name in after}
    if len(image) < len(keys) and key is not None:
        image = shown.image(key.columns)
    before = None
    if record.letter == "U":
        replaced_key(record, key, keys, configured=False)
        before = shown.image(unavailable.without(record.before or {})) or image or None
    yield RowChange(table, record.letter, image, before, after, ts_ms, shown.misfit)


class _Shown:
    """Converts values for people. ``misfit``: the error of the first that does not fit."""

    def __init__(self, fields: Mapping[str, Field], options: FormatOptions) -> None:
        self._fields = fields
        self._configured = ConfiguredWireTypes.of(options.types)
        self._converter = DebeziumConverter(options.zero_dates)
        self.misfit: str | None = None

    def image(self, values: Mapping[str, Raw]) -> Image:
        return {name: self._value(name, bytes(raw)) for name, raw in values.items()}

    def _value(self, name: str, raw: bytes) -> object:
        if raw == NULL:
            return None
        field = self._fields.get(name)
        configured = self._configured.type_of(name)
        if field is not None:
            kind = self._configured.over(name, from_schema(field))
            kind, said = replace(kind, wire=Wire.RAW), words(field)
        elif configured is not None:
            kind, said = configured, self._configured.words_of(name)
        else:
            return undeclared(raw)
        text = pa.array([raw.decode()], pa.string())
        try:
            value = self._converter.column(text, kind, said, key=False)[0].as_py()
        except ValueMisfit as misfit:
            self.misfit = self.misfit or f"{name}: {misfit}"
            return undeclared(raw)
        return _plain(value, kind)


def _plain(value: object, kind: WireType) -> object:
    """The lake's value, but an integer as int, and a float by its shortest exact digits."""
    if isinstance(value, Decimal) and kind.sense in (Sense.WRAPPED, Sense.BITS):
        return int(value)
    if isinstance(value, float) and pa.types.is_float32(kind.arrow):
        return shortest(value)
    return value


def undeclared(raw: bytes) -> object:
    """A value without a declared type: a number if it stays exact, else the text in the lake."""
    if raw in (b"true", b"false"):
        return raw == b"true"
    if raw.startswith(b'"'):
        return string_of(raw)
    if raw[:1] in b"[{":
        return raw.decode()
    try:
        number = json.loads(raw, parse_float=Decimal)
    except ValueError:  # more digits than Python turns into an integer
        return raw.decode()
    if isinstance(number, int):
        return number
    return float(number) if Decimal(repr(float(number))) == number else raw.decode()
