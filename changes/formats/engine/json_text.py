"""Reads JSON values as text, exactly as in the message."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from changes.formats.engine.layout import Refused
from changes.model.types import TEXT, SourceType

_string = msgspec.json.Decoder(str)

_BEGINNINGS = {
    b"\xef\xbb\xbf": "it begins with a byte order mark",
    b"\0": "it begins with a zero byte, as what a schema registry's serializers write",
    b"\x1f\x8b": "it is compressed by gzip",
}
"""Beginnings of values that are no JSON, with their errors."""


def why_not(text: bytes, error: Exception) -> str:
    """Say why a value is no JSON of the wanted shape."""
    if not text:
        return "it is empty"
    return next((why for begin, why in _BEGINNINGS.items() if text.startswith(begin)), str(error))


def text_of(raw: bytes, kind: SourceType) -> str | None:
    """A JSON value as text: a string's contents, a number or a document as written."""
    if raw == b"null":
        return None
    try:
        if raw.startswith(b'"'):
            return _string.decode(raw)
        if raw in (b"true", b"false") and kind != TEXT:
            return "1" if raw == b"true" else "0"
        return raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"a value is not valid text: {error}") from error


_LONGEST_TIME = 17
"""Digits of a time in milliseconds; a longer number is none."""


def milliseconds(raw: Raw | bytes) -> int | None:
    """A JSON value that is a time in milliseconds since 1970; zero is no time."""
    digits = bytes(raw).strip(b'"')
    if not digits.isdigit() or len(digits) > _LONGEST_TIME:
        return None
    return int(digits) or None


# NaN and Infinity as bare words, which some producers write though JSON does not have them.

_WORDS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b', re.DOTALL)


def with_text_for_bare_numbers(text: bytes) -> bytes:
    """The same JSON with such words as text; what stands inside of text is left alone."""
    if b"NaN" not in text and b"Infinity" not in text:
        return text
    return _WORDS.sub(_quoted, text)


def _quoted(found: re.Match[bytes]) -> bytes:
    return found[0] if found[0].startswith(b'"') else b'"' + found[0] + b'"'


# Reads the outermost members of a JSON message, without its values.

Members = Mapping[str, Raw]

_members = msgspec.json.Decoder(dict[str, Raw])


def members(text: bytes | Raw | None) -> Members:
    """An object's members, the values as they stand; empty where the text is no object."""
    if text is None:
        return {}
    try:
        try:
            return _members.decode(text)
        except msgspec.DecodeError:
            return _members.decode(with_text_for_bare_numbers(bytes(text)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def word(found: Members, name: str) -> str:
    """A member that is text, empty where it is none."""
    raw = bytes(found.get(name, b""))
    try:
        return _string.decode(raw) if raw.startswith(b'"') else ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def is_object(found: Members, name: str) -> bool:
    """Whether a member is an object."""
    return bytes(found.get(name, b"")).startswith(b"{")


def is_list(found: Members, name: str) -> bool:
    """Whether a member is a list."""
    return bytes(found.get(name, b"")).startswith(b"[")


def is_empty(value: bytes | None) -> bool:
    """Whether a record has no value, or an empty one: a tombstone in one of its shapes."""
    return value is None or value.strip() in (b"", b"null")
