"""Translates Debezium's column types, from a schema block, to those of the lake.

The semantic name decides: a number alone may be days or anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa
from msgspec import Raw, Struct

from changes.formats.engine.column_changes import ListedType
from changes.model.digits import is_digits
from changes.model.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_UTC, SourceType


class Wire(Enum):
    """The JSON type of a column's values. Any other JSON is RAW."""

    STR = "string"
    INT = "integer"
    FLOAT = "floating-point number"
    BOOL = "boolean"
    RAW = "raw"


class Sense(Enum):
    """What a value means. Times and dates count from midnight or 1970, as their names say."""

    TEXT = "text"
    PLAIN = "plain"
    """Text, read by its Arrow type alone (``changes.sql.convert``): a configured type."""
    DATE = "date"
    """In days, or as text: a declared date."""
    WHOLE = "whole"
    WRAPPED = "wrapped"
    """An unsigned 64-bit integer that came through a signed one."""
    BOOLEAN = "boolean"
    FLOAT = "float"
    BYTES = "bytes"
    DECIMAL = "decimal"
    """Base64 of the unscaled integer, big-endian, or a JSON number."""
    VARIABLE = "variable"
    """A decimal that carries its own scale."""
    BITS = "bits"
    """Base64 of an integer, little-endian."""
    DAYS = "days"
    TIME_MS = "time in ms"
    TIME_US = "time in us"
    TIME_NS = "time in ns"
    MILLIS = "ms"
    MICROS = "us"
    NANOS = "ns"
    ZONED = "zoned timestamp"
    ISO_DATE = "iso date"
    ISO_TIME = "iso time"
    ISO_TIMESTAMP = "iso timestamp"
    PARTS_DATE = "date in parts"
    PARTS_TIME = "time in parts"
    PARTS_TIMESTAMP = "timestamp in parts"
    PARTS_ZONED = "zoned timestamp in parts"
    GEOMETRY = "geometry"
    DOCUMENT = "document"
    """A structure, list or map: its JSON."""


@dataclass(frozen=True, slots=True)
class WireType(SourceType):
    """A column's type with the encoding of its values.

    ``scale`` is a decimal's, ``length`` the number of bits. ``stored``: the type is that of the
    table's column, and the record has none (``debezium.stored``). ``item`` is the type of an
    array's items, where they are encoded.
    """

    sense: Sense = Sense.TEXT
    wire: Wire = Wire.STR
    scale: int = 0
    length: int = 0
    stored: bool = False
    item: WireType | None = None

    def means(self, other: WireType) -> bool:
        """Whether a value of one would be read alike as the other's."""
        mine, others = (self.sense, self.scale, self.item), (other.sense, other.scale, other.item)
        return mine == others


class Field(Struct, gc=False):
    """A field of a Connect schema, as JsonConverter writes it; what it holds is optional."""

    type: str = ""
    field: str | None = None
    name: str | None = None
    parameters: dict[str, Any] | None = None
    fields: list[Field] | None = None
    items: Field | None = None
    optional: Any = None
    default: Raw = Raw(b"null")

    @property
    def may_be_filled(self) -> bool:
        """Whether its default may stand where the source has NULL.

        Kafka Connect's converters write it so by default (``replace.null.with.default``), and no
        record shows the setting.
        """
        return self.optional is True and bytes(self.default) != b"null"


UNDECLARED = WireType(pa.string())
"""A column without a schema: text, and numbers with all their digits."""
_DOCUMENT = WireType(pa.string(), sense=Sense.DOCUMENT, wire=Wire.RAW)
LARGEST_SCALE = 1000
"""PostgreSQL's; no other source has a larger one."""
_PG_SCALES = 2048
"""PostgreSQL stores a scale in eleven bits, and Debezium sends a negative one as stored there: 2046
is -2, and the value comes with that many digits after its point, all of them zero."""

_WHOLE_64 = pa.decimal128(20, 0)
_LONG_BITS = 63

