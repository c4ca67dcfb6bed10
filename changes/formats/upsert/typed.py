"""Reads upsert rows that may come with a schema: flat rows of anybody, by the types of Connect.

The record's key is the row's key, a record without a value deletes it, and rows are whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from changes.formats.debezium.explain import explain_row
from changes.formats.debezium.layout import NULL, DebeziumLayout
from changes.formats.debezium.memory import Shapes
from changes.formats.debezium.parts import (
    WRAPPED,
    Key,
    columns_of,
    field_of,
    key_of,
    members,
    prefix_of,
)
from changes.formats.debezium.places import Names
from changes.formats.debezium.record import Record
from changes.formats.debezium.rows import DebeziumRows, add_slowly
from changes.formats.debezium.types import Sense, WireType, as_text, described, from_schema
from changes.formats.debezium.unsent import NOTHING_UNAVAILABLE
from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.decoder import TableEngine
from changes.formats.engine.format import (
    VALUE_AT,
    Confidence,
    Format,
    Packed,
    RowChange,
    Statement,
    sizes,
    unpack,
)
from changes.formats.engine.json_text import is_empty, text_of
from changes.formats.engine.layout import Refused, Unfit, decoded, json_name
from changes.formats.engine.rows import Pass
from changes.formats.upsert.json import TABLE_OPTIONS, configured_table
from changes.model.model import BadMessage, ColumnTypes, FormatOptions, Head, Kind, Mode, TableName
from changes.model.types import TEXT

_NO_KEY = 'have its writer make the key an object of the key\'s columns, such as {"id": 1}'


def record_of(packed: bytes, table: TableName) -> tuple[Record, Key]:
    """A row or a delete, and its key; raises Refused."""
    try:
        key = key_of(packed)
    except Refused as refused:
        raise Refused(f"{_NO_KEY}: {refused}") from refused
    if key is None or not key.columns:
        raise Refused(f"{_NO_KEY}: it has none")
    value, fields = unpack(packed).value, columns_of(key.field)
    found = {} if is_empty(value) else members(value or b"", "the value")
    prefix: bytes | None = b""
    if found.keys() <= WRAPPED and "payload" in found:
        payload = bytes(found["payload"])
        prefix = prefix_of(value or b"", payload)
        fields = {**fields, **columns_of(field_of(found.get("schema"), "value"))}
        found = {} if payload == NULL else members(payload, "the row")
        gone = payload == NULL
    else:
        gone = is_empty(value)
    if gone:
        return Record(Kind.ROWS, "D", table, before=key.columns, fields=fields or None), key
    row = {**key.columns, **found}
    record = Record(
        Kind.ROWS, "U", table, after=row, payload=row, fields=fields or None, prefix=prefix
    )
    return record, key


def check_key(record: Record, key: Key, layout: DebeziumLayout) -> None:
    """Raise Refused unless a row has the columns of its record's key as the key has them, by type
    and value: its delete comes by the key alone."""
    types = columns_of(key.field)
    for name, cell in key.columns.items():
        mine, other = types.get(name), (record.fields or {}).get(name)
        of_key = None if mine is None else layout.seen(name, from_schema(mine))
        of_row = None if other is None else layout.seen(name, from_schema(other))
        if mine and other and of_key and of_row and not _as_one(of_key, of_row):
            texts = as_text(from_schema(mine)), as_text(from_schema(other))
            or_text = f', or take it as text (types = {{ {name} = "string" }})'
            raise Refused(
                f"{name} is {described(mine).sent} in the record's key and "
                f"{described(other).sent} in the value: have its writer give both one type"
                f"{or_text if _as_one(*texts) else ''}"
            )
        if _text((record.after or {}).get(name, cell)) != _text(cell):
            raise Refused(f"{name} is another one in the value than in the record's key")
        kind = of_row or of_key or layout.kinds.get(name)
        if kind is not None and kind.sense is Sense.FLOAT and _MINUS_ZERO.fullmatch(bytes(cell)):
            raise Refused(
                f"{name} is -0.0, which record keys tell from 0.0 and tables do not: have its "
                "writer send 0.0"
            )


def _as_one(one: WireType, other: WireType) -> bool:
    """Whether equal texts of two types are equal values: 0.1 of a float is another number than of
    a double."""
    return one.means(other) and (one.sense is not Sense.FLOAT or one.arrow.equals(other.arrow))


_MINUS_ZERO = re.compile(rb'"?-0*\.?0*(?:[eE][+-]?[0-9]+)?"?')


def _text(raw: Raw) -> str | None:
    return text_of(bytes(raw), TEXT)


class TypedUpsertRows(DebeziumRows):
    """The ``Rows`` of one table's records."""

    whole = True

    def __init__(self, table: TableName) -> None:
        super().__init__(Names(), NOTHING_UNAVAILABLE, placed=False)
        self._table = table
        self._most = BLOCK_ROWS

    def table_of(self, value: bytes, error: Exception) -> TableName:
        return self._table

    def add_one(self, into: Pass) -> None:
        packed = into.values[into.place]
        record, key = record_of(packed, self._table)
        for name in record.after or ():
            if (given := self.given.get(name.lower(), name)) != name:
                raise Unfit(f"the column names {given} and {name} differ by case only")
        check_key(record, key, into.layout)
        keys = into.layout.keys or ()
        if into.fixed and keys and {*map(str.lower, key.columns)} != {*map(str.lower, keys)}:
            here, configured = ", ".join(key.columns), ", ".join(keys)
            raise Refused(f"the record's key is ({here}), and keys says ({configured})")
        add_slowly(into, packed, record)
        if record.letter == "D" or into.fixed:  # what a row teaches of its key's beginning
            into.memory.shapes.learn_key(key.prefix, list(key.members))

    # --- many records of one layout

    def block(self, into: Pass) -> bool:
        layout: DebeziumLayout = into.layout
        values = into.values[into.place : into.place + self._most]
        cut = _cut(values, into.memory.shapes)
        read_key = _key_reader(layout) if cut else None
        if read_key is None:
            return False
        rows = decoded(_row_reader(layout), [payload or b"{}" for payload, _ in cut])
        keys = decoded(read_key, [key for _, key in cut[: len(rows)]])
        del rows[_alike(rows, keys, layout) :]
        self._most = min(BLOCK_ROWS, 2 * len(rows) + 16)  # fewer where many have to come alone
        if not rows:
            return False
        gone = [payload is None for payload, _ in cut[: len(rows)]]
        ops = "".join(["D" if each else "U" for each in gone])
        rows = [layout.gone(r, r) if each else r for r, each in zip(rows, gone, strict=True)]
        into.add_rows(rows, ops.encode(), range(into.place, into.place + len(rows)))
        into.place += len(rows)
        into.memory.moves, into.run.deleted = False, None
        return len(rows) == len(values)


