"""The table of cuts: a cut as a row, and a row as a cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from changes.model.model import OP, Column, TableSchema
from offsets.cuts import Cut
from offsets.position import TopicPartition

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


def cut_of(row: Mapping[str, Any]) -> Cut:
    """The cut that a row of the table tells. Raises ValueError where it is none."""
    time = row["source_time"]
    if row["boundary"] not in ("transaction", "time"):
        raise ValueError(f"boundary: {row['boundary']!r}")
    positions = _object(row, "positions", int)
    return Cut(
        number=row["number"],
        pipeline=row["pipeline"],
        boundary=row["boundary"],
        positions={TopicPartition.parse(source): at for source, at in positions.items()},
        time_ms=None if time is None else (time - _EPOCH) // timedelta(milliseconds=1),
        transaction=row["transaction"],
        versions=_object(row, "tables", str),
        left_out=_object(row, "left_out", str),
    )


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def _object(row: Mapping[str, Any], column: str, of: type) -> dict[str, Any]:
    found = json.loads(row[column])
    if not isinstance(found, dict) or not all(isinstance(value, of) for value in found.values()):
        raise ValueError(f"{column}: {row[column]!r}")
    return found
