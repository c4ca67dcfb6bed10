"""Explains rows of the protobuf formats: each change with its key, its row before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from changes.formats.engine.explain import images_of, key_of
from changes.formats.engine.format import RowChange
from changes.model.model import TableName
from changes.sql.convert import Converter

Image = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row change: texts by column; what an image does not hold is left out of it."""

    op: str
    now: Image
    was: Image | None
    keys: tuple[str, ...]
    types: Mapping[str, str]


def explain_rows(
    table: TableName, rows: Sequence[TextRow], converter: Converter, ts_ms: int | None
) -> Iterator[RowChange]:
    """Explain rows; raises Refused."""
    for row in rows:
        types = {name: row.types.get(name, "text") for name in (*row.now, *(row.was or ()))}
        raws = [_raw(row.now), _raw(row.was or {})]
        (now, was), misfits = images_of(raws, types, converter, row.keys)
        misfit = misfits.get(0) or misfits.get(1)
        if row.op != "U":
            before, after = (None, now) if row.op == "I" else (now, None)
            key = key_of(row.keys, now)
            yield RowChange(table, row.op, key, before, after, ts_ms, misfit)
            continue
        key = key_of(row.keys, was | now)
        whole = now | key
        yield RowChange(table, "U", key, (whole | was) if was else None, whole, ts_ms, misfit)


def _raw(image: Image) -> dict[str, Raw]:
    return {name: Raw(msgspec.json.encode(text)) for name, text in image.items()}
