"""Alibaba DTS's values as text, and the types of their columns.

A column's type is told by its number alone, for a null has no other: what the number leaves open
(DECIMAL's digits, TEXT or BLOB) is kept as text. Only MySQL's numbers are known here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from msgspec import UNSET, UnsetType

from changes.formats.charsets import decode_text
from changes.formats.layout import Refused
from changes.formats.untyped import as_text_column, retyped
from changes.model import AddColumn, Column, Ddl

MYSQL_SOURCES = frozenset(("MySQL", "DRDS"))
"""Sources whose ``dataTypeNumber`` is MySQL's; DRDS is a MySQL to its clients."""

_YEAR = 13

_NUMBERS = {
    1: "tinyint",
    2: "smallint",
    # Signed or unsigned is not told: both fit.
    3: "int unsigned",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    _YEAR: "year",
    14: "date",
    16: "bigint",
    17: "timestamp",
    18: "datetime",
    19: "time",
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def declared_types(fields: tuple[tuple[str, int], ...], source: str) -> dict[str, str]:
    """MySQL's words for the columns whose numbers say all about their types."""
    if source not in MYSQL_SOURCES:
        return {}
    return {name: _NUMBERS[number] for name, number in fields if number in _NUMBERS}


def text_of(value: Any, declared: str | None) -> str | UnsetType | None:
    """A value's text, UNSET for one that is not there; raises Refused."""
    if value is None:
        return None
    # fastavro names an enumeration where the schema spells it out, not where it refers to it.
    name, members = ("", value) if isinstance(value, str) else value
    if isinstance(members, str):
        return None if members == "NULL" else UNSET  # EmptyObject has but these two
    read = _READERS.get(name.rpartition(".")[2])
    if read is None:
        raise Refused(f"a value of unknown kind {name}")
    return read(members, declared)


def _given(members: Mapping[str, Any], _declared: str | None) -> str:
    text: str = members["value"]
    return text


def _number(members: Mapping[str, Any], _declared: str | None) -> str:
    return repr(members["value"])


def _bytes(members: Mapping[str, Any], _declared: str | None) -> str:
    return base64.b64encode(members["value"]).decode()


def _characters(members: Mapping[str, Any], declared: str | None) -> str:
    charset: str = members["charset"].lower()
    if charset == "binary":
        return _bytes(members, declared)
    return decode_text(members["value"], charset)


def _instant(members: Mapping[str, Any], _declared: str | None) -> str:
    """Seconds since 1970, and millionths, as their member ``millis`` does not let expect."""
    try:
        when = _EPOCH + timedelta(seconds=members["timestamp"], microseconds=members["millis"])
    except OverflowError as error:
        raise Refused(f"{members['timestamp']} seconds are no time") from error
    return when.replace(tzinfo=None).isoformat(" ")


def _date_time(members: Mapping[str, Any], declared: str | None) -> str:
    if declared == "year":
        return str(members["year"] or 0)
    has_date = members["year"] is not None or members["day"] is not None
    has_time = members["hour"] is not None
    if declared == "time" or (declared is None and has_time and not has_date):
        return _time(members)
    date = f"{members['year'] or 0:04}-{members['month'] or 0:02}-{members['day'] or 0:02}"
    if declared == "date" or (declared is None and not has_time):
        return date
    return f"{date} {_time(members)}"


def _time(members: Mapping[str, Any]) -> str:
    """Of a negative time each part is."""
    parts = [members[name] or 0 for name in ("hour", "minute", "second", "millis")]
    if min(parts) < 0 < max(parts):
        raise Refused(f"the parts {parts} of a time differ by their sign")
    sign = "-" if min(parts) < 0 else ""
    hour, minute, second, millionth = map(abs, parts)
    shown = f"{sign}{hour:02}:{minute:02}:{second:02}"
    return f"{shown}.{millionth:06}" if millionth else shown


def _zoned(members: Mapping[str, Any], declared: str | None) -> str:
    return f"{_date_time(members['value'], declared)} {members['timezone']}".rstrip()


def as_told_by_numbers(ddl: Ddl) -> Ddl:
    """A statement with the types that rows will have, which tell less than it does."""
    unknown = [
        step.column.name
        for step in (*ddl.steps, *ddl.lenient)
        if isinstance(step, AddColumn) and step.column.type == _WIDE and step.default is not None
    ]
    if unknown:
        reason = f"ADD {', '.join(unknown)} with a DEFAULT: whether rows tell a long or a decimal"
        return replace(ddl, steps=(), lenient=(), refused=f"{reason} can't be told")
    return retyped(ddl, _as_rows_have_it)


_WIDE = pa.decimal128(20, 0)
"""Of a new column BIGINT UNSIGNED as well as DECIMAL(20): rows of the two differ."""


def _as_rows_have_it(step: AddColumn) -> AddColumn | None:
    kind = step.column.type
    if kind == _WIDE:
        return None
    if pa.types.is_decimal(kind) or pa.types.is_binary(kind):
        return as_text_column(step)
    if pa.types.is_boolean(kind):
        default = None if step.default is None else int(bool(step.default))
        return AddColumn(Column(step.column.name, pa.int64()), default)
    return step


_READERS: dict[str, Callable[[Mapping[str, Any], str | None], str]] = {
    "Integer": _given,
    "Character": _characters,
    "Decimal": _given,
    "Float": _number,
    "Timestamp": _instant,
    "DateTime": _date_time,
    "TimestampWithTimeZone": _zoned,
    "BinaryGeometry": _bytes,
    "TextGeometry": _given,
    "BinaryObject": _bytes,
    "TextObject": _given,
}
