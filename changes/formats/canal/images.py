"""Reads Canal's messages for people: the time of a change, and its rows one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from changes.formats.canal import slow_path as careful
from changes.formats.canal.layout import LETTERS
from changes.formats.engine.layout import Refused
from changes.formats.engine.rows import RowImage, Rows, Shape

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


class CanalRows(Rows):
    """The rows of messages as images, for people; ``CanalTableDecoder`` decodes them."""

    def images(self, value: bytes) -> Iterator[RowImage]:
        message = careful.read(value)
        op, keys = LETTERS[message.type], careful.key_names(message)
        data = [_required(values) for values in message.data or ()]
        shape = Shape(tuple(careful.carried(message)), careful.types(message), keys)
        olds = message.before if op == "U" else []
        for place, values in enumerate(data):
            yield RowImage(op, values, olds[place] if place < len(olds) else None, shape)

    def table_of(self, value: bytes, error: Exception) -> None:
        return None


def _required(values: Mapping[str, Raw] | None) -> Mapping[str, Raw]:
    if values is None:
        raise Refused("data holds null in place of a row")
    return values
