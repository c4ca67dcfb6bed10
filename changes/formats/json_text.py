"""JSON values as text, exactly as they stood in the message."""

from __future__ import annotations

import msgspec

from changes.formats.layout import Refused
from changes.types import TEXT, SourceType

_string = msgspec.json.Decoder(str)


def text_of(raw: bytes, kind: SourceType) -> str | None:
    """Give a JSON value's text: a string's own, a number as written, a document as it stands."""
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
