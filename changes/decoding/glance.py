"""Reads the outermost members of a JSON message, without its values."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from changes.decoding.bare_numbers import with_text_for_bare_numbers

Members = Mapping[str, Raw]

_members = msgspec.json.Decoder(dict[str, Raw])
_string = msgspec.json.Decoder(str)


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
