"""What every sink keeps: rows and marks together, each write once, whoever comes late is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.writes import Doubt, TargetState
from changes.model.errors import TargetRefused
from changes.model.model import FROM, FROM_PREFIX, OP, Column, Mode, TableName, TableSchema
from offsets.fence import Fenced, Span, Straggler
from offsets.position import EntryStep, TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE

OTHER = TopicPartition("shop", 1)
OURS, THEIRS = "g@here", "g@there"


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def table(writer, staging, orders) -> Any:
    """A table with two rows, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    return staging


def test_a_target_that_is_not_there_shows_nothing(writer, target) -> None:
    assert writer.open(target) == TargetState()


def test_rows_are_inserted_replaced_and_deleted(writer, table, rows, orders) -> None:
    """A delete of a key that nobody has is nothing; the state is what a new look shows."""
    changes = orders(("U", 2, "B", None), ("D", 1, None, None), ("D", 7, None, None))
    state = writer.write(table.batch(changes, 5))
    assert rows(table.target) == [(2, "B", None)]
    assert (state.schema, state.hwms, state.covered) == (table.schema, {LANE: 5}, False)
    assert writer.open(table.target) == state


def test_a_write_that_lost_its_reply_is_covered(writer, table, rows, orders) -> None:
    """Repeating it changes neither rows nor version; a member that is new sees so too."""
    batch = table.batch(orders(("U", 1, "z", 1)), 2)
    state = writer.write(batch)
    again = writer.write(batch)
    assert (again.covered, again.version, again) == (True, state.version, state)
    assert rows(table.target) == [(1, "z", 1), (2, "b", 20)]


def test_whoever_comes_late_is_fenced(sink, writer, table, rows, orders) -> None:
    """A zombie's write does not land: of its own group a straggler, of another one fenced."""
    zombie = TargetWriter(sink.store())
    zombie.open(table.target)
    late = replace(table.batch(orders(("U", 1, "late", 0)), 4), group=OURS)
    theirs = replace(table.batch(orders(("U", 1, "new", 1)), 3, after=1), group=THEIRS)
    writer.write(theirs)
    with pytest.raises(Fenced, match="moved by group g@there") as fenced:
        zombie.write(late)
    assert type(fenced.value) is Fenced
    with pytest.raises(Straggler):
        zombie.write(replace(late, group=THEIRS))
    assert rows(table.target) == [(1, "new", 1), (2, "b", 20)]


def test_a_gap_is_not_jumped(writer, table, orders) -> None:
    """A batch that begins above the mark would leave out what is between."""
    with pytest.raises(Straggler, match="stands at 1, expected 3"):
        writer.write(table.batch(orders(("U", 1, "x", 1)), 4, after=3))


def test_marks_of_other_lanes_are_carried(writer, staging, orders) -> None:
    """And marks alone are published, too."""
    schema = TableSchema((Column("note", pa.string()),), ())
    listed = changelog((0, 0), (1, 3))
    first = staging.batch(listed, 0, mode=Mode.APPEND, schema=schema)
    lanes = {LANE: Span(-1, 0), OTHER: Span(-1, 3)}
    writer.write(replace(first, lanes=lanes))
    state = writer.write(staging.batch(None, 9, after=0, mode=Mode.APPEND))
    assert state.hwms == {LANE: 9, OTHER: 3}
    assert writer.open(staging.target) == state


def test_a_second_lane_without_an_order_is_refused(writer, table, orders) -> None:
    """Partitions have no order between them."""
    with pytest.raises(TargetRefused, match="partitions have no order"):
        writer.write(table.batch(orders(("U", 9, "x", 1)), 5, after=-1, lane=OTHER))


def test_steps_of_a_message_fence_and_end_with_it(writer, table, rows, orders) -> None:
    """The mark is below the message; how far it is in is published with the rows."""
    part = table.batch(orders(("U", 3, "c", 3)), 5)
    first = replace(part, lanes={LANE: Span(1, 4)}, step=EntryStep(5, 1, 7), group=OURS)
    state = writer.write(first)
    assert (state.hwms, state.steps) == ({LANE: 4}, {LANE: EntryStep(5, 1, 7)})
    assert writer.write(first).covered
    skipped = replace(first, lanes={LANE: Span(4, 5)}, step=EntryStep(5, 3), begun=2)
    with pytest.raises(Straggler, match="is at entry 1 of offset 5, expected 2"):
        writer.write(skipped)
    rest = table.batch(orders(("D", 1, None, None)), 5)
    last = replace(rest, lanes={LANE: Span(4, 5)}, step=EntryStep(5, 2), begun=1, group=OURS)
    state = writer.write(last)
    assert (state.hwms, state.steps) == ({LANE: 5}, {})
    assert rows(table.target) == [(2, "b", 20), (3, "c", 3)]


def test_columns_come_with_rows_and_types_widen(writer, table, rows) -> None:
    """Stored rows are null in a new column and keep their values in a wider one."""
    columns = (*table.schema.columns[:2], Column("n", pa.int64()), Column("x", pa.string()))
    wide = pa.table(
        {OP: ["U"], "id": [3], "note": ["c"], "n": pa.array([2**40], pa.int64()), "x": ["new"]}
    )
    state = writer.write(table.batch(wide, 2, schema=TableSchema(columns, ("id",))))
    assert state.schema is not None
    assert {column.name: column.type for column in state.schema.columns}["n"] == pa.int64()
    assert rows(table.target) == [(1, "a", 10, None), (2, "b", 20, None), (3, "c", 2**40, "new")]


