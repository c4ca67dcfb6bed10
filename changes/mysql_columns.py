"""Reads a column's definition in MySQL's SQL, and what rows stored before it show in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from changes.convert import convert
from changes.model import AddColumn, Column
from changes.mysql_tokens import Cursor, NotUnderstood, Token, words
from changes.mysql_types import from_mysql
from changes.types import TIMESTAMP_UTC, Reading, SourceType

_TEXTS = words(
    "CHAR VARCHAR CHARACTER NCHAR NVARCHAR TINYTEXT TEXT MEDIUMTEXT LONGTEXT LONG NATIONAL"
)
_BINARIES = words("VARBINARY TINYBLOB BLOB MEDIUMBLOB LONGBLOB")
_NUMBERS = words(
    "TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 BOOL BOOLEAN "
    "DECIMAL NUMERIC DEC FIXED FLOAT DOUBLE REAL FLOAT4 FLOAT8"
)
_OTHERS = words(
    "DATE DATETIME TIMESTAMP TIME YEAR BIT ENUM SET JSON BINARY SERIAL UUID INET4 INET6 VECTOR "
    "GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON "
    "GEOMETRYCOLLECTION GEOMCOLLECTION"
)
_TYPES = _TEXTS | _BINARIES | _NUMBERS | _OTHERS
_SECOND_WORDS = words("PRECISION VARYING VARCHAR CHAR CHARACTER VARBINARY")
_SIGNS = words("UNSIGNED SIGNED ZEROFILL")
_PLAIN = words("VISIBLE INVISIBLE ASCII UNICODE BYTE BINARY COMPRESSED VIRTUAL STORED")
_WITH_VALUE = words(
    "COMMENT COLLATE CHARSET COLUMN_FORMAT STORAGE SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE "
    "SECONDARY_ENGINE_ATTRIBUTE"
)

_CLOCK = re.compile(r"-?\d{2,3}:[0-5]\d:[0-5]\d")


class Unknowable(Exception):
    """What stored rows show in the new column can't be told."""


@dataclass(slots=True)
class Definition:
    """A column as a statement defines it. ``default`` None: no DEFAULT clause."""

    name: str
    base: str
    type: str
    arguments: Sequence[Token] = ()
    nullable: bool | None = None
    default: tuple[Token, ...] | None = None
    primary: bool = False
    auto_increment: bool = False
    generated: bool = False


def read_definition(cursor: Cursor, sql: str) -> Definition:
    """Take name, type and attributes; raises NotUnderstood at a word it doesn't know."""
    column = _read_type(cursor, cursor.name(), sql)
    while not cursor.at_end and not cursor.is_words("PARTITION", "BY"):
        _read_attribute(cursor, column)
    return column


def _read_type(cursor: Cursor, name: str, sql: str) -> Definition:
    first = last = cursor.next()
    base = first.text.upper()
    if first.kind != "word" or base not in _TYPES:
        raise NotUnderstood(f"unknown type {first.text!r}")
    while (token := cursor.peek()) is not None and cursor.accept_any(_SECOND_WORDS):
        last = token
    arguments: Sequence[Token] = ()
    text = sql[first.start : last.end]
    if cursor.at_group():
        arguments = cursor.group()
        text += f"({sql[arguments[0].start : arguments[-1].end]})" if arguments else "()"
    while sign := cursor.accept_any(_SIGNS):
        text += f" {sign.lower()}"
    return Definition(name, base, text, arguments)


def _read_attribute(cursor: Cursor, column: Definition) -> None:
    if cursor.accept("NOT", "NULL"):
        column.nullable = False
    elif cursor.accept("NULL"):
        column.nullable = True
    elif cursor.accept("DEFAULT"):
        column.default = _default_tokens(cursor)
    elif cursor.accept("ON", "UPDATE"):
        cursor.next()
        if cursor.at_group():
            cursor.group()
    elif cursor.accept("AUTO_INCREMENT"):
        column.auto_increment = True
    elif cursor.accept("PRIMARY") or cursor.is_words("KEY"):
        cursor.accept("KEY")
        column.primary = True
    elif cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
        column.generated = True
        cursor.group()
    else:
        _read_harmless(cursor)


