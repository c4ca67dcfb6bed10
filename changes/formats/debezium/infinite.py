"""Recognises PostgreSQL's infinite dates and timestamps, as all versions of Debezium write them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.debezium import values
from changes.formats.debezium.types import Sense

PRINTED = frozenset((Sense.ZONED, Sense.ISO_DATE, Sense.ISO_TIMESTAMP))
"""Senses whose values are text."""

_INFINITE_DAYS = 2_147_400_000
"""Days beyond PostgreSQL's last date (the year 5874897), either way: always an infinity."""

_INFINITE_MILLIS = (9223372036825200, -9223372036832400)
_INFINITE_MICROS = (9223372036825200000, -9223372036832400000)
_LONG_ENDS = (2**63 - 1, -(2**63))
_INFINITE = {
    Sense.MILLIS: frozenset(map(str, (*_INFINITE_MILLIS, *_INFINITE_MICROS, *_LONG_ENDS))),
    Sense.MICROS: frozenset(map(str, (*_INFINITE_MICROS, *_LONG_ENDS))),
    Sense.NANOS: frozenset(map(str, _LONG_ENDS)),
}
"""PostgreSQL's infinities, as the versions of Debezium write them."""

_INFINITE_TEXT = r"^([+-]?infinity|[+-][0-9]{6,}-.*)$"
"""Of dates and timestamps in text: a year that PostgreSQL does not have."""


def infinite(text: pa.Array, sense: Sense) -> pa.Array:
    """By value of a dated column, whether it is an infinity; a null is not."""
    if sense in _INFINITE:
        found = pc.is_in(text, value_set=pa.array(sorted(_INFINITE[sense])))
    elif sense is Sense.DAYS:
        digits = pc.match_substring_regex(text, "^-?[0-9]{1,12}$")
        days = pc.if_else(digits, text, pa.scalar(None, pa.string())).cast(pa.int64())
        found = pc.greater_equal(pc.abs(days), _INFINITE_DAYS)
        found = pc.and_(found, pc.equal(days, days.cast(pa.int32(), safe=False).cast(pa.int64())))
    elif sense in PRINTED:
        found = pc.match_substring_regex(text, _INFINITE_TEXT)
    else:
        found = pa.array([v is not None and _is_infinite(v) for v in text.to_pylist()])
    return pc.fill_null(found, False)


def _is_infinite(raw: str) -> bool:
    try:
        value = values.parsed(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("specialValue") in values.INFINITE