_LITERALS = {
    "boolean": WireType(pa.bool_(), sense=Sense.BOOLEAN, wire=Wire.BOOL),
    "float": WireType(pa.float32(), sense=Sense.FLOAT, wire=Wire.FLOAT),
    "float32": WireType(pa.float32(), sense=Sense.FLOAT, wire=Wire.FLOAT),
    "double": WireType(pa.float64(), sense=Sense.FLOAT, wire=Wire.FLOAT),
    "float64": WireType(pa.float64(), sense=Sense.FLOAT, wire=Wire.FLOAT),
    "string": UNDECLARED,
    "bytes": WireType(pa.binary(), sense=Sense.BYTES),
    "struct": _DOCUMENT,
    "array": _DOCUMENT,
    "map": _DOCUMENT,
}
_LITERALS |= dict.fromkeys(
    ("int8", "int16", "int32"), WireType(pa.int32(), sense=Sense.WHOLE, wire=Wire.INT)
)
_LITERALS["int64"] = WireType(pa.int64(), sense=Sense.WHOLE, wire=Wire.INT)


def _counted(arrow: pa.DataType, sense: Sense) -> WireType:
    return WireType(arrow, sense=sense, wire=Wire.INT)


def _parts(arrow: pa.DataType, sense: Sense) -> WireType:
    return WireType(arrow, sense=sense, wire=Wire.RAW)


_DAYS = _counted(pa.date32(), Sense.DAYS)
_MILLIS = _counted(TIMESTAMP, Sense.MILLIS)
_TIME_MS = _counted(pa.string(), Sense.TIME_MS)
_GEOMETRY = _parts(pa.binary(), Sense.GEOMETRY)
_TIME = "io.debezium.time."

_NAMED = {
    "io.debezium.data.VariableScaleDecimal": _parts(pa.string(), Sense.VARIABLE),
    f"{_TIME}Date": _DAYS,
    f"{_TIME}Time": _TIME_MS,
    f"{_TIME}MicroTime": _counted(pa.string(), Sense.TIME_US),
    f"{_TIME}NanoTime": _counted(pa.string(), Sense.TIME_NS),
    f"{_TIME}Timestamp": _MILLIS,
    f"{_TIME}MicroTimestamp": _counted(TIMESTAMP, Sense.MICROS),
    f"{_TIME}NanoTimestamp": _counted(TIMESTAMP, Sense.NANOS),
    f"{_TIME}ZonedTimestamp": WireType(TIMESTAMP_UTC, sense=Sense.ZONED),
    f"{_TIME}IsoDate": WireType(pa.date32(), sense=Sense.ISO_DATE),
    f"{_TIME}IsoTime": WireType(pa.string(), sense=Sense.ISO_TIME),
    f"{_TIME}IsoTimestamp": WireType(TIMESTAMP, sense=Sense.ISO_TIMESTAMP),
    f"{_TIME}StructuredDate": _parts(pa.date32(), Sense.PARTS_DATE),
    f"{_TIME}StructuredTime": _parts(pa.string(), Sense.PARTS_TIME),
    f"{_TIME}StructuredTimestamp": _parts(TIMESTAMP, Sense.PARTS_TIMESTAMP),
    f"{_TIME}StructuredZonedTimestamp": _parts(TIMESTAMP_UTC, Sense.PARTS_ZONED),
    "org.apache.kafka.connect.data.Date": _DAYS,
    "org.apache.kafka.connect.data.Time": _TIME_MS,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    "io.debezium.data.geometry.Geometry": _GEOMETRY,
    "io.debezium.data.geometry.Geography": _GEOMETRY,
    "io.debezium.data.geometry.Point": _GEOMETRY,
}

NAMED_SENSES = {kind.sense for kind in _NAMED.values()} | {Sense.DECIMAL, Sense.BITS}


def from_schema(field: Field) -> WireType:
    """The type of a field; an unknown semantic name leaves its literal type."""
    name, parameters = field.name or "", field.parameters or {}
    if name == "org.apache.kafka.connect.data.Decimal":
        return _decimal(parameters)
    if name == "io.debezium.data.Bits":
        return _bits(_number(parameters, "length") or 0)
    if field.type == "array" and field.items is not None:
        return _array(from_schema(field.items))
    source_type = str(parameters.get("__debezium.source.column.type", "")).upper()
    if field.type == "int64" and source_type.startswith("BIGINT UNSIGNED"):
        return WireType(_WHOLE_64, sense=Sense.WRAPPED, wire=Wire.INT)
    return _NAMED.get(name) or _LITERALS.get(field.type.lower(), UNDECLARED)


