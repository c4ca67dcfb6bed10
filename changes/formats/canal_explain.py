"""Canal messages for people: each change with its key and what is known of before and after."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Raw, Struct

from changes.convert import Converter, ValueMisfit
from changes.formats import canal_careful as careful
from changes.formats.base import RowChange
from changes.formats.canal_layout import LETTERS, Refused
from changes.model import FormatOptions, TableName
from changes.mysql_types import from_mysql
from changes.types import TEXT, Reading, SourceType

Image = dict[str, object]


class _Times(Struct, gc=False):
    es: Any = None
    ts: Any = None


def moment(value: bytes) -> int | None:
    """When the change happened (``es``), else when its message was made (``ts``), in ms.

    Zero is what some tools write for "unknown".
    """
    times = msgspec.json.decode(value, type=_Times)
    for given in (times.es, times.ts):
        if isinstance(given, int | str) and str(given).isdecimal() and int(given) > 0:
            return int(given)
    return None


def explain_rows(
    table: TableName, value: bytes, options: FormatOptions, ts_ms: int | None
) -> Iterator[RowChange]:
    """Take a message of rows apart; raises Refused."""
    message = careful.read(value)
    op = LETTERS[message.type]
    keys = careful.key_names(message)
    data = [_given(values) for values in message.data or ()]
    olds = [values or {} for values in message.before] if op == "U" else []
    known = [place < len(olds) and message.before[place] is not None for place in range(len(data))]
    converter = Converter(options.time_zone, options.zero_dates)
    images, misfits = _images([*data, *olds], careful.types(message), converter, keys)
    for place, image in enumerate(images[: len(data)]):
        if op != "U":
            key = _key(keys, image)
            before, after = (None, image) if op == "I" else (image, None)
            yield RowChange(table, op, key, before, after, ts_ms, misfits.get(place))
            continue
        old = images[len(data) + place] if known[place] else {}
        key = _key(keys, old | image)
        whole = image | key
        replaced = whole | old if known[place] else key
        misfit = misfits.get(place) or misfits.get(len(data) + place)
        yield RowChange(table, op, key, replaced or None, whole, ts_ms, misfit)


def _given(values: Mapping[str, Raw] | None) -> Mapping[str, Raw]:
    if values is None:
        raise Refused("data holds null in place of a row")
    return values


def _key(keys: Sequence[str], image: Image) -> Image:
    for name in keys:
        if image.get(name) is None:
            raise Refused(f"key column {name} is {'null' if name in image else 'missing'}")
    return {name: image[name] for name in keys}


def _images(
    rows: Sequence[Mapping[str, Raw]],
    types: Mapping[str, str],
    converter: Converter,
    keys: Sequence[str],
) -> tuple[list[Image], dict[int, str]]:
    """The rows' values, converted a column at a time, and what is wrong with which row.

    A value that does not fit its type is shown as it came: whoever debugs wants to see it.
    """
    images: list[Image] = [dict.fromkeys(values) for values in rows]
    misfits: dict[int, str] = {}
    for name in dict.fromkeys(name for values in rows for name in values):
        places = [place for place, values in enumerate(rows) if name in values]
        raws = [bytes(rows[place][name]) for place in places]
        declared = types.get(name)
        if declared is None:
            found = [_undeclared(raw) for raw in raws]
        else:
            kind = from_mysql(declared)

            def convert(
                raws: Sequence[bytes],
                kind: SourceType = kind,
                declared: str = declared,
                key: bool = name in keys,
            ) -> list[object]:
                text = pa.array([careful.text_of(raw, kind) for raw in raws], pa.string())
                column = converter.column(text, kind, declared, key=key)
                return [_shown(value, kind) for value in column.to_pylist()]

            try:
                found = convert(raws)
            except ValueMisfit:
                found = []
                for place, raw in zip(places, raws, strict=True):
                    try:
                        found += convert([raw])
                    except ValueMisfit as misfit:
                        misfits.setdefault(place, f"{name}: {misfit}")
                        found.append(_undeclared(raw))
        for place, value in zip(places, found, strict=True):
            images[place][name] = value
    return images, misfits


def _shown(value: object, kind: SourceType) -> object:
    """The lake's value, but an integer as one, and a float by the digits that tell it apart."""
    if isinstance(value, Decimal) and kind.reading is Reading.WHOLE:
        return int(value)
    if isinstance(value, float) and pa.types.is_float32(kind.arrow):
        return shortest(value)
    return value


def shortest(value: float) -> float:
    """Find the number with the fewest digits that is this 32-bit float: 3.14, not 3.14000010…"""
    for digits in range(6, 10):
        near = float(f"{value:.{digits}g}")
        if struct.pack("f", near) == struct.pack("f", value):
            return near
    return value


def _undeclared(raw: bytes) -> object:
    """A value of no declared type: a number as one if it stays exact, else what the lake keeps."""
    if raw in (b"true", b"false"):
        return raw == b"true"
    text = careful.text_of(raw, TEXT)
    if text is None or raw[:1] in b'"{[':
        return text
    try:
        number = json.loads(raw, parse_float=Decimal)
    except ValueError:  # more digits than Python turns into an integer
        return text
    if isinstance(number, int):
        return number
    return float(number) if Decimal(repr(float(number))) == number else text
