"""Writes Alibaba DTS's records byte by byte, by Avro's rules and the fields' order: no library."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from changes.formats.aliyun.record import OPERATIONS, SOURCES

Value = Any
"""None, "NULL", "NONE", or a pair of a record's name and its members in order."""

KINDS = (
    "null", "Integer", "Character", "Decimal", "Float", "Timestamp", "DateTime",
    "TimestampWithTimeZone", "BinaryGeometry", "TextGeometry", "BinaryObject", "TextObject",
    "EmptyObject",
)  # fmt: skip


def integer(value: object) -> Value:
    """An integer of MySQL."""
    return ("Integer", 8, str(value))


def text(value: str, charset: str = "utf8mb4", codec: str = "utf-8") -> Value:
    """A text of MySQL, its bytes in its character set."""
    return ("Character", charset, value.encode(codec))


def date_time(*parts: int | None) -> Value:
    """Year, month, day, hour, minute, second, and millionths of it; what is left out is null."""
    return ("DateTime", *parts, *[None] * (7 - len(parts)))


def record(
    operation: str = "INSERT",
    after: Sequence[Value] | str | None = None,
    before: Sequence[Value] | str | None = None,
    fields: Sequence[tuple[str, int]] | None = (("id", 8), ("name", 253)),
    *,
    source: str = "MySQL",
    name: str | None = "shop.orders",
    tags: Mapping[str, str] | None = None,
    born: int | None = None,
    transaction: str = "0",
) -> bytes:
    """One record; ``born`` makes it the layout with a time at its end."""
    tags = {"pk_uk_info": '{"PRIMARY":["id"]}'} if tags is None else tags
    parts = [
        long(0),
        long(7),
        long(1696984408),
        string("72469@78"),
        string(""),
        string(transaction),
    ]
    parts += [long(SOURCES.index(source)), string("8.0.28"), long(OPERATIONS.index(operation))]
    parts.append(long(0) if name is None else long(1) + string(name))
    parts.append(long(1) + array([long(1), long(2)]))
    parts.append(array([string(key) + string(value) for key, value in tags.items()]))
    told = None if fields is None else [string(n) + long(kind) for n, kind in fields]
    parts.append(long(0) if told is None else long(2) + array(told))
    parts += [images(before), images(after)]
    if born is not None:
        parts.append(long(born))
    return b"".join(parts)


def images(values: Sequence[Value] | str | None) -> bytes:
    """A union of nothing, a text, and a list of values."""
    if values is None:
        return long(0)
    if isinstance(values, str):
        return long(1) + string(values)
    return long(2) + array([one(value) for value in values])


def one(value: Value) -> bytes:
    """A value behind the number of its kind."""
    if value is None:
        return long(0)
    if isinstance(value, str):
        return long(KINDS.index("EmptyObject")) + long(("NULL", "NONE").index(value))
    kind, *members = value
    found = long(KINDS.index(kind))
    if kind == "DateTime":
        return found + _date_time(members)
    if kind == "TimestampWithTimeZone":
        return found + _date_time(members[0]) + string(members[1])
    return found + b"".join(map(_member, members))


def _date_time(parts: Sequence[int | None]) -> bytes:
    return b"".join(long(0) if part is None else long(1) + long(part) for part in parts)


def _member(value: object) -> bytes:
    match value:
        case int():
            return long(value)
        case float():
            return struct.pack("<d", value)
        case bytes():
            return long(len(value)) + value
        case _:
            return string(str(value))


def long(value: int) -> bytes:
    """Seven bits a byte, the lowest first, the sign in the lowest bit of all."""
    rest = value * 2 if value >= 0 else -value * 2 - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def string(value: str) -> bytes:
    """A text behind its length in bytes."""
    raw = value.encode()
    return long(len(raw)) + raw


def array(items: Sequence[bytes]) -> bytes:
    """One block of items, and the empty one that ends."""
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)
