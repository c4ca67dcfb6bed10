"""Moving a target's marks: what is to be applied again goes with them, in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from changes.model.errors import LostRace, TargetRefused
from changes.model.model import Column, Mode, TableSchema, TargetName
from offsets.fence import Span
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.iceberg import store as iceberg
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.publish import create_branch
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.kit.shape import rows_above

LANE = TopicPartition("shop", 0)
OTHER = TopicPartition("shop", 1)
Rows = Callable[..., list[tuple[object, ...]]]


def lower(to: int, source: TopicPartition = LANE) -> MarkMoves:
    return MarkMoves(lower={source: to})


def changelog(*places: tuple[int, int]) -> pa.Table:
    """Rows of ``(partition, offset)``."""
    partitions, offsets = zip(*places, strict=True)
    return pa.table(
        {
            "_op": ["I"] * len(places),
            "_partition": pa.array(partitions, pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
            "_index": pa.array([0] * len(places), pa.int32()),
            "note": [str(offset) for offset in offsets],
        }
    )


@pytest.fixture
def listed(writer: IcebergWriter, staging: Any) -> Any:
    """A changelog with offsets 0 to 3 of one lane and 0 to 2 of another, in several files."""
    schema = TableSchema((Column("note", pa.string()),), ())
    first = staging.batch(changelog((0, 0), (0, 1), (0, 2)), 2, mode=Mode.APPEND, schema=schema)
    writer.write(first)
    both = staging.batch(changelog((0, 3), (1, 0), (1, 1), (1, 2)), 3, mode=Mode.APPEND)
    writer.write(replace(both, lanes={LANE: Span(2, 3), OTHER: Span(-1, 2)}))
    return staging


def test_which_rows_are_above() -> None:
    """Those of the lanes whose marks are lowered, by partition and offset."""
    before = {LANE: 9, OTHER: 5, TopicPartition("shop", 2): 3}
    after = {**before, LANE: 4, OTHER: -1}
    assert rows_above(before, before) is None
    assert rows_above(before, after) == (
        "(`_partition` = 0 AND `_offset` > 4) OR (`_partition` = 1 AND `_offset` > -1)"
    )


def test_rows_of_two_topics_can_not_be_told_apart() -> None:
    """A changelog of several topics is refused, not guessed at: others' rows would go."""
    before = {LANE: 9, TopicPartition("bank", 0): 5}
    with pytest.raises(TargetRefused, match=r"rows of shop:0 can't be distinguished"):
        rows_above(before, {**before, LANE: 4})


@pytest.mark.integration
def test_a_changelog_loses_what_will_be_written_again(
    writer: IcebergWriter, listed: Any, rows: Rows
) -> None:
    """In the step that lowers the mark; the other lane's rows and mark stay."""
    state = writer.reset(listed.target, lower(1))
    assert state.hwms == {LANE: 1, OTHER: 2}
    assert rows(listed.target, "_partition, _offset") == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert writer.open(listed.target) == state


@pytest.mark.integration
def test_the_rows_are_there_once_after_they_came_again(
    writer: IcebergWriter, listed: Any, rows: Rows
) -> None:
    """From its beginning, as after ``--to earliest``."""
    writer.reset(listed.target, MarkMoves(lower={LANE: -1, OTHER: -1}))
    assert rows(listed.target) == []
    again = listed.batch(changelog((0, 0), (0, 1), (0, 2), (0, 3)), 3, after=-1, mode=Mode.APPEND)
    writer.write(again)
    assert rows(listed.target, "_offset") == [(0,), (1,), (2,), (3,)]


