"""Computes the value of stored rows in an added column of MySQL: DEFAULT, or the server's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from changes.model.model import AddColumn, Column
from changes.model.types import TIMESTAMP_UTC, SourceType, TextForm
from changes.sql.convert import convert
from changes.sql.mysql.columns import (
    BINARIES,
    BYTES,
    DECIMALS,
    NUMBERS,
    TEXTS,
    Definition,
    is_introducer,
    kind_of,
    place_of,
)
from changes.sql.mysql.tokens import Token, words
from changes.sql.mysql.types import size

_UNICODE = words("utf8 utf8mb3 utf8mb4")
_BEYOND_ASCII = words("ascii binary latin1 latin2 latin5 latin7 greek hebrew euckr gbk gb2312 big5")
"""Character sets in which ASCII's bytes are what they are in ASCII."""

_MOST_BITS = 64
"""Of a number that is written in bits, or in hexadecimal digits."""

_FRACTION = re.compile(r"\.([0-9]+)")

_CLOCK = re.compile(r"-?\d{2,3}:[0-5]\d:[0-5]\d(\.\d{1,6})?", re.ASCII)


_PLAIN = re.compile(r"-?[1-9]\d{0,17}|-?(0|[1-9]\d{0,8})\.\d*[1-9]\d*|0", re.ASCII)
"""A number that the server writes as it is written."""


class Unknowable(Exception):
    """What stored rows show in the new column is unknown."""


def as_added(column: Definition) -> AddColumn:
    """The step of an ADD COLUMN; raises Unknowable."""
    kind = kind_of(column)
    added = Column(column.name, kind.arrow)
    if kind.labels and "\\" in column.type:
        raise Unknowable("whether a backslash in its labels stands for itself depends on sql_mode")
    if column.generated:
        raise Unknowable("it is generated, and its values in stored rows are unknown")
    if column.auto_increment or column.base == "SERIAL":
        raise Unknowable("AUTO_INCREMENT numbers the stored rows")
    if column.default is not None:
        if _is_null(column.default):
            return AddColumn(added)
        _check_long(column, column.default)
        default = _value(column, kind, _literal(column, kind, column.default))
        return AddColumn(added, default, fixed_bytes=_fixed_bytes(column))
    if column.nullable is False:
        return AddColumn(added, _implicit(column, kind), fixed_bytes=_fixed_bytes(column))
    if column.base == "TIMESTAMP" and column.nullable is None:
        raise Unknowable("a TIMESTAMP that says neither NULL nor DEFAULT differs by server setting")
    return AddColumn(added)


def _is_long(column: Definition) -> bool:
    return column.base.endswith(("TEXT", "BLOB")) or column.base in ("LONG", "JSON")


def _check_long(column: Definition, default: Sequence[Token]) -> None:
    """Refuse ``TEXT DEFAULT ''``, which MySQL (not strict) takes for none at all: NULL."""
    bare = not column.computed and len(default) == 1
    empty = default[0].text[1:] == "''" or (default[0].kind == "string" and not default[0].text)
    if _is_long(column) and bare and empty and column.nullable is not False:
        raise Unknowable(f"DEFAULT '' of a {column.type} column is '' in MariaDB, NULL in MySQL")


def _is_null(default: Sequence[Token]) -> bool:
    return len(default) == 1 and default[0].keyword == "NULL"


def _literal(column: Definition, kind: SourceType, default: Sequence[Token]) -> str:
    """A constant default as text; raises Unknowable where it is computed."""
    sign = ""
    tokens = list(default)
    if tokens[0].kind == "sign" and tokens[0].text in "+-" and len(tokens) == 2:
        sign = tokens.pop(0).text.replace("+", "")
    elif is_introducer(tokens[0]) and len(tokens) == 2 and tokens[1].kind == "string":
        _check_character_set(tokens.pop(0), tokens[0])
        if not tokens[0].text.isascii() and _is_long(column):
            raise Unknowable(f"MariaDB writes its DEFAULT in a {column.type} column in its own way")
    only = tokens[0]
    if len(tokens) == 1:
        if only.kind == "number" or (only.kind == "string" and not sign):
            if kind.form is TextForm.BYTES and not only.text.isascii():
                raise Unknowable("the bytes of its DEFAULT depend on a session's character set")
            _check_kind(column, kind, sign, only)
            return sign + only.text
        if only.kind in ("bits", "hex") and not sign:
            return _bit_string(only, kind)
        if only.keyword in ("TRUE", "FALSE") and not kind.labels:
            return "1" if only.keyword == "TRUE" else "0"
    said = " ".join(token.text for token in default)
    raise Unknowable(f"DEFAULT {said} is not a constant")


def _check_kind(column: Definition, kind: SourceType, sign: str, token: Token) -> None:
    """Refuse a number as text, or text as a number, that the server converts in its own way.

    It writes ``1e3`` as 1000, reads a number as the place of a label, and the text ``'1'`` as the
    bytes of a BIT or the year 2001.
    """
    number = token.kind == "number"
    labels = kind.form in (TextForm.ENUM, TextForm.SET)
    texts = kind.form is TextForm.BYTES or pa.types.is_string(kind.arrow)
    plain = _PLAIN.fullmatch(sign + token.text)
    own_way = number and (labels or (texts and plain is None))
    if not number and (column.base == "BIT" or (column.base == "YEAR" and len(token.text) != 4)):
        own_way = True
    if own_way:
        raise Unknowable(f"DEFAULT {token.text} of a {column.type} column is unknown")