def _read_harmless(cursor: Cursor) -> None:
    """What says nothing about a stored row's value."""
    if cursor.accept("UNIQUE"):
        cursor.accept("KEY")
    elif cursor.accept("FIRST") or cursor.accept_any(_PLAIN) or cursor.accept("PERSISTENT"):
        return
    elif cursor.accept("AFTER"):
        cursor.name()
    elif (
        cursor.accept("CHARACTER", "SET")
        or cursor.accept("CHAR", "SET")
        or cursor.accept_any(_WITH_VALUE)
    ):
        cursor.accept_sign("=")
        cursor.next()
    elif cursor.accept("CONSTRAINT"):
        if not cursor.is_words("CHECK"):
            cursor.name()
    elif cursor.accept("CHECK"):
        cursor.group()
        if not cursor.accept("NOT", "ENFORCED"):
            cursor.accept("ENFORCED")
    elif cursor.accept("REFERENCES"):
        _read_reference(cursor)
    else:
        token = cursor.next()
        raise NotUnderstood(f"{token.text!r} in a column's definition")


def _read_reference(cursor: Cursor) -> None:
    cursor.name()
    if cursor.accept_sign("."):
        cursor.name()
    if cursor.at_group():
        cursor.group()
    while cursor.accept("ON", "DELETE") or cursor.accept("ON", "UPDATE"):
        if not (cursor.accept("SET") or cursor.accept("NO")):
            cursor.next()
            continue
        cursor.next()


def _default_tokens(cursor: Cursor) -> tuple[Token, ...]:
    """A literal with its sign or character set, a function with its arguments, an expression."""
    if cursor.at_group():
        inner = cursor.group()
        return tuple(inner) if len(inner) == 1 and inner[0].kind != "word" else _expression(inner)
    token = cursor.next()
    tokens = [token]
    if (token.kind == "sign" and token.text in "+-") or token.text.startswith("_"):
        tokens.append(cursor.next())
    elif cursor.at_group():
        tokens += _expression(cursor.group())
    return tuple(tokens)


def _expression(tokens: Sequence[Token]) -> tuple[Token, ...]:
    start = tokens[0].start if tokens else 0
    return (Token("sign", "(", start, start), *tokens, Token("sign", ")", start, start))


def as_added(column: Definition) -> AddColumn:
    """Give what a target needs to follow ADD COLUMN; raises Unknowable."""
    kind = from_mysql(column.type)
    added = Column(column.name, kind.arrow)
    if column.generated:
        raise Unknowable("it is generated, its values in stored rows are not told")
    if column.auto_increment or column.base == "SERIAL":
        raise Unknowable("AUTO_INCREMENT numbers the stored rows")
    if column.default is not None:
        if _is_null(column.default):
            return AddColumn(added)
        return AddColumn(added, _value(column, kind, _literal(column.default, kind)))
    if column.nullable is False:
        return AddColumn(added, _implicit(column, kind))
    if column.base == "TIMESTAMP" and column.nullable is None:
        raise Unknowable("a TIMESTAMP that says neither NULL nor DEFAULT differs by server setting")
    return AddColumn(added)


def as_changed(column: Definition) -> Column:
    """Give the column as it is from now on."""
    return Column(column.name, from_mysql(column.type).arrow)


def _is_null(default: Sequence[Token]) -> bool:
    return len(default) == 1 and default[0].kind == "word" and default[0].text.upper() == "NULL"


