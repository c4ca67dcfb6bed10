"""Writes that end amid a message: the mark is below it, their step fences and is carried."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.errors import SinkUnavailable
from changes.model.model import Column, DropTable, Mode, TableSchema, TruncateTable
from offsets.fence import Fenced, Span, Straggler
from offsets.position import NO_OFFSET, EntryStep, TopicPartition
from offsets.snapshot import MarkMoves, TargetMark
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import MaintenanceSection
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from tests.sparkwriter.conftest import LANE, Staging

pytestmark = pytest.mark.integration
OTHER = TopicPartition("shop", 1)
Rows = Callable[..., list[tuple[object, ...]]]
GROUP = "g@here"


def part(
    staging: Staging,
    table: pa.Table | None,
    done: int,
    *,
    begun: int = 0,
    mark: int | None = None,
    last: bool = False,
    **more: Any,
) -> StagedBatch:
    """A segment of the message at offset 5, up to its entry ``done``; of a target at 1."""
    if mark is None:
        mark = 4 if begun else 1
    batch = staging.batch(table, 5, after=mark, **more)
    lanes = {LANE: Span(mark, 5 if last else 4)}
    return replace(batch, lanes=lanes, step=EntryStep(5, done, 7), begun=begun, group=GROUP)


@pytest.fixture
def begun(writer: IcebergWriter, staging: Staging, orders: Any) -> Staging:
    """A target with order 1, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    return staging


def test_a_step_is_published_with_its_rows_and_found_again(
    writer, begun, orders, spark: SparkSession, rows: Rows
) -> None:
    """The mark is below the message; repeating the write changes nothing."""
    first = part(begun, orders(("U", 2, "b", 2)), 1)
    state = writer.write(first)
    assert (state.hwms, state.steps) == ({LANE: 4}, {LANE: EntryStep(5, 1, 7)})
    again = writer.write(first)
    assert (again.covered, again.version) == (True, state.version)
    assert writer.open(begun.target).steps == {LANE: EntryStep(5, 1, 7)}
    table = LakeCatalog(spark).load(begun.target)
    assert table is not None
    assert json.loads(table.summary(table.head(MAIN), HWM)) == {"shop:0": [4, GROUP, [5, 1, 7]]}
    last = part(begun, orders(("D", 1, None, None)), 2, begun=1, last=True)
    state = writer.write(last)
    assert (state.hwms, state.steps) == ({LANE: 5}, {})
    assert writer.write(last).covered
    assert rows(begun.target) == [(2, "b", 2)]


def test_a_segment_out_of_turn_is_fenced(writer, begun, orders, rows: Rows) -> None:
    """One that another has written, one before its time, and a write that knows of no step."""
    with pytest.raises(Fenced, match="is at entry 0 of offset 5, expected 1"):
        writer.write(part(begun, orders(("U", 3, "c", 3)), 2, begun=1, mark=1))
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    other_cut = part(begun, orders(("U", 3, "c", 3)), 3, mark=4)
    with pytest.raises(Straggler, match="is at entry 1 of offset 5, expected 0"):
        writer.write(other_cut)
    with pytest.raises(Fenced, match=f"moved by group {GROUP}") as fenced:
        writer.write(replace(other_cut, group="g2@here"))
    assert type(fenced.value) is Fenced
    with pytest.raises(Fenced, match="is at entry 1 of offset 5, expected 0"):
        writer.write(begun.batch(orders(("U", 3, "c", 3)), 9, after=4))
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]


def test_a_table_that_begins_amid_the_first_message(writer, staging, orders) -> None:
    """Its lane has no mark yet, and the step all the same."""
    batch = part(staging, orders(("U", 2, "b", 2)), 1)
    first = replace(batch, lanes={LANE: Span(NO_OFFSET, NO_OFFSET)}, step=EntryStep(0, 1))
    state = writer.write(first)
    assert (state.hwms, state.steps) == ({LANE: NO_OFFSET}, {LANE: EntryStep(0, 1)})
    assert writer.write(first).covered
    end = replace(first, path=None, lanes={LANE: Span(NO_OFFSET, 0)}, begun=1)
    state = writer.write(end)
    assert (state.hwms, state.steps) == ({LANE: 0}, {})


def test_others_publishes_carry_a_step(writer, begun, orders, spark: SparkSession) -> None:
    """Another lane's mark, and the snapshot that upkeep stamps anew on a stranger's."""
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    other = begun.batch(None, 3, after=NO_OFFSET, lane=OTHER)
    assert writer.write(other).steps == {LANE: EntryStep(5, 1, 7)}
    spark.sql(f"INSERT INTO {'.'.join(begun.target)} VALUES (50, 'x', 0)")
    table = LakeCatalog(spark).load(begun.target)
    assert table is not None
    hours_later = Upkeep(
        anonymous(), MaintenanceSection.model_construct(retain_last=1), lambda: 1e10
    )
    hours_later.run(begun.target, table)
    assert table.snapshots() == 1
    state = writer.open(begun.target)
    assert (state.hwms, state.steps) == ({LANE: 4, OTHER: 3}, {LANE: EntryStep(5, 1, 7)})


def test_marks_that_are_put_back_from_the_record_are_none_amid_a_message(
    writer, begun, orders, spark: SparkSession
) -> None:
    """The record names no version then: nobody could tell that half of the message is in."""
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    name = ".".join(begun.target)
    spark.sql(f"INSERT INTO {name} VALUES (50, 'x', 0)")
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', retain_last => 1,"
        " older_than => TIMESTAMP '2999-01-01')"
    )
    with pytest.raises(Exception, match="the mark is gone"):
        writer.open(begun.target, TargetMark(None, {LANE: 4}))