def _cut(values: Sequence[bytes], shapes: Shapes) -> list[tuple[bytes | None, bytes]]:
    """The payloads and keys of the first records, as many as have a known beginning."""
    found: list[tuple[bytes | None, bytes]] = []
    bare, bare_key = shapes.bare, shapes.bare_key is not None
    for packed in values:
        size, key_size, _ = sizes(packed)
        end = VALUE_AT + max(size, 0)
        begin = next((p for p in shapes.keys if packed.startswith(p, end)), b"")
        if key_size <= 0 or not (begin or bare_key):
            break
        key = packed[end + len(begin) : end + key_size - (1 if begin else 0)]
        if size <= 0:
            found.append((None, key))
            continue
        prefix = next((p for p in shapes.payloads if packed.startswith(p, VALUE_AT)), b"")
        if not (prefix or bare):
            break
        found.append((packed[VALUE_AT + len(prefix) : end - (1 if prefix else 0)], key))
    return found


@lru_cache(maxsize=256)
def _row_reader(layout: DebeziumLayout) -> Any:
    return msgspec.json.Decoder(layout.row).decode


@lru_cache(maxsize=256)
def _key_reader(layout: DebeziumLayout) -> Any:
    """Make what reads keys of just the layout's columns; None where one can't be matched, or is
    looked at one by one (``check_key``)."""
    names = layout.keys or ()
    if not names or any(name not in layout.fields for name in names):
        return None
    if any(layout.kinds[name].sense is Sense.FLOAT for name in names):
        return None
    rename = {layout.fields[name]: json_name(name, layout.fields[name]) for name in names}
    cells = [(field, layout.cell(field)) for field in rename]
    key = msgspec.defstruct("Key", cells, rename=rename, gc=False, forbid_unknown_fields=True)
    return msgspec.json.Decoder(key).decode


def _alike(rows: Sequence[Any], keys: Sequence[Any], layout: DebeziumLayout) -> int:
    """Give rows the columns of their keys that they lack. Returns how many, from the first on,
    have the others as their keys have them."""
    alike = len(keys)
    for field in layout.key_fields:
        get = attrgetter(field)
        for place, (row, key) in enumerate(zip(rows[:alike], keys, strict=False)):
            mine, cell = get(row), get(key)
            if mine is UNSET:
                setattr(row, field, cell)
            elif type(mine) is not type(cell) or mine != cell:
                alike = place
                break
    return alike


class TypedUpsert(Format):
    """The ``Format`` of such rows in JSON; raises ValueError without the options that name a
    table."""

    name: str = "upsert"
    keyed: bool = True
    may_lack_types: bool = True
    options = TABLE_OPTIONS

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._table = configured_table(self.name, options)
        self._head = Head(Kind.ROWS, self._table)

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        """Any object may be such a row, so the format is chosen by its name alone."""
        return Confidence.NO

    def peek(self, value: bytes | None) -> Head:
        """That there is a key is looked at, and no more."""
        if value is None or len(value) < VALUE_AT or sizes(value)[1] <= 0:
            raise BadMessage(f"{self._table}: {_NO_KEY}: it has none")
        return self._head

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        try:
            record, key = record_of(value or b"", self._table)
            layout = TypedUpsertRows(self._table).layout(None, self._options.types)
            check_key(record, key, layout)
            return tuple(explain_row(value or b"", record, self._options, NOTHING_UNAVAILABLE))
        except (Refused, ValueError) as error:
            raise BadMessage(f"{self._table}: {error}") from error

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> TableEngine:
        return TableEngine(TypedUpsertRows(self._table), self._options, mode, keys, types)
