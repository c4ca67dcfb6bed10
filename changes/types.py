"""Source types in Arrow's words, and the rule by which a column's type may grow.

Enumerations, sets, bits, times, years, JSON, binary and spatial values are text for now.
"""

from __future__ import annotations

import re

import pyarrow as pa

TIMESTAMP = pa.timestamp("us")
"""MySQL's DATETIME: a wall-clock reading without a zone."""

TIMESTAMP_UTC = pa.timestamp("us", tz="UTC")
"""MySQL's TIMESTAMP: a point in time."""

MAX_PRECISION = 38
"""Digits that the lakes' decimals hold; MySQL has up to 65, such a column stays text."""

_MAX_FLOAT_BITS = 24
"""``FLOAT(p)`` with a larger p is a DOUBLE in MySQL."""

_SHAPE = re.compile(r"\s*([a-z_][a-z0-9_]*)\s*(?:\(([^()]*)\))?(.*)", re.DOTALL | re.IGNORECASE)

_SMALL_INTS = frozenset(
    ("tinyint", "smallint", "mediumint", "middleint", "int1", "int2", "int3", "bool", "boolean")
)
_INTS = frozenset(("int", "integer", "int4"))
_DECIMALS = frozenset(("decimal", "numeric", "dec", "fixed"))
_DOUBLES = frozenset(("double", "real", "float8"))


def from_mysql(text: str) -> pa.DataType:
    """Read a type as MySQL prints it, ``int(11) unsigned`` say; what is unknown is text.

    An unsigned integer gets the next wider type, so no value wraps.
    """
    shape = _SHAPE.match(text)
    if shape is None:
        return pa.string()
    base, arguments, tail = shape[1].lower(), shape[2], shape[3].lower().split()
    unsigned = "unsigned" in tail or "zerofill" in tail
    if base in _SMALL_INTS:
        return pa.int32()
    if base in _INTS:
        return pa.int64() if unsigned else pa.int32()
    if base == "serial":
        return pa.decimal128(20, 0)
    if base in ("bigint", "int8"):
        return pa.decimal128(20, 0) if unsigned else pa.int64()
    if base in _DECIMALS:
        return _decimal(arguments)
    if base in _DOUBLES:
        return pa.float64()
    if base in ("float", "float4"):
        return _float(arguments)
    return {"date": pa.date32(), "datetime": TIMESTAMP, "timestamp": TIMESTAMP_UTC}.get(
        base, pa.string()
    )


def _decimal(arguments: str | None) -> pa.DataType:
    numbers = [part.strip() for part in arguments.split(",")] if arguments else []
    if not all(part.isdecimal() for part in numbers) or len(numbers) > 2:
        return pa.string()
    precision = int(numbers[0]) if numbers else 10
    scale = int(numbers[1]) if len(numbers) == 2 else 0
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        return pa.string()
    return pa.decimal128(precision, scale)


def _float(arguments: str | None) -> pa.DataType:
    if arguments and arguments.strip().isdecimal() and int(arguments) > _MAX_FLOAT_BITS:
        return pa.float64()
    return pa.float32()


def widen(stored: pa.DataType, seen: pa.DataType) -> pa.DataType | None:
    """Give the type that holds both without loss, None where the lakes have no way there.

    A narrower ``seen`` keeps ``stored``: its values are cast up. int32 grows to int64, float32 to
    float64, a decimal in precision at the same scale, as lakes let a stored column grow.
    """
    if _holds(stored, seen):
        return stored
    grows = (
        (pa.types.is_int32(stored) and pa.types.is_int64(seen))
        or (pa.types.is_float32(stored) and pa.types.is_float64(seen))
        or (
            pa.types.is_decimal(stored)
            and pa.types.is_decimal(seen)
            and stored.scale == seen.scale
            and stored.precision < seen.precision
        )
    )
    return seen if grows else None


def _holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Tell whether every value of ``narrow`` is one of ``wide``, in the same family."""
    if wide.equals(narrow):
        return True
    if pa.types.is_decimal(wide):
        if pa.types.is_int32(narrow):
            return bool(wide.precision - wide.scale >= 10)
        if pa.types.is_int64(narrow):
            return bool(wide.precision - wide.scale >= 19)
        return bool(
            pa.types.is_decimal(narrow)
            and narrow.scale <= wide.scale
            and narrow.precision - narrow.scale <= wide.precision - wide.scale
        )
    if pa.types.is_int64(wide):
        return bool(pa.types.is_int32(narrow))
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))
