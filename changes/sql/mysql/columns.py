"""Parses a column definition in MySQL's SQL."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from changes.model.model import Column
from changes.model.types import SourceType
from changes.sql.mysql.tokens import Cursor, NotUnderstood, Token, words
from changes.sql.mysql.types import from_mysql

TEXTS = words(
    "CHAR VARCHAR VARCHARACTER CHARACTER NCHAR NVARCHAR NATIONAL TINYTEXT TEXT MEDIUMTEXT LONGTEXT "
    "LONG"
)
BYTES = "binary"
"""The character set whose texts are bytes."""

BINARIES = words("VARBINARY TINYBLOB BLOB MEDIUMBLOB LONGBLOB")
DECIMALS = words("DECIMAL NUMERIC DEC FIXED")
NUMBERS = DECIMALS | words(
    "TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 BOOL BOOLEAN "
    "FLOAT DOUBLE REAL FLOAT4 FLOAT8"
)
_OTHERS = words(
    "DATE DATETIME TIMESTAMP TIME YEAR BIT ENUM SET JSON BINARY SERIAL UUID INET4 INET6 VECTOR "
    "GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON "
    "GEOMETRYCOLLECTION GEOMCOLLECTION"
)
_TYPES = TEXTS | BINARIES | NUMBERS | _OTHERS
_PADDED = words("CHAR CHARACTER NCHAR NATIONAL")
_VARYING = words("VARYING VARCHAR VARCHARACTER")
_SECOND_WORDS = _VARYING | words("PRECISION CHAR CHARACTER VARBINARY")
_SIGNS = words("UNSIGNED SIGNED ZEROFILL")
_PLAIN = words("VISIBLE INVISIBLE ASCII UNICODE BINARY COMPRESSED VIRTUAL STORED")
_WITH_VALUE = words(
    "COMMENT COLUMN_FORMAT STORAGE SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE"
)


@dataclass(slots=True)
class Definition:
    """A column as a statement defines it. ``default`` None: no DEFAULT clause."""

    name: str
    base: str
    type: str
    arguments: Sequence[Token] = ()
    nullable: bool | None = None
    default: tuple[Token, ...] | None = None
    computed: bool = False
    """The DEFAULT is in parentheses."""
    primary: bool = False
    auto_increment: bool = False
    generated: bool = False
    charset: str | None = None
    """As it is named, or as the name of a collation begins."""

    @property
    def padded(self) -> bool:
        """A text of a fixed length, however its type is spelled: blanks at the end don't count."""
        spelled = self.type.upper().partition("(")[0].split()
        return self.base in _PADDED and not _VARYING & set(spelled)


def read_definition(cursor: Cursor, sql: str) -> Definition:
    """Read name, type and attributes; raises NotUnderstood at an unknown word."""
    column = _read_type(cursor, cursor.column(), sql)
    while not cursor.at_end and not cursor.is_words("PARTITION", "BY"):
        _read_attribute(cursor, column)
    return column


def _read_type(cursor: Cursor, name: str, sql: str) -> Definition:
    first = cursor.next()
    base = first.keyword
    if base not in _TYPES:
        raise NotUnderstood(f"unknown type {first.text!r}")
    text = first.text
    while not _names_charset(cursor) and (word := cursor.accept_any(_SECOND_WORDS)):
        text += f" {word.lower()}"
    arguments: Sequence[Token] = ()
    if cursor.at_group():
        arguments = cursor.group()
        text += f"({_without_comments(arguments, sql)})"
    while sign := cursor.accept_any(_SIGNS):
        text += f" {sign.lower()}"
    return Definition(name, base, text, arguments)


def _without_comments(tokens: Sequence[Token], sql: str) -> str:
    """As it is written in ``sql``, but for what stands between the tokens."""
    text, before = "", "sign"
    for token in tokens:
        between = "" if "sign" in (before, token.kind) else " "
        text += between + sql[token.start : token.end]
        before = token.kind
    return text


