"""Reads JSON values as text, exactly as in the message."""

from __future__ import annotations

import msgspec

from changes.decoding.layout import Refused
from changes.types import TEXT, SourceType

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