_COUNTED = frozenset(
    (
        Sense.DAYS, Sense.MILLIS, Sense.MICROS, Sense.NANOS, Sense.TIME_MS, Sense.TIME_US,
        Sense.TIME_NS, Sense.DECIMAL, Sense.WRAPPED, Sense.BITS, Sense.VARIABLE,
    )
)  # fmt: skip
"""Senses whose values are readable only once they are converted."""


def as_text(kind: WireType) -> WireType:
    """The type in a column that is configured as text: other values keep all their digits.

    A structure is its JSON. Bytes stay bytes: their character set is unknown.
    """
    if pa.types.is_binary(kind.arrow):
        return kind
    if kind.sense in _COUNTED:
        return replace(kind, arrow=pa.string(), wire=Wire.RAW)
    if kind.wire is Wire.RAW:
        return _DOCUMENT
    return replace(UNDECLARED, wire=Wire.RAW)


def is_named(name: str) -> bool:
    """Whether this is a semantic name that defines the type without parameters."""
    return name in _NAMED


def words(field: Field) -> str:
    """The type as an error message names it."""
    if field.type == "bytes" and not field.name:
        return "value of bytes in base64"
    return field.name or field.type or "value of no declared type"


def described(field: Field) -> ListedType:
    """The type with all that makes it another one; labels are in the source's words."""
    left = {
        name: value
        for name, value in (field.parameters or {}).items()
        if name != "allowed" and not name.startswith("__debezium.source.")
    }
    sizes = ", ".join(f"{name.rpartition('.')[2]} {left[name]}" for name in sorted(left))
    sent = f"{words(field)} ({sizes})" if sizes else words(field)
    return ListedType(sent, source_words(field))


_LABELLED = {"io.debezium.data.Enum": "enum", "io.debezium.data.EnumSet": "set"}


def source_words(field: Field) -> str | None:
    """The source's own words (``column.propagate.source.type``), None where they are absent.

    Of an enumeration, in MySQL's words, the labels that it allows: with them in any case.
    """
    parameters = field.parameters or {}
    if (labelled := _LABELLED.get(field.name or "")) and parameters.get("allowed"):
        labels = str(parameters["allowed"]).replace("\\", "\\\\").replace("'", "''").split(",")
        quoted = "','".join(labels)
        return f"{labelled}('{quoted}')"
    base, *rest = str(parameters.get("__debezium.source.column.type", "")).split()[:3] or [""]
    length = _number(parameters, "__debezium.source.column.length")
    scale = _number(parameters, "__debezium.source.column.scale")
    sizes = ",".join(str(size) for size in (length, scale) if size is not None)
    return " ".join([f"{base}({sizes})" if sizes else base, *rest]) or None


def _array(items: WireType) -> WireType:
    """An array as JSON; nested ones have items themselves."""
    if items.sense in _COUNTED:
        return replace(_DOCUMENT, item=as_text(items))
    return _DOCUMENT if items.item is None else replace(_DOCUMENT, item=items)


def _decimal(parameters: Mapping[str, Any]) -> WireType:
    """A scale may be negative or exceed the precision; BIGINT UNSIGNED comes without precision."""
    sent = _number(parameters, "scale") or 0
    scale = sent - _PG_SCALES if LARGEST_SCALE < sent < _PG_SCALES else sent
    precision = _number(parameters, "connect.decimal.precision")
    if precision is None:
        precision = 20 if scale == 0 else MAX_PRECISION
    digits = max(precision - min(scale, 0), scale, 1)
    arrow = pa.string() if digits > MAX_PRECISION else pa.decimal128(digits, max(scale, 0))
    return WireType(arrow, sense=Sense.DECIMAL, scale=sent)


def _bits(length: int) -> WireType:
    """More than 64 bits (PostgreSQL) are kept as bytes, the lowest first, as they come."""
    if length > _LONG_BITS + 1 or length <= 0:
        return WireType(pa.binary(), sense=Sense.BYTES, length=length)
    arrow = pa.int64() if length <= _LONG_BITS else _WHOLE_64
    return WireType(arrow, sense=Sense.BITS, length=length)


def _number(parameters: Mapping[str, Any], name: str) -> int | None:
    """Parameters are text; some tools write numbers."""
    text = str(parameters.get(name, ""))
    digits = text.removeprefix("-")
    return int(text) if is_digits(digits) and len(digits) < 10 else None
