"""Reads records without types by the types of the table's stored columns.

After ``schemas.enable`` was switched off, or from a second connector without it, a value alone is
ambiguous: base64 may be digits, a number may be a time of day. Only a value that can't be of any
other type than the stored one is read; others are refused, and need a configured type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from changes.decoding.convert import ValueMisfit
from changes.formats.debezium.types import Sense, Wire, WireType
from changes.model import CHANGELOG_COLUMNS, TableSchema

_WHAT_HELPS = ", as which the column is stored, and the record tells no type (types declares one)"
_BASE64 = re.compile(r'"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"')
_NO_NUMBER = re.compile(r'"[+-]?(?:nan|inf|infinity)"', re.IGNORECASE)
_UNSIGNED = pa.decimal128(20, 0)
"""What an unsigned integer of 64 bits is stored as; without its type it may come as negative."""

_VALUE_SHOWN = 60
_CHANGELOGS = frozenset(name for name, _ in CHANGELOG_COLUMNS)


def stored_types(stored: TableSchema, declared: Mapping[str, object]) -> dict[str, WireType]:
    """The types of a table's columns, by name in lower case; none where all of them are text.

    Such a table was filled without types: there a number is text. ``declared`` are the names of
    the configured ones, which decide nothing about the others.
    """
    found: dict[str, WireType] = {}
    for column in stored.columns:
        name, sense = column.name.lower(), _sense(column.type)
        if sense is not None and name not in declared and name not in _CHANGELOGS:
            found[name] = WireType(column.type, sense=sense, wire=Wire.RAW, stored=True)
    return {} if all(kind.sense is Sense.TEXT for kind in found.values()) else found


def words_of(kind: WireType) -> str:
    """The type for errors, with the way out."""
    return f"{kind.arrow}{_WHAT_HELPS}"


def check_stored(raws: pa.Array, kind: WireType) -> None:
    """Raise ValueMisfit for the first value, raw JSON, that may be another than the stored type's.

    A value that is certainly not of that type is left to the conversion.
    """
    for row, raw in enumerate(raws.to_pylist()):
        if raw is not None and _doubtful(raw, kind):
            raise ValueMisfit(
                row, f"{raw[:_VALUE_SHOWN]} may be another value than a {words_of(kind)}"
            )


def _doubtful(raw: str, kind: WireType) -> bool:
    text = raw.startswith('"')
    if pa.types.is_string(kind.arrow):
        return not text
    if pa.types.is_decimal(kind.arrow):
        signed = kind.arrow.equals(_UNSIGNED) and raw.startswith("-")
        return signed or (text and _BASE64.fullmatch(raw) is not None)
    if pa.types.is_floating(kind.arrow):
        return text and _NO_NUMBER.fullmatch(raw) is None
    return text and pa.types.is_integer(kind.arrow)


def _sense(arrow: pa.DataType) -> Sense | None:
    """How a stored column's values are read, None where its type does not decide it."""
    if pa.types.is_string(arrow):
        return Sense.TEXT
    if pa.types.is_boolean(arrow):
        return Sense.BOOLEAN
    if pa.types.is_integer(arrow):
        return Sense.WHOLE
    if pa.types.is_floating(arrow):
        return Sense.FLOAT
    if pa.types.is_binary(arrow):
        return Sense.BYTES
    if pa.types.is_date(arrow):
        return Sense.DATE
    plain = pa.types.is_decimal(arrow) or pa.types.is_timestamp(arrow)
    return Sense.PLAIN if plain else None
