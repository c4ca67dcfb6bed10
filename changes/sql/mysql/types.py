"""Translates MySQL's and MariaDB's column types, as they are printed, to those of the lake."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pyarrow as pa

from changes.model.types import MAX_PRECISION, TEXT, TIMESTAMP, TIMESTAMP_UTC, SourceType, TextForm
from changes.sql.mysql.tokens import Cursor, NotUnderstood, split, tokenize, words
from changes.sql.text_forms import DECIMALS, SHAPE

_MAX_FLOAT_BITS = 24
"""``FLOAT(p)`` with a larger p is a DOUBLE in MySQL."""

_LONG_BITS = 63
"""Bits that a signed 64-bit integer holds without its sign."""

_SIZE = re.compile(r"\s*([0-9]{1,10})\s*", re.ASCII)
"""A number in a type. Python refuses to read one of some thousands of digits."""

_SMALL_INTS = frozenset(
    ("tinyint", "smallint", "mediumint", "middleint", "int1", "int2", "int3", "bool", "boolean")
)
_INTS = frozenset(("int", "integer", "int4"))
_BIG_INTS = frozenset(("bigint", "int8"))
_DOUBLES = frozenset(("double", "real", "float8"))
_BINARIES = words(
    "binary varbinary tinyblob blob mediumblob longblob geometry point linestring polygon "
    "multipoint multilinestring multipolygon geometrycollection geomcollection"
)
_CHARACTERS = words("char character varchar varcharacter tinytext text mediumtext longtext long")
_DOCUMENTS = _CHARACTERS | {"json"}

_AS_BYTES = "/* its UTF-8, byte by byte */"

_WHOLE_64 = SourceType(pa.decimal128(20, 0), TextForm.UNSIGNED)
"""Unsigned 64-bit integers: no lake type of integers holds them."""

_BYTES = SourceType(pa.binary(), TextForm.BYTES)

_SIMPLE = {
    "serial": _WHOLE_64,
    "year": SourceType(pa.int32(), TextForm.WHOLE),
    "date": SourceType(pa.date32()),
    "datetime": SourceType(TIMESTAMP),
    "timestamp": SourceType(TIMESTAMP_UTC),
    "time": SourceType(pa.string(), TextForm.TIME),
    "uuid": SourceType(pa.string(), TextForm.UUID),
    "inet4": SourceType(pa.string(), TextForm.INET4),
    "inet6": SourceType(pa.string(), TextForm.INET6),
}


def from_mysql(text: str) -> SourceType:
    """Parse a type as MySQL prints it, such as ``int(11) unsigned``; an unknown one is text.

    An unsigned integer gets the next wider type, so no value wraps.
    """
    shape = SHAPE.match(text)
    if shape is None:
        return TEXT
    base, arguments, tail = shape[1].lower(), shape[2], shape[3].lower().split()
    if base in _SMALL_INTS | _INTS | _BIG_INTS:
        return _integer(base, "unsigned" in tail or "zerofill" in tail)
    if base in DECIMALS:
        return SourceType(_decimal(arguments))
    if base in _DOUBLES:
        return SourceType(pa.float64())
    if base in ("float", "float4"):
        return SourceType(_float(arguments))
    if base == "bit":
        return _bits(arguments)
    if base in ("enum", "set"):
        return SourceType(pa.string(), TextForm(base), _labels(text))
    if base in _DOCUMENTS and text.endswith(_AS_BYTES):
        return SourceType(pa.string(), TextForm.UTF8)
    if base in _BINARIES or (base in _CHARACTERS and _holds_bytes(tail)):
        return _BYTES
    return _SIMPLE.get(base, TEXT)


def as_bytes(text: str) -> str:
    """Mark a type of texts that come byte by byte; other types stay."""
    marked = f"{text} {_AS_BYTES}"
    return marked if from_mysql(marked).form is TextForm.UTF8 else text


def size(text: str) -> int | None:
    """A number in a type's parentheses; None where it is no number, or absurdly long."""
    found = _SIZE.fullmatch(text)
    return int(found[1]) if found else None


def _integer(base: str, unsigned: bool) -> SourceType:
    if base in _BIG_INTS:
        return _WHOLE_64 if unsigned else SourceType(pa.int64(), TextForm.WHOLE)
    wide = base in _INTS and unsigned
    form = TextForm.UNSIGNED if unsigned else TextForm.WHOLE
    return SourceType(pa.int64() if wide else pa.int32(), form)


def _bits(arguments: str | None) -> SourceType:
    bits = size(arguments or "") or 1
    if bits == 1:
        return SourceType(pa.bool_())
    return SourceType(pa.int64(), TextForm.UNSIGNED) if bits <= _LONG_BITS else _WHOLE_64


def _holds_bytes(tail: Sequence[str]) -> bool:
    """``CHAR BYTE``, ``LONG VARBINARY`` and the character set named binary."""
    if "byte" in tail or "varbinary" in tail:
        return True
    pairs = itertools.pairwise(tail)
    return any(word in ("set", "charset") and value == "binary" for word, value in pairs)


def _labels(text: str) -> tuple[str, ...]:
    """The labels of an enumeration or set; none where the type is printed without them."""
    try:
        cursor = Cursor(tokenize(text))
        cursor.next()
        parts = split(cursor.group(), ",")
    except NotUnderstood:
        return ()
    if not all(len(part) == 1 and part[0].kind == "string" for part in parts):
        return ()
    return tuple(part[0].text.rstrip(" ") for part in parts)


def _decimal(arguments: str | None) -> pa.DataType:
    numbers = list(map(size, arguments.split(","))) if arguments else []
    precision, scale = (*numbers, 10, 0)[:2] if len(numbers) != 1 else (numbers[0], 0)
    if precision is None or scale is None or len(numbers) > 2:
        return pa.string()
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        return pa.string()
    return pa.decimal128(precision, scale)


def _float(arguments: str | None) -> pa.DataType:
    if (size(arguments or "") or 0) > _MAX_FLOAT_BITS:
        return pa.float64()
    return pa.float32()
