"""Keys of decoded changes as canonical texts, to be found among those of the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from changes.model import Changes
from changes.shaping.masks import masked
from daemon.databases.port import Key
from daemon.jobs.load.wanted import Wanted
from daemon.jobs.verify.columns import Pair
from sparkwriter.sql.forms import Form


class NoText(Exception):
    """A key's value has no text of the form: nobody can tell which row it is."""


def keys_of(changes: Changes, keys: Sequence[Pair], wanted: Wanted) -> set[Key]:
    """The target's keys of all rows, old keys of moved rows included. ``keys``: those of the
    comparison, in the order of ``wanted.source.keys``. Raises NoText."""
    names = {name.lower(): name for name in changes.table.column_names}
    shape, columns = wanted.route.shape, []
    for pair, key in zip(keys, wanted.source.keys, strict=True):
        name = names.get(key.lower())
        if name is None:
            raise NoText(key)
        column, mask = changes.table.column(name), shape.mask_of(key)
        if mask is not None:
            columns.append(masked(column, mask, shape.salt).to_pylist())
        else:
            columns.append([key_text(pair.source.form, value) for value in column.to_pylist()])
    return set(zip(*columns, strict=True))


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
