"""Converts arrays whose items are encoded: base64, days, microseconds.

Each item is read like a column of its type, and written as JSON again: numbers with all digits,
anything else as text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import msgspec
import pyarrow as pa
from msgspec import Raw

from changes.decoding.convert import ValueMisfit
from changes.formats.debezium.types import Sense, WireType

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
