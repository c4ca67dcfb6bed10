"""Keys of decoded changes as canonical texts, to be found among those of the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import FROM, FROM_PREFIX, HAS_PREFIX, Changes
from changes.shaping.masks import masked
from daemon.databases.port import Key
from daemon.jobs.load.wanted import Wanted
from daemon.jobs.verify.columns import Pair
from daemon.jobs.verify.moves import Move
from sparkwriter.sql.forms import Form


class NoText(Exception):
    """A key's value has no text of the form: nobody can tell which row it is."""


def keys_of(changes: Changes, keys: Sequence[Pair], wanted: Wanted) -> set[Key]:
    """The target's keys of all rows, old keys of moved rows included. ``keys``: those of the
    comparison, in the order of ``wanted.source.keys``. Raises NoText."""
    return set(_keys(changes.table, "", keys, wanted))


def moves_of(changes: Changes, keys: Sequence[Pair], wanted: Wanted) -> list[Move]:
    """The rows that came from another key without all that the target has of them: what they lack
    comes from the old key's row. Raises NoText."""
    table = changes.table
    if FROM not in table.column_names:
        return []
    rows = table.filter(pc.and_(pc.is_valid(table[FROM]), pc.invert(_are_whole(table, wanted))))
    olds, news = _keys(rows, FROM_PREFIX, keys, wanted), _keys(rows, "", keys, wanted)
    return [Move(old, new) for old, new in zip(olds, news, strict=True)]


def _are_whole(table: pa.Table, wanted: Wanted) -> pa.Array:
    """Of each row whether it has each of the source's columns that the target is made of."""
    names = {name.lower(): name for name in table.column_names}
    whole = pa.repeat(pa.scalar(True), table.num_rows)
    for column in (one.column.name.lower() for one in wanted.columns):
        if column not in names:
            return pa.repeat(pa.scalar(False), table.num_rows)
        has = HAS_PREFIX + names[column]
        if has in table.column_names:
            whole = pc.and_(whole, table[has])
    return whole


def _keys(table: pa.Table, prefix: str, keys: Sequence[Pair], wanted: Wanted) -> list[Key]:
    """Of each row the target's key, of columns with this prefix."""
    names = {name.lower(): name for name in table.column_names}
    shape, columns = wanted.route.shape, []
    for pair, key in zip(keys, wanted.source.keys, strict=True):
        name = names.get((prefix + key).lower())
        if name is None:
            raise NoText(key)
        column, mask = table.column(name), shape.mask_of(key)
        if mask is not None:
            columns.append(masked(column, mask, shape.salt).to_pylist())
        else:
            columns.append([key_text(pair.source.form, value) for value in column.to_pylist()])
    return list(zip(*columns, strict=True))


def key_text(form: Form | None, value: object) -> str:
    """A value of the lake as a text of the form. Raises NoText."""
    match value:
        case bool() if form in (Form.BOOLEAN, Form.WHOLE):
            return "1" if value else "0"
        case int() if form in (Form.WHOLE, Form.BOOLEAN):
            return str(value)
        case Decimal() if form in (Form.WHOLE, Form.DECIMAL):
            return f"{value:f}" if form is Form.DECIMAL else f"{value.to_integral_value():f}"
        case bytes() if form in (Form.HEX, Form.STRIPPED):
            return value.hex()
        case str():
            return f"{value}.000000" if form is Form.LOCAL and len(value) == 19 else value
        case datetime() if form is Form.INSTANT and value.tzinfo is not None:
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")
        case datetime() if form is Form.LOCAL and value.tzinfo is None:
            return f"{value:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")
        case date() if form is Form.DATE and not isinstance(value, datetime):
            return value.isoformat()
        case _:
            raise NoText(f"{type(value).__name__} as {form}")
