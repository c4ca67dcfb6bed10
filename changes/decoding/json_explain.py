"""Explains messages of one row each: the change with its key, its row before and after."""

from __future__ import annotations

from changes.configured_types import ConfiguredTypes
from changes.decoding.convert import Converter
from changes.decoding.images import images_of, key_of
from changes.decoding.json_rows import Row
from changes.formats.base import RowChange
from changes.model import FormatOptions, TableName


def explain_row(
    table: TableName, row: Row, options: FormatOptions, ts_ms: int | None, *, drops_nulls: bool
) -> RowChange:
    """Explain a message of a row; raises Refused.

    ``drops_nulls`` as in ``Dialect``: what an update had and lacks is null then.
    """
    converter = Converter(options.time_zone, options.zero_dates)
    names = row.keys
    images, misfits = images_of(
        [row.now, row.was or {}], {}, converter, names, ConfiguredTypes.of(options.types)
    )
    now, was = images
    misfit = misfits.get(0) or misfits.get(1)
    if row.op != "U":
        before, after = (None, now) if row.op == "I" else (now, None)
        return RowChange(table, row.op, key_of(names, now), before, after, ts_ms, misfit)
    key = key_of(names, was | now)
    left_out = [name for name in was if drops_nulls and name not in now]
    whole = now | dict.fromkeys(left_out) | key
    replaced = whole | was if row.was is not None else key
    return RowChange(table, "U", key, replaced or None, whole, ts_ms, misfit)
