"""A row of the table of cuts as a cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from offsets.cuts import Boundary, Cut
from offsets.position import TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cut_of(row: Mapping[str, Any]) -> Cut:
    """The cut that a row of the table tells. Raises ValueError where it is none. A time without a
    zone is UTC: some databases' clients give it so; SQLite has it as text."""
    time = row["source_time"]
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if time is not None and time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    if row["boundary"] not in get_args(Boundary):
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


def _object(row: Mapping[str, Any], column: str, of: type) -> dict[str, Any]:
    found = json.loads(row[column])
    if not isinstance(found, dict) or not all(isinstance(value, of) for value in found.values()):
        raise ValueError(f"{column}: {row[column]!r}")
    return found
