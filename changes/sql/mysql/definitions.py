"""Decides whether a new definition of a MySQL or MariaDB column preserves all stored values.

With a narrower definition the server rewrites stored values, without an event for any row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from changes.model.model import Redefined
from changes.sql.mysql.columns import Definition, read_definition
from changes.sql.mysql.tokens import Cursor, NotUnderstood, tokenize, words
from changes.sql.mysql.types import from_mysql

_WIDTHS = {
    "TINYINT": 8, "BOOL": 8, "BOOLEAN": 8, "INT1": 8, "SMALLINT": 16, "INT2": 16,
    "MEDIUMINT": 24, "MIDDLEINT": 24, "INT3": 24, "INT": 32, "INTEGER": 32, "INT4": 32,
    "BIGINT": 64, "INT8": 64, "SERIAL": 64,
}  # fmt: skip
_SIZES = {"TINY": 2**8 - 1, "": 2**16 - 1, "MEDIUM": 2**24 - 1, "LONG": 2**32 - 1}
_DECIMALS = words("DECIMAL NUMERIC DEC FIXED")
_DOUBLES = words("DOUBLE REAL FLOAT8")
_CHARS = words("CHAR CHARACTER NCHAR VARCHAR VARCHARACTER NVARCHAR NATIONAL LONG JSON")
_CLOCKS = words("DATETIME TIMESTAMP TIME")
_MOST_BITS = 64
_CHARACTER_BYTES = 4
"""At most, of any character set."""

_NARROW = words(
    "big5 dec8 cp850 hp8 koi8r latin1 latin2 swe7 ascii ujis sjis hebrew tis620 euckr koi8u gb2312 "
    "greek cp1250 gbk latin5 armscii8 utf8 ucs2 cp866 keybcs2 macce macroman cp852 latin7 cp1251 "
    "cp1256 cp1257 geostd8 cp932 eucjpms utf8mb3 default"
)
"""Character sets that don't hold every character; the server's default is unknown."""


class Family(Enum):
    """Types whose values convert to each other as they are."""

    WHOLE = "whole"
    DECIMAL = "decimal"
    FLOAT = "float"
    BITS = "bits"
    TEXT = "text"
    BYTES = "bytes"
    ENUM = "enum"
    SET = "set"
    CLOCK = "clock"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Shape:
    """A column's capacity: ``least`` is guaranteed, ``most`` is possible (characters, bytes, bits).

    For WHOLE they are the smallest and the largest number. For DECIMAL and CLOCK ``least`` is 0 and
    ``most`` the digits before the point. ``scale``: digits after it. ``fixed``: blanks or zeros at
    the end don't count. ``name`` separates types of the same capacity.
    """

    family: Family
    least: int = 0
    most: int = 0
    scale: int = 0
    fixed: bool = False
    unsigned: bool = False
    name: str = ""
    labels: tuple[str, ...] = ()
    charset: str | None = None


def shape_of(type_: str, charset: str | None = None) -> Shape | None:
    """Parse a type as MySQL prints it; None for an unknown one."""
    text = f"`c` {type_}"
    try:
        column = read_definition(Cursor(tokenize(text)), text)
        return _shape(column, charset or column.charset)
    except (NotUnderstood, ValueError):
        return None


def as_redefined(column: Definition, old: str | None) -> Redefined:
    """The redefinition of a column, for its stored values; ``old``: its former name."""
    return Redefined(
        old or column.name,
        column.name,
        column.type,
        column.charset,
        column.nullable is False,
        column.generated,
    )


def stored_shape(stored: pa.DataType) -> Shape | None:
    """The source's shape by the lake's type of a column; None where that is ambiguous."""
    if pa.types.is_int32(stored) or pa.types.is_int64(stored):
        bits = stored.bit_width - 1
        return Shape(Family.WHOLE, -(2**bits), 2**bits - 1)
    if pa.types.is_decimal(stored):
        return Shape(Family.DECIMAL, 0, stored.precision - stored.scale, stored.scale)
    if pa.types.is_floating(stored):
        return Shape(Family.FLOAT, 0, stored.bit_width)
    if pa.types.is_boolean(stored):
        return Shape(Family.BITS, 1, 1)
    if pa.types.is_date(stored):
        return Shape(Family.OTHER, name="DATE")
    if pa.types.is_timestamp(stored):
        name = "DATETIME" if stored.tz is None else "TIMESTAMP"
        return Shape(Family.CLOCK, scale=6, name=name)
    return None


def keeps(old: Shape, new: Shape) -> bool:
    """Whether every value of ``old`` is the same, and shown alike, in ``new``."""
    if new.charset != old.charset and not keeps_texts(new.charset):
        return False
    if old == new:
        return True
    if new.name == "JSON":
        return old.name == "JSON"
    if new.family is Family.TEXT:
        return _fits_text(old, new)
    if old.family is not new.family:
        return _other_number(old, new)
    match old.family:
        case Family.WHOLE:
            return new.least <= old.least and old.most <= new.most
        case Family.DECIMAL | Family.CLOCK:
            signed = old.unsigned or not new.unsigned
            return signed and old.name == new.name and _digits_fit(old, new)
        case Family.FLOAT:
            plain = not new.name or new.name == old.name
            return plain and old.most <= new.most and (old.unsigned or not new.unsigned)
        case Family.BITS:
            return old.most <= new.most
        case Family.BYTES:
            # A longer BINARY has more zero bytes at its end, which some readers put into rows.
            room = old.most == new.most if new.fixed else old.most <= new.least
            return old.fixed == new.fixed and room
        case Family.ENUM:
            return bool(old.labels) and set(old.labels) <= set(new.labels)
        case Family.SET:
            left = iter(new.labels)
            return bool(old.labels) and all(label in left for label in old.labels)
        case _:
            return False


def keeps_texts(charset: str | None) -> bool:
    """Whether a character set holds every character; None: it is not named."""
    return charset is None or charset not in _NARROW


def _digits_fit(old: Shape, new: Shape) -> bool:
    return old.most <= new.most and old.scale <= new.scale


def _fits_text(old: Shape, new: Shape) -> bool:
    if old.family is Family.TEXT:
        return old.most <= new.least and (old.fixed or not new.fixed)
    if old.family is Family.ENUM and old.labels:
        return max(map(len, old.labels)) <= new.least
    if old.family is Family.SET and old.labels:
        return len(",".join(old.labels)) <= new.least
    return False


def _other_number(old: Shape, new: Shape) -> bool:
    """Whole numbers, and bits, in another type of numbers."""
    if old.family is Family.BITS:
        old = Shape(Family.WHOLE, 0, 2**old.most - 1)
        if new.family is Family.WHOLE:
            return old.most <= new.most
    if old.family is not Family.WHOLE or (new.unsigned and old.least < 0):
        return False
    largest = max(-old.least, old.most)
    if new.family is Family.DECIMAL:
        return len(str(largest)) <= new.most
    exact = {32: 2**24, 64: 2**53}
    return new.family is Family.FLOAT and not new.name and largest <= exact[new.most]


def _shape(column: Definition, charset: str | None) -> Shape | None:
    base, numbers = column.base, _numbers(column)
    first = numbers[0] if numbers else None
    unsigned = bool({"unsigned", "zerofill"} & set(column.type.lower().split()))
    if base in _WIDTHS:
        bits = _WIDTHS[base]
        if unsigned or base == "SERIAL":
            return Shape(Family.WHOLE, 0, 2**bits - 1)
        return Shape(Family.WHOLE, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if base in _DECIMALS:
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])
        return Shape(Family.DECIMAL, 0, precision - scale, scale, unsigned=unsigned)
    if base in _DOUBLES or base in ("FLOAT", "FLOAT4"):
        wide = base in _DOUBLES or (len(numbers) == 1 and numbers[0] > 24)
        places = ",".join(map(str, numbers)) if len(numbers) == 2 else ""
        return Shape(Family.FLOAT, 0, 64 if wide else 32, unsigned=unsigned, name=places)
    if base == "BIT":
        bits = 1 if first is None else first
        return Shape(Family.BITS, 1, bits) if bits <= _MOST_BITS else None
    if base in ("ENUM", "SET"):
        labels = from_mysql(column.type).labels
        return Shape(Family(base.lower()), labels=labels, charset=charset)
    if base in _CLOCKS:
        return Shape(Family.CLOCK, scale=first or 0, name=base)
    return _long_shape(column, first, charset)


def _long_shape(column: Definition, size: int | None, charset: str | None) -> Shape:
    """Of texts and bytes, and of what is neither. JSON is printed as text, NATIONAL is UTF-8."""
    base, rest = column.base, column.type.upper().split("(")[0].split()[1:]
    name = base.removesuffix("TEXT").removesuffix("BLOB")
    binary = base.endswith(("BINARY", "BLOB")) or "VARBINARY" in rest or charset == "binary"
    if base in ("BINARY", "VARBINARY"):
        room = size or 1
        return Shape(Family.BYTES, room, room, fixed=base == "BINARY")
    if base in _CHARS and base not in ("LONG", "JSON") and not binary:
        room, charset = size or 1, charset or ("utf8" if base.startswith("N") else None)
        return Shape(Family.TEXT, room, room, fixed=column.padded, charset=charset)
    if base in ("LONG", "JSON") or (name != base and name in _SIZES):
        most = _SIZES[{"LONG": "MEDIUM", "JSON": "LONG"}.get(base, name)]
        if size is not None:  # the smallest that holds so many
            most = min(s for s in _SIZES.values() if s >= min(size * _CHARACTER_BYTES, 2**32 - 1))
        if binary:
            return Shape(Family.BYTES, size or most, most)
        # Of the largest no text comes near the end.
        room = size or (most if most == _SIZES["LONG"] else most // _CHARACTER_BYTES)
        document = base if base == "JSON" else ""
        return Shape(Family.TEXT, room, most, name=document, charset=charset)
    if base == "YEAR":
        return Shape(Family.OTHER, name=base)
    return Shape(Family.OTHER, name=" ".join(column.type.upper().split()))


def _numbers(column: Definition) -> list[int]:
    return [int(token.text) for token in column.arguments if token.kind == "number"]
