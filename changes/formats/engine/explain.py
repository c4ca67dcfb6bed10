"""Images of rows as people read them: with the lake's values, a column at a time."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
from msgspec import Raw

from changes.formats.engine.format import RowChange
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.images import RowImage
from changes.formats.engine.json_text import text_of
from changes.formats.engine.layout import Layout, Refused, RowLayout
from changes.model.model import FormatOptions, TableName
from changes.model.types import TEXT, SourceType, TextForm
from changes.sql.convert import Converter, ValueMisfit
from changes.sql.mysql.types import from_mysql

Image = dict[str, object]
Cell = str | Raw | None


def key_of(keys: Sequence[str], image: Image) -> Image:
    """The key of a row; raises Refused where a part of it is null or missing."""
    for name in keys:
        if image.get(name) is None:
            raise Refused(f"key column {name} is {'null' if name in image else 'missing'}")
    return {name: image[name] for name in keys}


def images_of(
    rows: Sequence[Mapping[str, Cell]],
    types: Mapping[str, str],
    converter: Converter,
    keys: Sequence[str],
    layout: Layout,
) -> tuple[list[Image], dict[int, str]]:
    """The rows' values, converted a column at a time, and the first error of each bad row.

    ``layout``: a target's, without columns. A value that does not fit its type is shown as it came,
    for debugging. Raises Refused for a type that does not go with the configured one.
    """
    images: list[Image] = [dict.fromkeys(values) for values in rows]
    misfits: dict[int, str] = {}
    for name in dict.fromkeys(name for values in rows for name in values):
        places = [place for place, values in enumerate(rows) if name in values]
        cells = [rows[place][name] for place in places]
        declared = types.get(name)
        kind = _kind(name, declared, layout)
        if kind is None and isinstance(cells[0], Raw):
            found = list(map(_as_it_came, cells))
        else:
            kind, declared = kind or TEXT, declared or layout.configured.words_of(name) or "text"

            def convert(
                cells: Sequence[Cell],
                kind: SourceType = kind,
                declared: str = declared,
                key: bool = name in keys,
            ) -> list[object]:
                text = pa.array([_text(cell, kind) for cell in cells], pa.string())
                column = converter.column(text, kind, declared, key=key)
                return [_shown(value, kind) for value in column.to_pylist()]

            try:
                found = convert(cells)
            except ValueMisfit:
                found = []
                for place, cell in zip(places, cells, strict=True):
                    try:
                        found += convert([cell])
                    except ValueMisfit as misfit:
                        misfits.setdefault(place, f"{name}: {misfit}")
                        found.append(_as_it_came(cell))
        for place, value in zip(places, found, strict=True):
            images[place][name] = value
    return images, misfits


def _kind(name: str, declared: str | None, layout: Layout) -> SourceType | None:
    """The type of a target's column, None where nothing declares one."""
    if layout.configured.type_of(name) is None:
        return None if declared is None else from_mysql(declared)
    types = {} if declared is None else {name: declared}
    return layout.grown(types, [name], b"").columns[name]


def _text(cell: Cell, kind: SourceType) -> str | None:
    return text_of(bytes(cell), kind) if isinstance(cell, Raw) else cell


def _as_it_came(cell: Cell) -> object:
    return undeclared(bytes(cell)) if isinstance(cell, Raw) else cell


def _shown(value: object, kind: SourceType) -> object:
    """The lake's value, but an integer as int, and a float by its shortest exact digits."""
    if isinstance(value, Decimal) and kind.form in (TextForm.WHOLE, TextForm.UNSIGNED):
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


def undeclared(raw: bytes) -> object:
    """A value of no declared type: a number as one if it stays exact, else what the lake keeps."""
    if raw in (b"true", b"false"):
        return raw == b"true"
    text = text_of(raw, TEXT)
    if text is None or raw[:1] in b'"{[':
        return text
    try:
        number = json.loads(raw, parse_float=Decimal)
    except ValueError:  # more digits than Python turns into an integer
        return text
    if isinstance(number, int):
        return number
    return float(number) if Decimal(repr(float(number))) == number else text


_NO_LAYOUT = RowLayout({}, None, {})


def explain_image(
    table: TableName,
    image: RowImage,
    rows: ImageRows,
    options: FormatOptions,
    ts_ms: int | None,
) -> RowChange:
    """Explain a row change with its key, its row before and after; raises Refused."""
    converter = Converter(rows.zone or options.time_zone, options.zero_dates)
    names, types = image.shape.keys, (image.shape.whole or image.shape).types
    layout = rows.layout(None, options.types) if options.types else _NO_LAYOUT
    pair = [image.now, image.was or {}]
    (now, was), misfits = images_of(pair, types, converter, names, layout)
    misfit = misfits.get(0) or misfits.get(1)
    if image.op != "U":
        before, after = (None, now) if image.op == "I" else (now, None)
        return RowChange(table, image.op, key_of(names, now), before, after, ts_ms, misfit)
    key = key_of(names, was | now)
    left_out = [name for name in was if rows.drops_nulls and name not in now]
    whole = now | dict.fromkeys(left_out) | key
    replaced = whole | was if image.was is not None else key if rows.shows_key else {}
    return RowChange(table, "U", key, replaced or None, whole, ts_ms, misfit)