def _names_charset(cursor: Cursor) -> bool:
    """Whether CHARACTER SET comes next, which a type's second word may look like."""
    return cursor.is_words("CHARACTER", "SET") or cursor.is_words("CHAR", "SET")


def _read_attribute(cursor: Cursor, column: Definition) -> None:
    if cursor.accept("NOT", "NULL"):
        column.nullable = False
    elif cursor.accept("NULL"):
        column.nullable = True
    elif cursor.accept("DEFAULT"):
        column.computed = cursor.at_group()
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
    elif (charset := read_charset(cursor)) is not None:
        column.charset = column.charset or charset
    elif cursor.accept("BYTE"):
        column.charset = BYTES
    elif cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
        column.generated = True
        cursor.group()
    else:
        _read_harmless(cursor)


def read_charset(cursor: Cursor) -> str | None:
    """Read a character set, or a collation, which begins with the name of one; None: neither."""
    collation = cursor.accept("COLLATE")
    named = cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET")
    if not (collation or named or cursor.accept("CHARSET")):
        return None
    cursor.accept_sign("=")
    name = cursor.next().text.lower()
    return name.partition("_")[0] if collation else name


def _read_harmless(cursor: Cursor) -> None:
    """Read an attribute that does not concern the values of stored rows."""
    if cursor.accept("UNIQUE"):
        cursor.accept("KEY")
    elif cursor.accept("FIRST") or cursor.accept_any(_PLAIN) or cursor.accept("PERSISTENT"):
        return
    elif cursor.accept("AFTER"):
        cursor.name()
    elif cursor.accept_any(_WITH_VALUE):
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
    if (token.kind == "sign" and token.text in "+-") or is_introducer(token):
        tokens.append(cursor.next())
    elif cursor.at_group():
        tokens += _expression(cursor.group())
    return tuple(tokens)


def _expression(tokens: Sequence[Token]) -> tuple[Token, ...]:
    start = tokens[0].start if tokens else 0
    return (Token("sign", "(", start, start), *tokens, Token("sign", ")", start, start))


def is_introducer(token: Token) -> bool:
    """Whether it names the character set of the text behind it: ``_latin1'x'``."""
    return token.kind == "word" and token.text.startswith("_")


def kind_of(column: Definition) -> SourceType:
    """What its values are: of a text in the character set ``binary`` they are bytes."""
    binary = column.charset == BYTES
    return from_mysql(f"{column.type} character set {BYTES}" if binary else column.type)


def as_changed(column: Definition) -> Column:
    """The column as defined from now on."""
    return Column(column.name, kind_of(column).arrow)


# Finds the label of an enumeration or set that a text names, as servers compare them.

_LAST_OF_PLANE = "\uffff"
_ALIKE = str.maketrans(
    {"\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d", "\u0127": "h", "\u0131": "i",
     "\u00e6": "ae", "\u0153": "oe", "\u00fe": "th"}
    | {chr(katakana): chr(katakana - 0x60) for katakana in range(0x30A1, 0x30F7)}
)  # fmt: skip
"""What collations take for other letters and no decomposition tells."""


def place_of(text: str, labels: Sequence[str]) -> int | None:
    """The place of the label, from 0; None where it is none of them, or may be several."""
    folded = [_folded(label) for label in labels]
    label = _folded(text.rstrip(" "))
    return folded.index(label) if folded.count(label) == 1 else None


def _folded(label: str) -> str:
    """One text for all labels that some collation takes for one: without case, accents and width.

    Old collations take all letters beyond the basic plane for one.
    """
    letters = unicodedata.normalize("NFKD", label)
    kept = (letter for letter in letters if not unicodedata.combining(letter))
    folded = "".join(kept).casefold().translate(_ALIKE)
    return "".join(min(letter, _LAST_OF_PLANE) for letter in folded)
