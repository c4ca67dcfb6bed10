"""The SQL of MySQL and MariaDB: canonical texts of their types, literals, names. Pure.

The texts rely on a session with ``sql_mode = ''``, ``time_zone = '+00:00'`` and utf8mb4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from changes.sql.forms import LONG_BYTES, Form
from changes.sql.mysql.tokens import words
from changes.sql.mysql.types import from_mysql, size
from changes.sql.spark.checksums import TextColumn
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceColumn
from databases.base.selects import Words

_BASE = re.compile(r"\s*([a-z_][a-z0-9_]*)\s*(?:\(([^()]*)\))?", re.IGNORECASE | re.ASCII)

_INTEGERS = words("tinyint smallint mediumint int integer bigint year")
_TEXTS = words("char varchar tinytext text mediumtext longtext enum set uuid inet4 inet6")
_BYTES = words(
    "binary varbinary tinyblob blob mediumblob longblob geometry point linestring polygon "
    "multipoint multilinestring multipolygon geometrycollection geomcollection"
)
_FORMS: Mapping[str, Form] = {
    **dict.fromkeys((name.lower() for name in _INTEGERS), Form.WHOLE),
    **dict.fromkeys((name.lower() for name in _TEXTS), Form.TEXT),
    **dict.fromkeys((name.lower() for name in _BYTES), Form.HEX),
    "decimal": Form.DECIMAL,
    "float": Form.SINGLE,
    "double": Form.DOUBLE,
    "date": Form.DATE,
    "datetime": Form.LOCAL,
    "timestamp": Form.INSTANT,
    "time": Form.TIME,
    "json": Form.JSON,
}

DATED = frozenset((Form.DATE, Form.LOCAL, Form.INSTANT))
_TEXT = "CONVERT({} USING utf8mb4)"


def base_of(type_: str) -> tuple[str, str]:
    """A type's first word in small letters, and what its parentheses hold."""
    found = _BASE.match(type_)
    return (found[1].lower(), found[2] or "") if found else ("", "")


def form_of(type_: str) -> Form | None:
    """The canonical text of a type; None for one that has none."""
    base, sizes = base_of(type_)
    if base == "bit":
        return Form.BOOLEAN if (size(sizes) or 1) == 1 else Form.WHOLE
    return _FORMS.get(base)


class MySqlWords(Words):
    """Those of MySQL and MariaDB."""

    sign_of_names = "`"
    compares_rows = False

    def text(self, column: SourceColumn) -> str:
        if column.form is None:
            raise DatabaseRefused(f"column {column.name}: {column.refused}")
        name = self.quote(column.sql_name)
        made = _TEXT_OF[column.form](name, column.type)
        if column.zero is None:
            return made
        base = base_of(column.type)[0]
        zero = _no_day(name) if base in ("date", "datetime", "timestamp") else f"{name} + 0 = 0"
        shown = f"'{column.zero}'" if column.zero else "NULL"
        return f"IF({zero}, {shown}, {made})"

    def sent(self, column: SourceColumn) -> str:
        return self.quote(column.sql_name) if column.form is Form.HEX else self.text(column)

    def lost(self, column: SourceColumn) -> str | None:
        dated = column.form in DATED and column.zero is None
        return _no_day(self.quote(column.sql_name)) if dated else None

    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        """A text above ``max_allowed_packet`` has none, but null."""
        return f"SHA2(CONCAT({', '.join(map(_field, columns))}), 256)"

    def number(self, digits: str, other: int) -> str:
        """Of two signs the larger numbers might be lost."""
        return f"CAST(COALESCE(CONV({digits}, 16, 10), '{other}') AS UNSIGNED)"

    def literal(self, column: SourceColumn, text: str) -> str:
        """Only signs of a number, a date or hex get into the SQL."""
        base, sizes = base_of(column.type)
        match column.form:
            case Form.TEXT if base in ("enum", "set"):
                return str(_number(column, text))
            case Form.TEXT | Form.JSON:
                return f"_utf8mb4 X'{text.encode().hex()}'"
            case Form.HEX | Form.STRIPPED:
                # BINARY(4) is compared with all its bytes, the zeros at its end included.
                length = size(sizes) or 0 if base == "binary" else 0
                return f"X'{_hex(column, text).ljust(2 * length, '0')}'"
            case Form.DATE | Form.LOCAL | Form.INSTANT | Form.TIME:
                return f"'{_signs(column, text, '0123456789-:. ')}'"
            case Form.SINGLE | Form.DOUBLE:
                number = _signs(column, text, "0123456789-+.e")
                return number if "e" in number else f"{number}e0"
            case _:
                return _signs(column, text, "0123456789-.")


def _field(column: TextColumn) -> str:
    text, free = column
    whole = f"CONCAT(CHAR_LENGTH({text}), ':', {text})" if free else f"CONCAT({text}, ',')"
    return f"COALESCE({whole}, 'n,')"


def _no_day(name: str) -> str:
    """Whether a date is a zero date: a month or a day of zero."""
    return f"MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0"


