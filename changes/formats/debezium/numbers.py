"""Parses Debezium's integers and decimals, exactly and of any size; raises ValueError."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from changes.digits import is_digits
from changes.formats.debezium import values

_json = msgspec.json.Decoder(str)


def unquoted(raw: str) -> str:
    """The contents of a JSON string; anything else unchanged."""
    return _json.decode(raw) if raw.startswith('"') else raw


def decimals(unscaled: Sequence[int | None], arrow: pa.DataType, missing: int) -> pa.Array:
    """Decimals of unscaled integers; ``missing``: digits that they lack of the type's scale."""
    factor, bound = 10 ** max(missing, 0), 10**arrow.precision
    if missing < 0:
        raise pa.ArrowInvalid("a scale that does not fit")
    scaled = [None if value is None else value * factor for value in unscaled]
    if any(value is not None and not -bound < value < bound for value in scaled):
        raise pa.ArrowInvalid("too many digits")
    words = b"".join([(value or 0).to_bytes(16, "little", signed=True) for value in scaled])
    valid = None
    if None in scaled:
        valid = pa.array([value is not None for value in scaled]).buffers()[1]
    return pa.Array.from_buffers(arrow, len(scaled), [valid, pa.py_buffer(words)])


def decimal_at_scale(raw: str, scale: int) -> int:
    """A decimal of either form, as raw JSON."""
    text = unquoted(raw)
    return values.unscaled(text) if raw.startswith('"') else values.number_at_scale(text, scale)


def whole_at_scale(text: str, scale: int, *, raw: bool) -> int:
    """A decimal that has no digits behind its point, whatever the scale that its base64 has."""
    if raw and not text.startswith('"'):
        return values.number_at_scale(text, 0)
    value, factor = values.unscaled(unquoted(text) if raw else text), int(10**scale)
    if value % factor:
        raise ValueError("digits behind the point")
    return value // factor


def wrapped_integer(text: str) -> int:
    """An unsigned integer of 64 bits that came through a signed one."""
    value = integer(text)
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError("more than 64 bits")
    return value % (1 << 64)


def integer(text: str) -> int:
    """Python's ``int`` also reads spaces and underscores."""
    if not is_digits(text.removeprefix("-")):
        raise ValueError("not a whole number")
    return int(text)
