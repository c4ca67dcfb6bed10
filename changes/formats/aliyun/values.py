"""Reads Alibaba DTS's values as text, and the types of their columns.

A column's type is its number alone, for a null value has no other: what the number leaves open
(DECIMAL's digits, TEXT or BLOB) is stored as text. Only MySQL's numbers are known here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from msgspec import UNSET, UnsetType

from changes.decoding.charsets import decode_text
from changes.decoding.layout import Refused
from changes.decoding.untyped import as_text_column, retyped
from changes.formats.aliyun.dates import YEAR, date_time, instant, zoned
from changes.model import AddColumn, Column, Ddl

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
        reason = f"ADD {', '.join(unknown)} with a DEFAULT: whether rows tell a long or a decimal"
        return replace(ddl, steps=(), lenient=(), refused=f"{reason} can't be told")
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