def _signs(column: SourceColumn, text: str, allowed: str) -> str:
    if not text or text.strip(allowed):
        raise DatabaseRefused(f"column {column.name}: {text[:60]!r} is not a {column.type}")
    return text


def _hex(column: SourceColumn, text: str) -> str:
    if text.strip("0123456789abcdef") or len(text) % 2:
        raise DatabaseRefused(f"column {column.name}: {text[:60]!r} are no bytes in hex")
    return text


def _number(column: SourceColumn, text: str) -> int:
    """A label's number, a set's mask: an index orders by these."""
    labels = from_mysql(column.type).labels
    if base_of(column.type)[0] == "enum":
        if not text and "" in labels:
            raise DatabaseRefused(f"column {column.name}: the empty label and no label look alike")
        if not text:
            return 0
        if text in labels:
            return labels.index(text) + 1
    elif not text or all(label in labels for label in text.split(",")):
        return sum(1 << labels.index(label) for label in text.split(",") if text)
    raise DatabaseRefused(f"column {column.name}: {text[:60]!r} is not a label of {column.type}")


def _whole(name: str, type_: str) -> str:
    # Added to 0, a number has no zeros before it (ZEROFILL), and bits are a number.
    return f"CAST({name} + 0 AS CHAR)"


def _decimal(name: str, type_: str) -> str:
    if "zerofill" not in type_.lower():
        return f"CAST({name} AS CHAR)"
    # A sum has no zeros before it, nor more digits than one that fits.
    return f"CAST(CAST({name} AS DECIMAL({base_of(type_)[1]})) AS CHAR)"


def _double(name: str, type_: str) -> str:
    """All digits of a number: those that are read as the same one.

    FLOAT and DOUBLE(10,2) show fewer than they have. MySQL shows all of a column, but not of what
    is computed from one, unless that is in JSON.
    """
    if base_of(type_) == ("double", ""):
        return f"CAST({name} AS CHAR)"
    listed = f"CAST(JSON_ARRAY({name} * 1e0) AS CHAR)"
    return f"IF({name} IS NULL, NULL, TRIM(LEADING '[' FROM TRIM(TRAILING ']' FROM {listed})))"


def _moment(name: str, type_: str) -> str:
    return f"DATE_FORMAT({name}, '%Y-%m-%d %H:%i:%s.%f')"


def _bits(name: str, type_: str) -> str:
    """A double's 64 bits, from its exponent and its mantissa as a whole number.

    LOG2 may be one off: a mantissa outside of its 53 bits says so. Powers of two are exact; in two
    steps none is out of range.
    """
    value = f"ABS({name} * 1e0)"
    power = f"GREATEST(FLOOR(LOG2({value})), -1022)"
    shift = f"CAST(52 - {power} AS SIGNED)"
    half = f"({shift} DIV 2)"
    mantissa = f"({value} * POW(2, {half}) * POW(2, {shift} - {half}))"
    of = "CAST(({} + 1022) AS SIGNED) * 4503599627370496 + CAST({} AS SIGNED)"
    bits = (
        f"CASE WHEN {value} = 0 THEN 0"
        f" WHEN {mantissa} >= 9007199254740992 THEN {of.format(power + ' + 1', mantissa + ' / 2')}"
        f" WHEN {mantissa} < 4503599627370496 AND {power} > -1022"
        f" THEN {of.format(power + ' - 1', mantissa + ' * 2')}"
        f" ELSE {of.format(power, mantissa)} END"
    )
    negative = f"CAST({name} * 1e0 AS CHAR) LIKE '-%'"
    signed = f"IF({negative}, {bits} - 9223372036854775807 - 1, {bits})"
    return f"IF({name} IS NULL, NULL, CAST({signed} AS CHAR))"


_TEXT_OF: Mapping[Form, Callable[[str, str], str]] = {
    Form.WHOLE: _whole,
    Form.BOOLEAN: _whole,
    Form.DECIMAL: _decimal,
    Form.SINGLE: _double,
    Form.DOUBLE: _double,
    Form.BITS: _bits,
    Form.TEXT: lambda name, _: _TEXT.format(name),
    Form.JSON: lambda name, _: _TEXT.format(f"CAST({name} AS CHAR)"),
    Form.COMPACT: lambda name, _: _TEXT.format(f"CAST({name} AS CHAR)"),
    Form.HEX: lambda name, _: (
        f"IF(LENGTH({name}) > {LONG_BYTES}, CONCAT('sha256:', SHA2({name}, 256)),"
        f" LOWER(HEX({name})))"
    ),
    Form.STRIPPED: lambda name, _: f"LOWER(TRIM(TRAILING '00' FROM HEX({name})))",
    Form.DATE: lambda name, _: f"CAST({name} AS CHAR)",
    Form.LOCAL: _moment,
    Form.INSTANT: _moment,
    Form.TIME: lambda name, _: (
        f"TRIM(TRAILING '.000000' FROM CAST(CAST({name} AS TIME(6)) AS CHAR))"
    ),
}
