"""What every sink does with counts: its marks carry them, and its tables can hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from actors.contract.writes import StagedBatch
from changes.model.counts_table import READ, SCHEMA, read_row, staged_rows
from offsets.counts import CountRow, LaneCounts, RowCounts
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE

EARLY, LATE = 30_000_000, 30_000_001


def counted(batch: StagedBatch, minute: int, inserted: int, folded: Any = None) -> StagedBatch:
    """A batch in which so many rows were inserted in that minute."""
    minutes = {LANE: {minute: RowCounts(inserted)}}
    return replace(batch, counts=minutes, folded=folded or {})


def test_marks_carry_counts_until_they_are_folded(sink, staging, orders) -> None:
    """With the rows, in one step; a reset of the marks ends a run."""
    writer = TargetWriter(sink.store())
    first = counted(staging.batch(orders(("U", 1, "a", 1)), 4), EARLY, 1)
    writer.write(first)
    assert writer.write(first).covered
    state = writer.write(counted(staging.batch(orders(("U", 2, "b", 1)), 7, after=4), LATE, 1))
    run = LaneCounts(first.batch_id, -1, 7, {EARLY: RowCounts(1), LATE: RowCounts(1)})
    assert state.counts == {LANE: run}
    assert TargetWriter(sink.store()).open(staging.target).counts == {LANE: run}
    more = staging.batch(orders(("U", 3, "c", 1)), 9, after=7)
    state = writer.write(counted(more, LATE, 2, folded={LANE: run}))
    run = LaneCounts(more.batch_id, 7, 9, {LATE: RowCounts(2)})
    assert state.counts == {LANE: run}
    assert writer.reset(staging.target, MarkMoves({LANE: 5})).counts == {LANE: run}
    again = staging.batch(orders(("U", 3, "c", 1)), 9, after=5)
    state = writer.write(counted(again, EARLY, 1))
    assert state.counts == {LANE: LaneCounts(again.batch_id, 5, 9, {EARLY: RowCounts(1)})}
    bare = staging.batch(orders(("U", 4, "d", 1)), 11, after=9)
    assert not writer.write(bare).counts


def test_the_table_of_counts_is_one_of_its_tables(sink, staging) -> None:
    """Written again, a run is there once."""
    writer = TargetWriter(sink.store())
    lane = TopicPartition("a topic with: signs ⚙", 3)
    run = LaneCounts("run-1", -1, 7, {0: RowCounts(1, 2, 3), EARLY: RowCounts(deleted=4)})
    rows = [CountRow("lake.s.`a.b`", lane, 1_700_000_000, run), CountRow("l.s.t", LANE, 1, run)]
    table, schema = staged_rows(rows)
    assert schema == SCHEMA
    writer.write(staging.batch(table, 1, schema=schema))
    writer.write(staging.batch(table, 2))
    held = sink.read(staging.target).select(READ.split(", ")).to_pylist()
    wanted = [
        row._replace(run=run._replace(minutes={minute: counts}))
        for row in rows
        for minute, counts in run.minutes.items()
    ]
    found = [read_row(tuple(row.values())) for row in held]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
