"""Explains Alibaba DTS's records: each change with its key, its row before and after."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from changes.decoding.convert import Converter
from changes.decoding.images import images_of, key_of
from changes.formats.aliyun.record import Record
from changes.formats.aliyun.rows import UTC, Image, row_of
from changes.formats.base import RowChange
from changes.model import FormatOptions, TableName


def explain_record(
    table: TableName, record: Record, options: FormatOptions, ts_ms: int | None
) -> RowChange:
    """Explain a record of a row; raises Refused."""
    row = row_of(record)
    types = {name: row.types.get(name, "text") for name, _ in record.fields}
    raws = [_raw(row.now), _raw(row.was or {})]
    (now, was), misfits = images_of(raws, types, Converter(UTC, options.zero_dates), row.keys)
    misfit = misfits.get(0) or misfits.get(1)
    if row.op != "U":
        before, after = (None, now) if row.op == "I" else (now, None)
        return RowChange(table, row.op, key_of(row.keys, now), before, after, ts_ms, misfit)
    key = key_of(row.keys, was | now)
    whole = now | key
    return RowChange(table, "U", key, (whole | was) or None, whole, ts_ms, misfit)


def _raw(image: Image) -> dict[str, Raw]:
    return {name: Raw(msgspec.json.encode(text)) for name, text in image.items()}