def _literal(default: Sequence[Token], kind: SourceType) -> str:
    """A constant default as text; raises Unknowable where it is computed."""
    sign = ""
    tokens = list(default)
    if tokens[0].kind == "sign" and tokens[0].text in "+-" and len(tokens) == 2:
        sign = tokens.pop(0).text.replace("+", "")
    elif tokens[0].kind == "word" and len(tokens) == 2 and tokens[1].kind == "string":
        tokens.pop(0)
    only = tokens[0]
    if len(tokens) == 1:
        if only.kind == "number" or (only.kind == "string" and not sign):
            if kind.reading is Reading.BYTES and not only.text.isascii():
                raise Unknowable("the bytes of its DEFAULT depend on a session's character set")
            return sign + only.text
        if only.kind in ("bits", "hex") and not sign:
            return _bit_string(only, kind)
        if only.kind == "word" and only.text.upper() in ("TRUE", "FALSE"):
            return "1" if only.text.upper() == "TRUE" else "0"
    said = " ".join(token.text for token in default)
    raise Unknowable(f"DEFAULT {said} is not a constant")


def _bit_string(token: Token, kind: SourceType) -> str:
    """``b'101'`` and ``x'4D'`` are bytes where the column holds such or text, else numbers."""
    base = 2 if token.kind == "bits" else 16
    digits = token.text[2:].rstrip("'")
    number = int(digits or "0", base)
    if kind.reading is Reading.BYTES or pa.types.is_string(kind.arrow):
        per_byte = 8 if base == 2 else 2
        text = number.to_bytes(-(-len(digits) // per_byte), "big").decode("latin-1")
        if kind.reading is not Reading.BYTES and not text.isascii():
            raise Unknowable("what its DEFAULT reads depends on the column's character set")
        return text
    return str(number)


def _implicit(column: Definition, kind: SourceType) -> object:
    """What MySQL fills in for NOT NULL without DEFAULT."""
    if column.base in _NUMBERS or column.base == "BIT":
        return _value(column, kind, "0")
    if column.base in _TEXTS | _BINARIES | {"BINARY", "SET"}:
        return _value(column, kind, "")
    known = {"YEAR": "0000", "TIME": "00:00:00"}
    if column.base in known:
        return _value(column, kind, known[column.base])
    if column.base == "ENUM" and kind.labels:
        return kind.labels[0]
    raise Unknowable(f"NOT NULL without DEFAULT has no usable value as {column.type}")


def _value(column: Definition, kind: SourceType, text: str) -> object:
    """A constant as the rows would show it; raises Unknowable where that can't be told."""
    if kind.arrow.equals(TIMESTAMP_UTC):
        raise Unknowable("a TIMESTAMP's default depends on the time zone of who ran the statement")
    shown = _as_printed(column, kind, text)
    if shown is None:
        raise Unknowable(f"DEFAULT {text!r} of a {column.type} column is not followed")
    try:
        return convert(pa.array([shown], pa.string()), kind, "UTC")[0].as_py()
    except pa.ArrowInvalid as error:
        raise Unknowable(f"DEFAULT {text!r} does not fit {column.type}") from error


def _as_printed(column: Definition, kind: SourceType, text: str) -> str | None:
    """The constant as a message would carry it; None where that can't be told."""
    if kind.reading in (Reading.ENUM, Reading.SET):
        return _numbered(kind, text)
    if kind.reading is Reading.BYTES:
        return _bytes_text(column, text)
    if kind.reading is Reading.TIME:
        return text if not column.arguments and _CLOCK.fullmatch(text) else None
    if column.base == "YEAR":
        return text if re.fullmatch(r"0|\d{4}", text) else None
    if pa.types.is_string(kind.arrow):
        if column.base not in _TEXTS:
            return None
        return text.rstrip(" ") if column.base in ("CHAR", "NCHAR") else text
    return text


def _bytes_text(column: Definition, text: str) -> str | None:
    """BINARY is filled up with zero bytes, which the binlog leaves out again."""
    if column.base == "BINARY":
        return text.rstrip("\0")
    return text if column.base in _BINARIES else None


def _numbered(kind: SourceType, text: str) -> str | None:
    """A label's number, a set's mask: the server compares without regard to case."""
    folded = [label.casefold() for label in kind.labels]
    wanted = [text] if kind.reading is Reading.ENUM else [part for part in text.split(",") if part]
    try:
        places = {folded.index(label.rstrip(" ").casefold()) for label in wanted}
    except ValueError:
        return None
    if kind.reading is Reading.ENUM:
        return str(places.pop() + 1)
    return str(sum(1 << place for place in places))
