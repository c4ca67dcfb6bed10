"""Forms of canonical texts: what the text of a source's value looks like. Pure values."""

from __future__ import annotations

from enum import Enum
from hashlib import sha256

LONG_BYTES = 1 << 20
"""MariaDB makes null of a text in hex that is longer than ``max_allowed_packet``."""


class Form(Enum):
    """How a database writes a value of one type as text, so that equal values are equal texts."""

    WHOLE = "whole"
    """Digits, with a minus where it is negative: integers, years, bits as a number."""
    BOOLEAN = "boolean"
    """``1`` or ``0``."""
    DECIMAL = "decimal"
    """Plain digits, all those of the column's scale."""
    VARIABLE = "variable"
    """Plain digits, as many behind the point as the value has; ``NaN``, ``Infinity``."""
    SINGLE = "single"
    DOUBLE = "double"
    """The shortest digits that are read as the same number; ``NaN``, ``Infinity``."""
    TEXT = "text"
    """The text itself."""
    HEX = "hex"
    """Bytes as hexadecimal digits in lower case; of more than ``LONG_BYTES`` their SHA-256."""
    STRIPPED = "stripped"
    """The same, without zero bytes at the end."""
    BITS = "bits"
    """The 64 bits of a double as a signed integer: for checksums, where digits could differ."""
    DATE = "date"
    """``2024-01-02``."""
    LOCAL = "local"
    """``2024-01-02 03:04:05.000006``, always six digits, of no zone."""
    INSTANT = "instant"
    """The same, in UTC."""
    TIME = "time"
    """``[-]HH:MM:SS``, with ``.ffffff`` where there is a fraction."""
    JSON = "json"
    """The document's text, as the database prints it."""
    COMPACT = "compact"
    """The same; the lake has it without blanks outside of its strings."""
    ARRAY = "array"
    """A list of one dimension as JSON, without blanks."""


def bytes_text(value: bytes) -> str:
    """The canonical text of bytes, of ``Form.HEX``."""
    return f"sha256:{sha256(value).hexdigest()}" if len(value) > LONG_BYTES else value.hex()
