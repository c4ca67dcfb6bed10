"""Arrow's values as SQLite keeps them, each exactly and so that it compares as at the source.

SQLite's columns have no type here, so nothing is turned into something else: whole numbers, texts,
bytes and finite doubles are SQLite's own. What it has no kind of value for is text: decimals with
all digits, dates and times as ISO 8601, and NaN, of which it would make NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from actors.contract.ports import TargetRefused
from changes import decimals
from sparkwriter.sql.schema import arrow_type

NAN = "NaN"


def to_sqlite(name: str, column: pa.ChunkedArray | pa.Array) -> Sequence[object]:
    """A column's values. ``name`` is for the error: raises TargetRefused."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        digits: list[object] = decimals.texts(column).to_pylist()
        return digits
    if pa.types.is_temporal(type_):
        try:
            texts: list[object] = pc.cast(column, pa.string()).to_pylist()
            return texts
        except pa.ArrowInvalid as error:
            raise TargetRefused(f"column {name}: {error}") from None
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(type_):
        return [NAN if isinstance(v, float) and math.isnan(v) else v for v in values]
    return values


def default_of(name: str, value: object, type_: str) -> object:
    """A statement's default as stored rows show it. Raises TargetRefused where it doesn't fit."""
    if value is None:
        return None
    wanted = arrow_type(type_)
    try:
        given = pa.array([value if isinstance(value, bytes) else str(value)])
        made = pc.cast(given, wanted)
    except pa.ArrowInvalid:
        raise TargetRefused(f"column {name}: the default {value!r} does not fit {type_}") from None
    return to_sqlite(name, made)[0]


def from_sqlite(values: Sequence[object], type_: str) -> pa.Array:
    """Stored values as Arrow has them again."""
    wanted = arrow_type(type_)
    if pa.types.is_floating(wanted):
        return pa.array([math.nan if v == NAN else v for v in values], wanted)
    if pa.types.is_decimal(wanted) or pa.types.is_temporal(wanted):
        return pc.cast(pa.array(values, pa.string()), wanted)
    if pa.types.is_boolean(wanted):
        return pa.array([None if v is None else bool(v) for v in values], wanted)
    return pa.array(values, wanted)
