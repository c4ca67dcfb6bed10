"""The table of cuts, and a cut as its row. ``cut_row.py`` reads one back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from changes.model.model import OP, Column, TableSchema
from offsets.cuts import Cut

_TIME = pa.timestamp("us", tz="UTC")

SCHEMA = TableSchema(
    (
        Column("number", pa.int64()),
        Column("pipeline", pa.string()),
        Column("made", _TIME),
        Column("boundary", pa.string()),
        Column("source_time", _TIME),
        Column("transaction", pa.string()),
        Column("positions", pa.string()),
        Column("tables", pa.string()),
        Column("left_out", pa.string()),
    ),
    ("number", "pipeline"),
)
"""``positions``, ``tables`` and ``left_out`` are JSON objects: an offset by ``topic:partition``, a
sink's version by target, a reason by target."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def staged_row(cut: Cut) -> tuple[pa.Table, TableSchema]:
    """The cut as the rows of an upsert batch, and the schema of its target."""
    time = None if cut.time_ms is None else _EPOCH + timedelta(milliseconds=cut.time_ms)
    values = {
        "number": cut.number,
        "pipeline": cut.pipeline,
        "made": _EPOCH + timedelta(seconds=cut.number),
        "boundary": cut.boundary,
        "source_time": time,
        "transaction": cut.transaction,
        "positions": _json({str(source): at for source, at in cut.positions.items()}),
        "tables": _json(cut.versions),
        "left_out": _json(cut.left_out),
    }
    columns = {each.name: pa.array([values[each.name]], each.type) for each in SCHEMA.columns}
    return pa.table({OP: pa.array(["U"], pa.string()), **columns}), SCHEMA


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, sort_keys=True)