def test_what_does_not_fit_is_refused_and_nothing_is_written(writer, table, rows) -> None:
    """Another type, another key, another mode."""
    columns = (*table.schema.columns[:2], Column("n", pa.string()))
    text = pa.table({OP: ["U"], "id": [3], "note": ["c"], "n": ["three"]})
    with pytest.raises(TargetRefused, match="stored as int, which can't become string"):
        writer.write(table.batch(text, 2, schema=TableSchema(columns, ("id",)), after=1))
    other = TableSchema(table.schema.columns[:2], ("note",))
    with pytest.raises(TargetRefused, match="key"):
        writer.write(table.batch(text.drop(["n"]), 2, schema=other, after=1))
    assert rows(table.target) == [(1, "a", 10), (2, "b", 20)]
    assert writer.open(table.target).hwms == {LANE: 1}


def test_null_keys_are_values(writer, staging, rows) -> None:
    """Found again, not inserted twice."""
    columns = (Column("a", pa.int32()), Column("b", pa.string()), Column("v", pa.int32()))
    schema = TableSchema(columns, ("a", "b"))

    def made(ops: list[str], values: list[int | None]) -> pa.Table:
        ones, numbers = pa.array([1, 1], pa.int32()), pa.array(values, pa.int32())
        return pa.table({OP: ops, "a": ones, "b": [None, "x"], "v": numbers})

    writer.write(staging.batch(made(["U", "U"], [1, 2]), 1, schema=schema))
    writer.write(staging.batch(made(["U", "D"], [9, None]), 2))
    assert rows(staging.target) == [(1, None, 9)]


def test_partial_rows_keep_what_they_do_not_carry(writer, table, rows) -> None:
    """A null that was carried is written."""
    part = pa.table(
        {
            OP: ["U", "U", "U"],
            "id": [1, 2, 3],
            "note": pa.array([None, None, None], pa.string()),
            "__binlogd_has_note": [True, False, False],
            "n": pa.array([7, 8, 9], pa.int32()),
        }
    )
    writer.write(table.batch(part, 2, partial=["note"]))
    assert rows(table.target) == [(1, None, 7), (2, "b", 8), (3, None, 9)]


def test_moved_keys_take_what_the_old_row_had(writer, staging, rows, orders) -> None:
    """Row 1 moves to 5, 2 and 3 swap places, 4 is partial; the file lacks the column n."""
    stored = [("U", key, f"note {key}", key) for key in (1, 2, 3, 4)]
    writer.write(staging.batch(orders(*stored), 1))
    moves = pa.table(
        {
            OP: ["D", "U", "U", "U", "U", "U"],
            "id": [1, 5, 2, 3, 4, 6],
            "note": [None, "new", None, None, None, "six"],
            "__binlogd_has_note": [True, True, False, False, False, True],
            FROM: pa.array([None, 0, 0, 0, None, None], pa.int64()),
            FROM_PREFIX + "id": [None, 1, 3, 2, None, None],
        }
    )
    schema = TableSchema(staging.schema.columns[:2], ("id",))
    writer.write(staging.batch(moves, 2, partial=["note"], schema=schema))
    assert rows(staging.target) == [
        (2, "note 3", 3),
        (3, "note 2", 2),
        (4, "note 4", 4),
        (5, "new", 1),
        (6, "six", None),
    ]


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


def test_a_reset_takes_from_a_changelog_what_comes_again(writer, staging, sink) -> None:
    """In one step with the marks; repeating it changes nothing."""
    schema = TableSchema((Column("note", pa.string()),), ())
    listed = changelog((0, 0), (0, 1), (0, 2))
    writer.write(staging.batch(listed, 2, mode=Mode.APPEND, schema=schema))
    lower = MarkMoves(lower={LANE: 0})
    state = writer.reset(staging.target, lower)
    assert (state.hwms, sink.read(staging.target)["note"].to_pylist()) == ({LANE: 0}, ["0"])
    assert writer.open(staging.target) == state
    again = writer.reset(staging.target, lower)
    assert (again.covered, again) == (True, state)
    writer.write(staging.batch(changelog((0, 1)), 1, after=0, mode=Mode.APPEND))
    assert sorted(sink.read(staging.target)["note"].to_pylist()) == ["0", "1"]


def test_a_reset_of_a_keyed_table_keeps_its_rows(writer, table, rows, orders) -> None:
    """They are written over by what comes again."""
    writer.write(table.batch(orders(("U", 3, "c", 3)), 5))
    assert writer.reset(table.target, MarkMoves(lower={LANE: 1})).hwms == {LANE: 1}
    assert len(rows(table.target)) == 3
    assert writer.write(table.batch(orders(("D", 3, None, None)), 5, after=1)).hwms == {LANE: 5}
    assert rows(table.target) == [(1, "a", 10), (2, "b", 20)]


def test_a_table_is_of_one_source(writer, staging, rows, orders) -> None:
    """A second one that leads to it is refused, by whatever member."""
    first, second = TableName("shop", "a"), TableName("shop", "b")
    writer.write(replace(staging.batch(orders(("U", 1, "a", 1)), 1), table=first))
    with pytest.raises(TargetRefused, match=r"it is of the table shop\.a, and shop\.b leads"):
        writer.write(replace(staging.batch(orders(("U", 2, "b", 2)), 2), table=second))
    assert rows(staging.target) == [(1, "a", 1)]


def test_a_doubt_about_stored_rows_stays_with_the_table(sink, writer, table, orders) -> None:
    """Until it is emptied; where there are no rows there is nothing to doubt."""
    narrowed = Doubt("MODIFY n at offset 2")
    state = writer.write(table.batch(None, 2, doubts=[narrowed]))
    assert state.rows_may_differ == narrowed.what
    assert TargetWriter(sink.store()).open(table.target).rows_may_differ == narrowed.what
