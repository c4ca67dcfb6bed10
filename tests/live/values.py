"""One text per value, the same for the source and the lake, by the kind of the source's column.

Two values are equal if their texts are. Where the docs promise another form (a TIME is text, a
BINARY has no zero bytes at its end), both sides are brought to it. Pure.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

Text = str | None
_CLOCK = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")
_MICROSECOND = dt.timedelta(microseconds=1)


class Unreadable(Exception):
    """A value that is none of its column's kind."""


def from_source(kind: str, text: Text) -> Text:
    """A value as the database prints it (bytes in hex)."""
    return None if text is None else _READ[kind](text)


def from_lake(kind: str, value: object) -> Text:
    """A value as Arrow gives it, read by the kind of the source's column.

    What cannot be such a value is shown as it is, which no text of the source equals.
    """
    if value is None:
        return None
    if kind in ("bytes", "padded") and isinstance(value, str):
        return _READ[kind](_from_base64(value))
    try:
        return _READ[kind](_spelled(value))
    except Unreadable:
        return f"{type(value).__name__} {value!r}"


def _from_base64(text: str) -> str:
    """Bytes in a column of text, as the formats without types have them, in hex."""
    try:
        return base64.b64decode(text, validate=True).hex()
    except ValueError:
        return f"no base64: {text!r}"


def _spelled(value: object) -> str:
    """A lake's value as the database would print it."""
    match value:
        case bool():
            return str(int(value))
        case bytes():
            return value.hex()
        case dt.datetime():
            plain = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return f"{plain.year:04}-{plain:%m-%d %H:%M:%S.%f}"
        case dt.date():
            return f"{value.year:04}-{value:%m-%d}"
        case float():
            return repr(value)
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def _number(text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise Unreadable(text) from None
    return format(value.normalize(), "f") if value else "0"


def _double(text: str) -> str:
    try:
        return repr(float(text) + 0.0)
    except ValueError:
        raise Unreadable(text) from None


def _single(text: str) -> str:
    try:
        return repr(struct.unpack("f", struct.pack("f", float(text) + 0.0))[0])
    except (ValueError, OverflowError):
        raise Unreadable(text) from None


def _clock(text: str) -> str:
    """Microseconds: of a TIME, which may be negative or of many hours."""
    found = _CLOCK.match(text)
    if found is None:
        raise Unreadable(text)
    sign, hours, minutes, seconds, fraction = found.groups()
    span = dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    micros = span // _MICROSECOND + int((fraction or "").ljust(6, "0"))
    return str(-micros if sign else micros)


def _moment(text: str) -> str:
    """A date with a time, with six digits of a second. SQLite has a Z behind one with a zone."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    if not re.fullmatch(r"-?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d", whole):
        raise Unreadable(text)
    return f"{whole}.{fraction.ljust(6, '0')}"


def _json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True)
    except ValueError:
        raise Unreadable(text) from None


def _labels(text: str) -> str:
    """Of a SET, which may be a list."""
    return ",".join(json.loads(text)) if text.startswith("[") else text


def _plain(text: str) -> str:
    return text


def _hex(text: str) -> str:
    return text.lower()


def _padded(text: str) -> str:
    """Bytes of a fixed length, in hex, without the zero bytes at the end."""
    return re.sub("(00)*$", "", _hex(text)) if len(text) % 2 == 0 else text


_READ: Mapping[str, Callable[[str], str]] = {
    "number": _number, "double": _double, "single": _single, "text": _plain, "bytes": _hex,
    "padded": _padded, "time": _clock, "moment": _moment, "date": _plain,
    "json": _json, "set": _labels,
}  # fmt: skip
KINDS = frozenset(_READ)