def test_a_reset_below_the_mark_begins_the_message_anew(writer, begun, orders) -> None:
    """One that leaves the mark where it is keeps the step: it goes on from there."""
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    assert writer.reset(begun.target, MarkMoves({LANE: 4})).steps == {LANE: EntryStep(5, 1, 7)}
    state = writer.reset(begun.target, MarkMoves({LANE: 0}))
    assert (state.hwms, state.steps) == ({LANE: 0}, {})
    assert writer.open(begun.target).steps == {}


def test_a_changelog_loses_a_half_message_with_its_step(writer, staging, rows: Rows) -> None:
    """Both or none: what is written again must not be there."""
    schema = TableSchema((Column("note", pa.string()),), ())

    def listed(offset: int) -> pa.Table:
        return pa.table(
            {
                "_op": ["I"],
                "_partition": pa.array([0], pa.int32()),
                "_offset": pa.array([offset], pa.int64()),
                "_index": pa.array([0], pa.int32()),
                "note": ["x"],
            }
        )

    writer.write(staging.batch(listed(1), 1, mode=Mode.APPEND, schema=schema))
    writer.write(part(staging, listed(5), 1, mode=Mode.APPEND))
    state = writer.reset(staging.target, MarkMoves({LANE: 0}))
    assert (state.hwms, state.steps, rows(staging.target)) == ({LANE: 0}, {}, [])


def test_statements_amid_a_message(writer, begun, orders, rows: Rows) -> None:
    """TRUNCATE, rows, DROP, a table made anew: each once, in order, under one offset."""
    truncate = part(begun, None, 1, ddl=[[TruncateTable()]])
    writer.write(truncate)
    assert writer.write(truncate).covered
    assert rows(begun.target) == []
    writer.write(part(begun, orders(("U", 2, "b", 2)), 2, begun=1))
    dropped = part(begun, None, 3, begun=2, ddl=[[DropTable()]])
    state = writer.write(dropped)
    assert (state.schema, state.hwms, state.steps) == (None, {LANE: 4}, {LANE: EntryStep(5, 3, 7)})
    assert writer.write(dropped).covered
    state = writer.write(part(begun, orders(("U", 3, "c", 3)), 4, begun=3))
    assert (state.hwms, state.steps) == ({LANE: 4}, {LANE: EntryStep(5, 4, 7)})
    end = part(begun, None, 4, begun=4, last=True)
    state = writer.write(end)
    assert (state.hwms, state.steps, rows(begun.target)) == ({LANE: 5}, {}, [(3, "c", 3)])
    assert writer.write(end).covered


@pytest.mark.parametrize("follows", [True, False])
def test_a_table_is_renamed_amid_a_message(
    writer, begun, orders, rows: Rows, follows: bool
) -> None:
    """Its new name's target goes on behind the statement, where more of the message follows."""
    old, new = begun.target, begun.target._replace(table=f"{begun.target.table}_new")
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    leaves = part(begun, None, 2, begun=1, last=True, moves_to=new)
    into = replace(
        part(begun, None, 2, mark=NO_OFFSET, last=not follows, takes_from=old), target=new
    )
    with pytest.raises(SinkUnavailable, match="waits"):
        writer.write(leaves)
    with pytest.raises(SinkUnavailable, match="waits"):
        writer.write(into)
    assert writer.write(leaves).hwms == {LANE: 5}
    amid = writer.open(new)
    assert (amid.hwms, amid.steps) == ({LANE: 4}, {LANE: EntryStep(5, 2, 7)})
    state = writer.write(into)
    assert state.covered
    if follows:
        assert (state.hwms, state.steps) == ({LANE: 4}, {LANE: EntryStep(5, 2, 7)})
        third = part(begun, orders(("U", 3, "c", 3)), 3, begun=2, mark=4, last=True)
        state = writer.write(replace(third, target=new))
    assert (state.hwms, state.steps) == ({LANE: 5}, {})
    assert writer.open(new).hwms == {LANE: 5}
    assert [row[0] for row in rows(new)] == ([1, 2, 3] if follows else [1, 2])
    assert writer.write(leaves).covered


def test_a_table_takes_the_place_of_another_amid_a_message(
    writer, begun, orders, rows: Rows
) -> None:
    """As an online schema change ends: the rows behind it are the new table's."""
    live = begun.target
    ghost, away = (live._replace(table=f"{live.table}_{end}") for end in ("gho", "del"))
    writer.write(replace(begun.batch(orders(("U", 7, "g", 7)), 1, after=NO_OFFSET), target=ghost))
    writer.write(part(begun, orders(("U", 2, "b", 2)), 1))
    swap = part(begun, None, 2, begun=1, moves_to=away, takes_from=ghost)
    taken = replace(part(begun, None, 2, mark=NO_OFFSET, last=True, takes_from=live), target=away)
    given = replace(part(begun, None, 2, last=True, moves_to=live), target=ghost)
    for batch in (given, swap, taken, swap, given):
        # Each waits for what the others have to do first.
        with suppress(SinkUnavailable):
            writer.write(batch)
    assert [writer.write(batch).covered for batch in (given, swap, taken)] == [True] * 3
    assert [row[0] for row in rows(live)] == [7]
    assert [row[0] for row in rows(away)] == [1, 2]
    state = writer.open(live)
    assert (state.hwms, state.steps) == ({LANE: 4}, {LANE: EntryStep(5, 2, 7)})
    assert [writer.open(name).hwms for name in (ghost, away)] == [{LANE: 5}, {LANE: 5}]
    writer.write(part(begun, orders(("U", 8, "h", 8)), 3, begun=2, mark=4, last=True))
    assert [row[0] for row in rows(live)] == [7, 8]
