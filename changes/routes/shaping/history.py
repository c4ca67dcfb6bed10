"""Keeps each version of a row: the present one, and one for each change that ended one.

The present version of a row is stored under its key and an empty ``_ended_at``. A change that ends
it copies it under the place of that change, and writes the next one. The copy is a row that comes
from another key and lacks all columns but its end: the fold and the sinks complete it, as they do
for keys that change. So a version is known by the change that ended it, and a write that is
repeated adds none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP, Changes, Column
from changes.model.types import TIMESTAMP_UTC

ENDED_AT = "_ended_at"
"""Key column: ``partition:offset:row`` of the change that ended the version, empty for now's."""

HISTORY = (
    Column("_valid_from", TIMESTAMP_UTC),
    Column("_valid_to", TIMESTAMP_UTC),
    Column("_is_current", pa.bool_()),
    Column(ENDED_AT, pa.string()),
)


class Happened(NamedTuple):
    """Where each row's change is, and when it happened, in milliseconds since 1970."""

    places: Sequence[str]
    times: Sequence[int]


def happened(
    changes: Changes, partition: int, offsets: Sequence[int], times: Sequence[int]
) -> Happened:
    """Of each row of decoded changes, by the times of their records."""
    assert changes.origins is not None
    seen: Counter[int] = Counter()
    places = []
    for record in changes.origins.records:
        places.append(f"{partition}:{offsets[record]}:{seen[record]}")
        seen[record] += 1
    return Happened(places, [times[record] for record in changes.origins.records])


def with_history(changes: Changes, keys: Sequence[str], when: Happened) -> pa.Table:
    """The table of shaped changes, with the versions that they end. ``keys`` are the source's."""
    table = changes.table
    assert changes.origins is not None
    rows = _Rows.of(table, changes.origins.ops)
    made = table.take(pa.array(rows.source, pa.int64()))
    ends = pa.array(rows.ends, pa.bool_())
    gone = pc.and_(pc.equal(made[OP].combine_chunks(), "D"), pc.invert(ends))
    columns = {name: made[name] for name in made.column_names if not name.startswith(HAS_PREFIX)}
    columns[OP] = pc.if_else(gone, "D", "U")
    flags = _flags(made, keys, ends, gone)
    at = pa.array([when.times[row] for row in rows.source], pa.int64())
    times = pc.cast(pc.multiply(at, 1000), pa.timestamp("us"))
    times = pc.cast(times, TIMESTAMP_UTC)
    places = pa.array([when.places[row] for row in rows.source], pa.string())
    columns["_valid_from"] = times
    flags[f"{HAS_PREFIX}_valid_from"] = pc.invert(ends)
    columns["_valid_to"] = pc.if_else(ends, times, pa.scalar(None, TIMESTAMP_UTC))
    columns["_is_current"] = pc.invert(ends)
    columns[ENDED_AT] = pc.if_else(ends, places, "")
    return pa.table(columns | flags | _origins(table, made, keys, rows, ends))


class _Rows(NamedTuple):
    """The rows that come of a table's rows. ``first``: of each of these, its first one."""

    source: list[int]
    ends: list[bool]
    """Whether the row is a version that ends there."""
    first: list[int]

    @classmethod
    def of(cls, table: pa.Table, ops: bytes) -> _Rows:
        """An insert ends nothing, nor does the arrival of a row that left another key."""
        moved = [False] * len(ops)
        if FROM in table.column_names:
            moved = pc.is_valid(table[FROM]).to_pylist()
        source: list[int] = []
        ends: list[bool] = []
        first: list[int] = []
        for row, op in enumerate(ops):
            first.append(len(source))
            if op != _INSERT and not moved[row]:
                source.append(row)
                ends.append(True)
            source.append(row)
            ends.append(False)
        return cls(source, ends, first)


_INSERT = ord("I")


def _flags(
    made: pa.Table, keys: Sequence[str], ends: pa.Array, gone: pa.Array
) -> dict[str, pa.Array]:
    """Presence: a version that ends has its columns from before; a delete has all."""
    flags = {}
    own = {OP, FROM, *keys, *(FROM_PREFIX + key for key in keys)}
    for name in made.column_names:
        if name in own or name.startswith(HAS_PREFIX):
            continue
        flag = HAS_PREFIX + name
        carried = pc.invert(ends)
        if flag in made.column_names:
            carried = pc.or_(pc.and_(made[flag], carried), gone)
        flags[flag] = carried
    return flags


def _origins(
    table: pa.Table, made: pa.Table, keys: Sequence[str], rows: _Rows, ends: pa.Array
) -> dict[str, pa.Array]:
    """Where rows come from: ended versions from their key's present one, moved rows as before."""
    before = [None] * table.num_rows
    if FROM in table.column_names:
        before = table[FROM].to_pylist()
    places: list[int | None] = []
    for place, (row, ended) in enumerate(zip(rows.source, rows.ends, strict=True)):
        old = before[row]
        places.append(place if ended else None if old is None else rows.first[old])
    known = pa.array([place is not None for place in places], pa.bool_())
    found = {FROM: pa.array(places, pa.int64())}
    for key in keys:
        left = pa.nulls(made.num_rows, made[key].type)
        if FROM_PREFIX + key in made.column_names:
            left = made[FROM_PREFIX + key]
        found[FROM_PREFIX + key] = pc.if_else(ends, made[key], left)
    found[FROM_PREFIX + ENDED_AT] = pc.if_else(known, "", pa.scalar(None, pa.string()))
    return found
