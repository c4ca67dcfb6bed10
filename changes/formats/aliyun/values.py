"""Reads Alibaba DTS's values as text, and the types of their columns.

A column's type is its number alone, for a null value has no other: what the number leaves open
(DECIMAL's digits, TEXT or BLOB) is stored as text. Only MySQL's numbers are known here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from msgspec import UNSET, UnsetType

from changes.formats.engine.charsets import decode_text
from changes.formats.engine.layout import Refused
from changes.formats.engine.untyped import as_text_column, retyped
from changes.model.model import AddColumn, Column, Ddl

# Reads Alibaba DTS's dates and times as text. They come in parts, any of which may be missing.

DATE, TIME, YEAR = "date", "time", "year"
"""Declared types whose values have only some of the parts; the others may be 0."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US = 1_000_000
_DAY_PARTS = ("year", "month", "day")
_TIME_PARTS = ("hour", "minute", "second", "millis")

Parts = Sequence[int | None]


def instant(members: Mapping[str, Any], _declared: str | None) -> str:
    """Seconds since 1970, and millionths of a second, though their member is named ``millis``."""
    seconds, millionths = members["timestamp"], members["millis"]
    if not 0 <= millionths < _SECOND_US:
        raise Refused(f"{millionths} millionths are more than a second")
    try:
        when = _EPOCH + timedelta(seconds=seconds, microseconds=millionths)
    except OverflowError as error:
        raise Refused(f"{seconds} seconds are no time") from error
    return when.replace(tzinfo=None).isoformat(" ")


def zoned(members: Mapping[str, Any], declared: str | None) -> str:
    """A date, a time and their zone."""
    return f"{date_time(members['value'], declared)} {members['timezone']}".rstrip()


def date_time(members: Mapping[str, Any], declared: str | None) -> str:
    """All parts of the value, so one that does not fit the declared type is found.

    Raises Refused for parts that are neither a date, a time, both, nor an interval.
    """
    day: Parts = [members[name] for name in _DAY_PARTS]
    time: Parts = [members[name] for name in _TIME_PARTS]
    if declared == YEAR and day[0] is not None and not any((*day[1:], *time)):
        return str(day[0])
    has_day = day != [None] * 3 and not (declared == TIME and not any(day))
    has_time = time[0] is not None and not (declared == DATE and not any(time))
    if has_day and None in day:
        return _interval(day, time)
    if not has_day and not has_time:
        raise Refused("a date without any part")
    return " ".join([_date(day)] * has_day + [_time(time)] * has_time)


def _date(parts: Parts) -> str:
    year, month, day = (part or 0 for part in parts)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"


def _time(parts: Parts) -> str:
    """A time; all parts of a negative one are negative."""
    sign, (hour, minute, second, millionth) = _signed(parts)
    shown = f"{sign}{hour:02}:{minute:02}:{second:02}"
    return f"{shown}.{millionth:06}" if millionth else shown


def _interval(day: Parts, time: Parts) -> str:
    """Years and months, or days and a time."""
    if day[2] is None and day[0] is not None and time[0] is None:
        sign, (years, months) = _signed(day[:2])
        return f"{sign}{years}-{months:02}"
    if day[:2] == [None, None] and time[0] is not None:
        sign, (days, *rest) = _signed((day[2], *time))
        return f"{sign}{days} {_time(rest)}"
    raise Refused(f"the parts {list(day)} are no date")


def _signed(parts: Parts) -> tuple[str, list[int]]:
    numbers = [part or 0 for part in parts]
    if min(numbers) < 0 < max(numbers):
        raise Refused(f"the parts {numbers} of a time differ by their sign")
    return "-" if min(numbers) < 0 else "", list(map(abs, numbers))


MYSQL_SOURCES = frozenset(("MySQL", "DRDS"))
"""Sources whose ``dataTypeNumber`` is MySQL's; DRDS is a MySQL to its clients."""

_NUMBERS = {
    1: "tinyint",
    2: "smallint",
    # Signed or unsigned is unknown: both fit.
    3: "bigint",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: YEAR,
    14: "date",
    16: "bigint",
    17: "timestamp",
    18: "datetime",
    19: "time",
}


def declared_types(fields: tuple[tuple[str, int], ...], source: str) -> dict[str, str]:
    """MySQL's words for the columns whose numbers define their types."""
    if source not in MYSQL_SOURCES:
        return {}
    return {name: _NUMBERS[number] for name, number in fields if number in _NUMBERS}


def text_of(value: Any, declared: str | None) -> str | UnsetType | None:
    """A value's text, UNSET for a missing one; raises Refused."""
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


def _value_text(members: Mapping[str, Any], _declared: str | None) -> str:
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


def as_rows_declare(ddl: Ddl) -> Ddl:
    """A statement with the types that rows will declare, which are fewer than its own."""
    unknown = [
        step.column.name
        for step in (*ddl.steps, *ddl.lenient)
        if isinstance(step, AddColumn) and step.column.type == _WIDE and step.default is not None
    ]
    if unknown:
        reason = (
            f"ADD {', '.join(unknown)} with a DEFAULT: whether rows declare a long or a decimal"
        )
        return replace(ddl, steps=(), lenient=(), refused=f"{reason} is unknown")
    return retyped(ddl, _as_row_column)


_WIDE = pa.decimal128(20, 0)
"""The type of a new column BIGINT UNSIGNED or DECIMAL(20), whose rows differ."""


def _as_row_column(step: AddColumn) -> AddColumn | None:
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
    "Integer": _value_text,
    "Character": _characters,
    "Decimal": _value_text,
    "Float": _number,
    "Timestamp": instant,
    "DateTime": date_time,
    "TimestampWithTimeZone": zoned,
    "BinaryGeometry": _bytes,
    "TextGeometry": _value_text,
    "BinaryObject": _bytes,
    "TextObject": _value_text,
}
