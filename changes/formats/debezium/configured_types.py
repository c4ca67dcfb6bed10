"""Column types from the configuration, for Debezium's records without schema.

They may be the words of ``changes.configured_types``, or Debezium's own names: a number may be
days, milliseconds or microseconds, and only ``io.debezium.time.…`` says which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from changes.configured_types import configured_type
from changes.formats.debezium.stored import stored_types
from changes.formats.debezium.types import Field, Sense, Wire, WireType, from_schema, is_named
from changes.model import ColumnTypes, TableSchema

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
    return WireType(kind.arrow, kind.form, kind.labels, sense=_sense(kind.arrow), wire=Wire.RAW)


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


def _sense(arrow: pa.DataType) -> Sense:
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