@pytest.mark.integration
def test_whole_files_go_with_the_mark_too(writer: IcebergWriter, staging: Any, rows: Rows) -> None:
    """Spark then removes them without writing, and the stamp needs a snapshot of its own."""
    schema = TableSchema((Column("note", pa.string()),), ())
    for offset in range(3):
        table = changelog((0, offset))
        writer.write(staging.batch(table, offset, mode=Mode.APPEND, schema=schema))
    state = writer.reset(staging.target, lower(0))
    assert (state.hwms, rows(staging.target, "_offset")) == ({LANE: 0}, [(0,)])
    assert writer.open(staging.target) == state
    writer.write(staging.batch(changelog((0, 1)), 1, after=0, mode=Mode.APPEND))
    assert rows(staging.target, "_offset") == [(0,), (1,)]


@pytest.mark.integration
def test_repeating_a_reset_changes_nothing(writer: IcebergWriter, listed: Any) -> None:
    """A crash before it was noted down makes it run twice."""
    state = writer.reset(listed.target, lower(1))
    again = writer.reset(listed.target, lower(1))
    assert (again, again.covered) == (state, True)


@pytest.mark.integration
def test_a_keyed_table_keeps_its_rows(
    writer: IcebergWriter, staging: Any, orders: Any, rows: Rows
) -> None:
    """They are written over by what comes again, and nobody finds the table empty meanwhile."""
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 5))
    assert writer.reset(staging.target, lower(0)).hwms == {LANE: 0}
    assert rows(staging.target) == [(1, "a", 1), (2, "b", 2)]
    again = writer.write(staging.batch(orders(("D", 2, None, None)), 5, after=0))
    assert (again.hwms, rows(staging.target)) == ({LANE: 5}, [(1, "a", 1)])


@pytest.mark.integration
def test_a_mark_is_lifted_and_nothing_else(writer: IcebergWriter, listed: Any, rows: Rows) -> None:
    """What is skipped is not in the table, and is not asked for again."""
    state = writer.reset(listed.target, MarkMoves(lift={LANE: 9, OTHER: 0}))
    assert state.hwms == {LANE: 9, OTHER: 2}
    assert len(rows(listed.target)) == 7


@pytest.mark.integration
def test_no_table_and_no_lane_have_nothing_to_be_moved(writer: IcebergWriter, listed: Any) -> None:
    """A table is not made for it, nor a mark of a partition that the table does not hold."""
    nowhere = TargetName("lake", "sink", "nowhere")
    assert writer.reset(nowhere, lower(1)).hwms == {}
    assert writer.open(nowhere).schema is None
    other = MarkMoves(lift={TopicPartition("shop", 7): 5})
    assert writer.reset(listed.target, other).hwms == {LANE: 3, OTHER: 2}


@pytest.mark.integration
def test_the_marks_of_a_table_that_is_gone_are_lowered(
    writer: IcebergWriter, target: TargetName, spark: SparkSession
) -> None:
    """It was dropped at the source: read again from before that, its rows come back."""
    LakeCatalog(spark).bury(target, '{"shop:0": 7}')
    assert writer.reset(target, lower(3)).hwms == {LANE: 3}
    assert writer.open(target).hwms == {LANE: 3}


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens once a branch has been made."""
    between: list[Callable[[], object]] = []
    made = create_branch

    def make(*args: Any) -> None:
        made(*args)
        if between:
            between.pop()()

    monkeypatch.setattr(iceberg, "create_branch", make)
    return between


@pytest.mark.integration
def test_a_write_that_comes_between_is_not_taken_back(
    writer: IcebergWriter, listed: Any, rows: Rows, raced: list[Callable[[], object]]
) -> None:
    """The reset has lost, deletes nothing, and is done again on what is there then."""
    late = listed.batch(changelog((0, 4)), 4, after=3, mode=Mode.APPEND)
    raced.append(lambda: writer.write(late))
    with pytest.raises(LostRace):
        writer.reset(listed.target, lower(1))
    assert len(rows(listed.target)) == 8
    assert writer.reset(listed.target, lower(1)).hwms == {LANE: 1, OTHER: 2}
    assert rows(listed.target, "_partition, _offset")[:2] == [(0, 0), (0, 1)]
