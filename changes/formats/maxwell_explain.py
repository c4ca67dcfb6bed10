"""Maxwell's messages for people: each change with its key and what is known of before and after."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import msgspec
from msgspec import Raw, Struct

from changes.convert import Converter
from changes.formats.base import RowChange
from changes.formats.images import images_of, key_of
from changes.formats.json_rows import Row
from changes.model import FormatOptions, TableName

_FIRST_MILLISECONDS = 100_000_000_000
"""From here on a number is no time in seconds (the year 5138) but one in milliseconds (1973):
Maxwell tells rows by the former and statements by the latter."""


class _Times(Struct, gc=False):
    ts: Raw = Raw()


_times = msgspec.json.Decoder(_Times)


def moment(value: bytes) -> int | None:
    """When the change happened, in milliseconds; None where the message does not say."""
    try:
        given = Decimal(bytes(_times.decode(value).ts).decode())
    except (InvalidOperation, UnicodeDecodeError):
        return None
    if not given.is_finite() or not 0 < given < _FIRST_MILLISECONDS**2:
        return None
    return int(given if given >= _FIRST_MILLISECONDS else given * 1000)


def explain_row(table: TableName, row: Row, options: FormatOptions, ts_ms: int | None) -> RowChange:
    """Say what a message of a row says; raises Refused."""
    converter = Converter(options.time_zone, options.zero_dates)
    names = row.keys
    images, misfits = images_of([row.now, row.was or {}], {}, converter, names)
    now, was = images
    misfit = misfits.get(0) or misfits.get(1)
    if row.op != "U":
        before, after = (None, now) if row.op == "I" else (now, None)
        return RowChange(table, row.op, key_of(names, now), before, after, ts_ms, misfit)
    key = key_of(names, was | now)
    left_out = dict.fromkeys(name for name in was if name not in now and name not in key)
    whole = now | left_out | key
    replaced = whole | was if row.was is not None else key
    return RowChange(table, "U", key, replaced or None, whole, ts_ms, misfit)
