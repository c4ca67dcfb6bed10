"""Explains Canal messages: each change with its key and what is known of before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from changes.formats.canal import slow_path as careful
from changes.formats.canal.layout import LETTERS
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.explain import images_of, key_of
from changes.formats.engine.format import RowChange
from changes.formats.engine.layout import Refused
from changes.model.model import FormatOptions, TableName
from changes.sql.convert import Converter

_LONGEST = 19
"""Digits of a time in milliseconds: longer numbers are no time, and no library reads them."""


class _Times(Struct, gc=False):
    es: Raw = Raw(b"")
    ts: Raw = Raw(b"")


def moment(value: bytes) -> int | None:
    """When the change happened (``es``), else when its message was written (``ts``), in ms.

    Zero is what some tools write for "unknown".
    """
    times = msgspec.json.decode(value, type=_Times)
    for raw in (times.es, times.ts):
        digits = bytes(raw).strip(b'"')
        if digits.isdigit() and len(digits) < _LONGEST and int(digits) > 0:
            return int(digits)
    return None


def explain_rows(
    table: TableName, value: bytes, options: FormatOptions, ts_ms: int | None
) -> Iterator[RowChange]:
    """Explain a message of rows; raises Refused."""
    message = careful.read(value)
    op = LETTERS[message.type]
    keys = careful.key_names(message)
    data = [_required(values) for values in message.data or ()]
    olds = [values or {} for values in message.before] if op == "U" else []
    known = [place < len(olds) and message.before[place] is not None for place in range(len(data))]
    converter = Converter(options.time_zone, options.zero_dates)
    configured = ConfiguredTypes.of(options.types)
    images, misfits = images_of([*data, *olds], careful.types(message), converter, keys, configured)
    for place, image in enumerate(images[: len(data)]):
        if op != "U":
            key = key_of(keys, image)
            before, after = (None, image) if op == "I" else (image, None)
            yield RowChange(table, op, key, before, after, ts_ms, misfits.get(place))
            continue
        old = images[len(data) + place] if known[place] else {}
        key = key_of(keys, old | image)
        whole = image | key
        replaced = whole | old if known[place] else key
        misfit = misfits.get(place) or misfits.get(len(data) + place)
        yield RowChange(table, op, key, replaced or None, whole, ts_ms, misfit)


def _required(values: Mapping[str, Raw] | None) -> Mapping[str, Raw]:
    if values is None:
        raise Refused("data holds null in place of a row")
    return values
