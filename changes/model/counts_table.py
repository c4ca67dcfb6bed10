"""The table of counts, and what runs of writes held as its rows. Both ways."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from changes.model.model import OP, Column, TableSchema
from offsets.counts import CountRow, LaneCounts, RowCounts
from offsets.position import TopicPartition

SCHEMA = TableSchema(
    (
        Column("target", pa.string()),
        Column("topic", pa.string()),
        Column("partition_number", pa.int32()),
        Column("since", pa.string()),
        Column("through", pa.int64()),
        Column("minute", pa.int64()),
        Column("starts", pa.timestamp("us", tz="UTC")),
        Column("inserted", pa.int64()),
        Column("updated", pa.int64()),
        Column("deleted", pa.int64()),
        Column("after", pa.int64()),
        Column("made", pa.int64()),
    ),
    ("target", "topic", "partition_number", "since", "through", "minute"),
)
"""The rows of a run of writes have one ``since``: what a target held of a lane's changes behind
offset ``after``, up to and with ``through``. ``minute`` is a number since 1970 of the source's
clock, 0 of changes whose time is not known, and ``starts`` the same as a time. ``made``: when the
row was written, in seconds since 1970."""

READ = (
    "target, topic, partition_number, since, through, minute, inserted, updated, deleted, after,"
    " made"
)
"""The columns of which ``read_row`` makes a row again."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def staged_rows(rows: Sequence[CountRow]) -> tuple[pa.Table, TableSchema]:
    """Runs as the rows of an upsert batch, and the schema of its target."""
    found = [
        _values(row, minute, counts)
        for row in rows
        for minute, counts in sorted(row.run.minutes.items())
    ]
    columns = {
        column.name: pa.array([row[place] for row in found], column.type)
        for place, column in enumerate(SCHEMA.columns)
    }
    return pa.table({OP: pa.array(["U"] * len(found), pa.string()), **columns}), SCHEMA


def _values(row: CountRow, minute: int, counts: RowCounts) -> tuple[object, ...]:
    run, starts = row.run, _EPOCH + timedelta(minutes=minute)
    name = row.target, *row.lane, run.since, run.through, minute
    return *name, starts, *counts, run.after, row.made


def read_row(values: Sequence[Any]) -> CountRow:
    """A row of such a table, with the one minute that it is of. ``values``: as ``READ`` has them.
    Raises ValueError, TypeError."""
    target, topic, partition, since, through, minute, *counts, after, made = values
    run = LaneCounts(since, int(after), int(through), {int(minute): RowCounts(*map(int, counts))})
    return CountRow(target, TopicPartition(topic, int(partition)), int(made), run)
