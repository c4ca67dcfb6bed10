"""Converts arrays whose items are encoded: base64, days, microseconds.

Each item is read like a column of its type, and written as JSON again: numbers with all digits,
anything else as text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec
import pyarrow as pa
from msgspec import Raw

from changes.formats.debezium import values
from changes.formats.debezium.types import Sense, WireType
from changes.model.digits import is_digits
from changes.sql.convert import ValueMisfit

_items = msgspec.json.Decoder(list[Raw])
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_NUMBERS = frozenset((Sense.DECIMAL, Sense.VARIABLE, Sense.BITS, Sense.WRAPPED))
_NULL = "null"

Read = Callable[[pa.Array], pa.Array]
"""Reads raw JSON values of an item's type as text; raises ValueMisfit."""


def arrays(raws: pa.Array, item: WireType, read: Read) -> pa.Array:
    """The JSON of arrays with decoded items. Raises ValueMisfit with the array's place."""
    lists = [_split(row, raw) for row, raw in enumerate(raws.to_pylist())]
    ends = [*accumulate(len(each or ()) for each in lists)]
    flat = pa.array([raw for each in lists for raw in each or ()], pa.string())
    try:
        found = read(flat).to_pylist()
    except ValueMisfit as misfit:
        raise ValueMisfit(bisect_right(ends, misfit.row), str(misfit)) from misfit
    texts = [_json(value, item) for value in found]
    begins = [0, *ends]
    return pa.array(
        [
            None if each is None else f"[{','.join(texts[begin:end])}]"
            for each, begin, end in zip(lists, begins, ends, strict=False)
        ],
        pa.string(),
    )


def _split(row: int, raw: str | None) -> list[str | None] | None:
    if raw is None:
        return None
    try:
        found = [bytes(each).decode() for each in _items.decode(raw)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueMisfit(row, f"{raw[:60]!r} is not an array") from error
    return [None if each == _NULL else each for each in found]


def _json(value: str | None, item: WireType) -> str:
    if value is None:
        return _NULL
    if item.item is not None or (item.sense in _NUMBERS and _NUMBER.fullmatch(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


# Parses Debezium's integers and decimals, exactly and of any size; raises ValueError.

_text_decoder = msgspec.json.Decoder(str)


def unquoted(raw: str) -> str:
    """The contents of a JSON string; anything else unchanged."""
    return _text_decoder.decode(raw) if raw.startswith('"') else raw


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
