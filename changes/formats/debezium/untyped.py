"""Column types from the configuration, for Debezium's records without schema.

They may be the words of ``changes.formats.engine.configured_types``, or Debezium's own names: a
number may be
days, milliseconds or microseconds, and only ``io.debezium.time.…`` says which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from changes.formats.debezium.types import (
    NAMED_SENSES,
    Field,
    Sense,
    Wire,
    WireType,
    from_schema,
    is_named,
)
from changes.formats.engine.configured_types import configured_type
from changes.model.model import CHANGELOG_NAMES, ColumnTypes, TableSchema
from changes.sql.convert import ValueMisfit

# Reads records without types by the types of the table's stored columns.

_WHAT_HELPS = ", as which the column is stored, and the record declares no type (set types)"
_BASE64 = re.compile(r'"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"')
_NO_NUMBER = re.compile(r'"[+-]?(?:nan|inf|infinity)"', re.IGNORECASE)
_UNSIGNED = pa.decimal128(20, 0)
"""What an unsigned integer of 64 bits is stored as; without its type it may come as negative."""

_VALUE_SHOWN = 60
_CHANGELOGS = frozenset(CHANGELOG_NAMES)


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


_BARE = frozenset((Sense.WHOLE, Sense.TEXT, Sense.BYTES))

_NAME = re.compile(r"((?:io\.debezium|org\.apache)\.[\w.]+?) *(?:\( *(\d+) *(?:, *(\d+) *)?\))?")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_BITS = "io.debezium.data.Bits"
_NUMBERS_HINT = " in text (a number needs io.debezium.time.MicroTimestamp or its like)"


@dataclass(frozen=True, slots=True)
class ConfiguredWireTypes:
    """The configured types of a target's columns, by name without regard to case.

    ``stored`` are the types of the table's columns, for records that declare none.
    """

    types: Mapping[str, WireType] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, WireType] = field(default_factory=dict)

    @classmethod
    def of(cls, types: ColumnTypes) -> ConfiguredWireTypes:
        """Read a route's types. Raises ValueError, which names the column."""
        found: dict[str, WireType] = {}
        said: dict[str, str] = {}
        for name, words in types:
            lower = name.lower()
            if lower in found:
                raise ValueError(f"{name}: declared twice (case aside)")
            try:
                kind = found[lower] = configured_wire_type(words)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            moment = kind.sense is Sense.PLAIN and pa.types.is_timestamp(kind.arrow)
            said[lower] = words + (_NUMBERS_HINT if moment else "")
        return cls(found, said)

    def with_stored(self, stored: TableSchema) -> ConfiguredWireTypes:
        """The same, with the types of a table's columns."""
        return replace(self, stored=stored_types(stored, self.types))

    def type_of(self, name: str) -> WireType | None:
        """The column's configured type, None where there is none."""
        return self.types.get(name.lower())

    def over(self, name: str, seen: WireType) -> WireType:
        """The type by a schema, or the configured one where that is Debezium's own and the schema
        has a bare number, text or bytes: Protobuf's schemas have no names of types."""
        configured = self.type_of(name)
        if configured is None or configured.sense not in NAMED_SENSES or seen.sense not in _BARE:
            return seen
        return replace(configured, wire=seen.wire)

    def stored_as(self, name: str) -> WireType | None:
        """The type of the table's column, None where it decides nothing."""
        return self.stored.get(name.lower())

    def is_text(self, name: str) -> bool:
        """Whether the column is configured as plain text."""
        return self.type_of(name) == _TEXT

    def words_of(self, name: str) -> str:
        """That type for errors."""
        return self.words.get(name.lower(), "")


NOTHING_CONFIGURED = ConfiguredWireTypes()


def configured_wire_type(words: str) -> WireType:
    """Parse a configured type. Raises ValueError."""
    found = _NAME.fullmatch(words.strip())
    if found is not None:
        return _named(found[1], found[2], found[3])
    kind = configured_type(words)
    return WireType(
        kind.arrow, kind.form, kind.labels, sense=_configured_sense(kind.arrow), wire=Wire.RAW
    )


def _named(name: str, first: str | None, second: str | None) -> WireType:
    if name == _DECIMAL:
        if first is None:
            raise ValueError(f"{name} needs its digits, like {name}(10,2)")
        parameters = {"connect.decimal.precision": first, "scale": second or "0"}
    elif name == _BITS:
        parameters = {"length": first or ""}
    elif is_named(name) and first is None:
        parameters = {}
    else:
        raise ValueError(f"{name} is no type of Debezium's that is known here")
    return replace(from_schema(Field("bytes", "", name, dict(parameters))), wire=Wire.RAW)


def _configured_sense(arrow: pa.DataType) -> Sense:
    if pa.types.is_boolean(arrow):
        return Sense.BOOLEAN
    if pa.types.is_integer(arrow):
        return Sense.WHOLE
    if pa.types.is_floating(arrow):
        return Sense.FLOAT
    if pa.types.is_binary(arrow):
        return Sense.BYTES
    return Sense.DATE if pa.types.is_date(arrow) else Sense.PLAIN


_TEXT = configured_wire_type("string")