def _check_character_set(introducer: Token, text: Token) -> None:
    """``_latin1'é'`` reads the bytes of the session's character set as latin1."""
    name = introducer.text[1:].lower()
    if name not in _UNICODE and not (name in _BEYOND_ASCII and text.text.isascii()):
        raise Unknowable(f"what its DEFAULT reads depends on how its text is {introducer.text}")


def _bit_string(token: Token, kind: SourceType) -> str:
    """``b'101'`` and ``x'4D'`` are bytes in columns of bytes or text, else numbers."""
    base = 2 if token.kind == "bits" else 16
    digits = token.text[2:].rstrip("'")
    number = int(digits or "0", base)
    if kind.form is TextForm.BYTES or pa.types.is_string(kind.arrow):
        per_byte = 8 if base == 2 else 2
        text = number.to_bytes(-(-len(digits) // per_byte), "big").decode("latin-1")
        if kind.form is not TextForm.BYTES and not text.isascii():
            raise Unknowable("what its DEFAULT reads depends on the column's character set")
        return text
    if number >= 1 << _MOST_BITS:
        raise Unknowable(f"its DEFAULT is longer than {_MOST_BITS} bits")
    return str(number)


def _implicit(column: Definition, kind: SourceType) -> object:
    """What MySQL fills in for NOT NULL without DEFAULT."""
    if column.base in NUMBERS or column.base == "BIT":
        return _value(column, kind, "0")
    if column.base in TEXTS | BINARIES | {"BINARY", "SET"}:
        return _value(column, kind, "")
    known = {"YEAR": "0000", "TIME": "00:00:00"}
    if column.base in known:
        return _value(column, kind, known[column.base])
    if column.base == "ENUM" and kind.labels:
        return kind.labels[0]
    raise Unknowable(f"NOT NULL without DEFAULT has no usable value as {column.type}")


def _value(column: Definition, kind: SourceType, text: str) -> object:
    """A constant as the rows would show it; raises Unknowable."""
    if kind.arrow.equals(TIMESTAMP_UTC):
        raise Unknowable("a TIMESTAMP's default depends on the time zone of who ran the statement")
    shown = _as_printed(column, kind, text)
    if shown is None:
        raise Unknowable(f"DEFAULT {text!r} of a {column.type} column is unknown")
    try:
        return convert(pa.array([shown], pa.string()), kind, "UTC")[0].as_py()
    except pa.ArrowInvalid as error:
        raise Unknowable(f"DEFAULT {text!r} does not fit {column.type}") from error


def _as_printed(column: Definition, kind: SourceType, text: str) -> str | None:
    """The constant as a message would carry it; None where that is unknown."""
    if kind.form in (TextForm.ENUM, TextForm.SET):
        return _numbered(kind, text)
    if column.base in NUMBERS and not _is_exact(column, text):
        return None
    if column.base == "DATETIME":
        return text if _keeps_fraction(column, text) else None
    if kind.form is TextForm.BYTES:
        return _bytes_text(column, text)
    if kind.form is TextForm.TIME:
        return text if _CLOCK.fullmatch(text) and _keeps_fraction(column, text) else None
    if column.base == "YEAR":
        return text if re.fullmatch("0|[0-9]{4}", text) else None
    if pa.types.is_string(kind.arrow):
        if column.base not in TEXTS:
            return None
        text = text.rstrip(" ") if column.padded else text
        return text if _has_room(column, text) else None
    return text


def _has_room(column: Definition, text: str) -> bool:
    """MySQL cuts off blanks that are too many, MariaDB refuses the statement."""
    sizes = _sizes(column)
    return not sizes or len(text) <= sizes[0]


def _is_exact(column: Definition, text: str) -> bool:
    """Whether a number stays what it is: FLOAT(m,d) rounds and clamps, unsigned cuts at 0."""
    if "unsigned" in column.type.lower() and text.lstrip().startswith("-"):
        return False
    digits = _sizes(column)
    if len(digits) < 2 or column.base in DECIMALS:
        return True
    whole, places = digits[0] - digits[1], digits[1]
    found = re.fullmatch(r"[+-]?([0-9]*)\.?([0-9]*)", text)
    return found is not None and len(found[1]) <= whole and len(found[2]) <= places


def _keeps_fraction(column: Definition, text: str) -> bool:
    """Digits beyond the declared ones: MariaDB cuts them off, MySQL rounds, and ``sql_mode`` can
    turn either round."""
    found = _FRACTION.search(text)
    declared = _sizes(column) or [0]
    return found is None or not found[1][declared[0] :].strip("0")


def _sizes(column: Definition) -> list[int]:
    """The numbers that a type has in parentheses; a server takes no others than whole ones."""
    found = (size(token.text) for token in column.arguments if token.kind == "number")
    return [number for number in found if number is not None]


def _bytes_text(column: Definition, text: str) -> str | None:
    """BINARY is filled up with zero bytes, which the binlog leaves out again."""
    if _fixed_bytes(column):
        return text.rstrip("\0")
    return text if column.base in BINARIES or column.charset == BYTES else None


def _fixed_bytes(column: Definition) -> int:
    """The length of a BINARY, 0 of other types."""
    if column.base == "BINARY" or (column.charset == BYTES and column.padded):
        return next(iter(_sizes(column)), 1)
    return 0


def _numbered(kind: SourceType, text: str) -> str | None:
    """A label's number, a set's mask. None where a label is none of them, or may be several."""
    named = [text] if kind.form is TextForm.ENUM else [part for part in text.split(",") if part]
    places = {place_of(label, kind.labels) for label in named}
    numbers = [place for place in places if place is not None]
    if len(numbers) < len(places):
        return None
    if kind.form is TextForm.ENUM:
        return str(numbers[0] + 1)
    return str(sum(1 << place for place in numbers))
