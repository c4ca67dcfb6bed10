"""Several lanes in one Iceberg table: the source's order decides, whatever order they come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from actors.contract.writes import Doubt, StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import OP, POSITION, AddColumn, Column, TargetName
from changes.model.positions import position_text, with_ends
from changes.routes.fold import fold, has_deletes, key_bounds
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.section import MaintenanceSection
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.staged_source import LooseTables
from sparkwriter.iceberg.swap import NameTombstones, tombstones_of

pytestmark = [pytest.mark.integration, pytest.mark.long]
Rows = Callable[..., list[tuple[object, ...]]]
ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)
_offsets = count(1)
Change = tuple[int, str, int]
"""When, ``U`` or ``D``, which key; the row's number says when it was changed."""


class Lanes:
    """Stages the batches of two lanes of one target, each from where it ended."""

    def __init__(self, staging, positions: str | None = "lsn") -> None:
        self._staging = staging
        self._ends: dict[TopicPartition, int] = {}
        self._positions = positions

    def batch(self, lane: TopicPartition, *changes: Change) -> StagedBatch:
        ops = pa.array([op for _, op, _ in changes], pa.string())
        gone = [op == "D" for _, op, _ in changes]
        values = [None if g else at for g, (at, _, _) in zip(gone, changes, strict=True)]
        columns = {
            OP: ops,
            "id": pa.array([key for _, _, key in changes], pa.int64()),
            "note": pa.nulls(len(changes), pa.string()),
            "n": pa.array(values, pa.int32()),
        }
        if self._positions is not None:
            texts = pa.array([position_text(at) for at, _, _ in changes], pa.string())
            columns[POSITION] = with_ends(texts, ops)
        table = fold(pa.table(columns), ["id"])
        through = next(_offsets)
        after = self._ends.get(lane, -1)
        self._ends[lane] = through
        bounds = key_bounds(table, ["id"])
        made = self._staging.batch(table, through, after=after, lane=lane, bounds=bounds)
        return StagedBatch(
            made.batch_id, made.target, made.mode, made.schema, made.lanes, made.path,
            rows=table.num_rows, has_deletes=has_deletes(table), bounds=bounds,
            positions=self._positions, options=made.options,
        )  # fmt: skip


@pytest.fixture
def lanes(staging) -> Lanes:
    """Two lanes with positions."""
    return Lanes(staging)


def test_an_older_change_of_another_lane_does_nothing(writer, lanes, rows: Rows) -> None:
    """An update, a delete and an insert, each older than what the table knows of its key."""
    writer.write(lanes.batch(ONE, (10, "U", 1), (11, "U", 2), (12, "D", 3), (13, "U", 4)))
    late = [(5, "U", 1), (6, "D", 2), (7, "U", 3), (14, "U", 4), (8, "U", 5)]
    state = writer.write(lanes.batch(TWO, *late))
    assert rows(lanes._staging.target, "id, n") == [(1, 10), (2, 11), (4, 14), (5, 8)]
    assert set(state.hwms) == {ONE, TWO}


def test_a_first_batch_leaves_its_tombstones(writer, lanes, rows: Rows) -> None:
    """Also of a key that the table never held, and though the table was empty."""
    writer.write(lanes.batch(ONE, (9, "D", 1)))
    writer.write(lanes.batch(TWO, (8, "U", 1), (3, "U", 2)))
    assert rows(lanes._staging.target, "id, n") == [(2, 3)]


def test_a_column_is_added_between_the_lanes_changes(writer, lanes, rows: Rows) -> None:
    """Rows and tombstones of before it count on: the column of the positions stays as it is. A row
    of before it that comes later shows the column's default, as at the source."""
    writer.write(lanes.batch(ONE, (10, "U", 1), (12, "D", 2)))
    made = lanes.batch(ONE, (13, "U", 9))
    added = AddColumn(Column("more", pa.int32()), 3)
    state = writer.write(replace(made, path=None, positions=None, ddl=((added,),)))
    assert state.positions == "lsn"
    assert POSITION not in {column.name for column in state.schema.columns}
    writer.write(lanes.batch(TWO, (9, "U", 1), (11, "U", 2), (8, "U", 3)))
    assert rows(lanes._staging.target, "id, n, more") == [(1, 10, 3), (3, 8, 3)]


def test_a_statement_marks_a_table_without_rows(writer, lanes) -> None:
    """Another lane may bring rows of before it, whose values it has changed at the source."""
    writer.write(lanes.batch(ONE, (10, "U", 1), (12, "D", 1)))
    doubt = Doubt("n from bigint to int")
    made = replace(lanes.batch(ONE, (13, "U", 9)), path=None, positions=None, doubts=(doubt,))
    assert writer.write(made).rows_may_differ == doubt.what


def test_a_deleted_key_may_come_back(writer, lanes, rows: Rows) -> None:
    """By an insert that is newer than its tombstone; an older one stays out after that, too."""
    writer.write(lanes.batch(ONE, (9, "D", 1)))
    writer.write(lanes.batch(TWO, (10, "U", 1)))
    writer.write(lanes.batch(ONE, (11, "D", 1)))
    writer.write(lanes.batch(TWO, (10, "U", 1)))
    assert rows(lanes._staging.target, "id, n") == []


def test_what_a_target_shows_of_its_positions(writer, lanes) -> None:
    """The name of the positions, and no column of ours in the schema."""
    state = writer.write(lanes.batch(ONE, (1, "U", 1)))
    assert state.positions == "lsn"
    assert state.schema == lanes._staging.schema
    assert writer.open(lanes._staging.target) == state


def test_a_crash_between_tombstones_and_delete_is_harmless(
    writer, lanes, rows: Rows, monkeypatch
) -> None:
    """The delete's batch is written again; what another lane wrote in between is as it should."""
    writer.write(lanes.batch(ONE, (1, "U", 1), (2, "U", 2)))
    delete = lanes.batch(ONE, (5, "D", 1), (5, "D", 3))

    class Crash(Exception):
        pass

    def crash(*_: object) -> str:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(LooseTables, "merge", crash)
        with pytest.raises(Crash):
            writer.write(delete)
    writer.write(lanes.batch(TWO, (4, "U", 1), (4, "U", 3), (6, "U", 2)))
    writer.write(delete)
    assert rows(lanes._staging.target, "id, n") == [(2, 6)]


def test_changes_without_positions_are_refused(writer, lanes, staging) -> None:
    """A table that keeps positions can't take a row that has none, nor of another kind."""
    writer.write(lanes.batch(ONE, (1, "U", 1)))
    plain = Lanes(staging, None)
    plain._ends = lanes._ends
    with pytest.raises(TargetRefused, match=r"keeps the positions lsn .* carry none"):
        writer.write(plain.batch(ONE, (2, "U", 1)))


def test_a_table_without_positions_is_written_as_ever(
    spark: SparkSession, writer, lanes, staging, rows: Rows
) -> None:
    """Positions in the batch are left out, and nothing is made beside the table."""
    plain = Lanes(staging, None)
    writer.write(plain.batch(ONE, (9, "U", 1)))
    lanes._ends = plain._ends
    assert writer.write(lanes.batch(ONE, (8, "U", 1), (8, "D", 2))).positions is None
    assert rows(staging.target) == [(1, None, 8)]
    assert LakeCatalog(spark).load(tombstones_of(staging.target)) is None


def test_tombstones_expire(spark: SparkSession, writer, lanes, rows: Rows) -> None:
    """Once no lane can lag that far; then an older insert would come in."""
    target = lanes._staging.target
    writer.write(lanes.batch(ONE, (9, "D", 1)))
    catalog = LakeCatalog(spark)
    table, tombstones = catalog.load(target), NameTombstones(spark, catalog)
    assert table is not None
    name = tombstones_of(target)
    settings = MaintenanceSection.model_construct(expire_tombstones_older_than_s=3600)
    written = table.time_ms(table.head("main")) / 1000
    tombstones.tidy(target, table, settings, written + 3000)
    assert len(rows(name)) == 1
    tombstones.tidy(target, table, settings, written + 4000)
    assert rows(name) == []


def test_tombstones_of_a_table_that_is_made_anew_count_no_more(
    spark: SparkSession, writer, lanes, rows: Rows
) -> None:
    """Its source may begin its positions anew as well."""
    target = lanes._staging.target
    writer.write(lanes.batch(ONE, (9, "D", 1)))
    spark.sql(f"DROP TABLE `lake`.`{target.namespace}`.`{target.table}`")
    lanes._ends.clear()
    writer.write(lanes.batch(ONE, (3, "U", 1)))
    assert rows(target, "id, n") == [(1, 3)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Change], list[tuple[TopicPartition, list[Change]]]]:
    """Changes in source order, split over two lanes; batches of either, interleaved."""
    kinds = draw(
        st.lists(st.tuples(st.sampled_from("UUD"), st.integers(0, 3)), min_size=4, max_size=12)
    )
    history = [(at, op, key) for at, (op, key) in enumerate(kinds, 1)]
    split: dict[TopicPartition, list[Change]] = {ONE: [], TWO: []}
    for change in history:
        split[draw(st.sampled_from([ONE, TWO]))].append(change)
    batches = []
    while any(split.values()):
        lane = draw(st.sampled_from([lane for lane in split if split[lane]]))
        size = draw(st.integers(2, 6))
        batches.append((lane, split[lane][:size]))
        split[lane] = split[lane][size:]
    return history, batches


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(histories())
def test_lanes_in_any_order_end_as_the_source_has_it(
    writer: IcebergWriter, staging, rows: Rows, example: tuple[list[Change], list]
) -> None:
    """The table equals the history applied in the source's order."""
    history, batches = example
    lane_ends = Lanes(staging)
    staging.target = TargetName("lake", "sink", f"h{next(_offsets)}")
    truth: dict[int, int] = {}
    for at, op, key in history:
        truth.pop(key, None)
        if op == "U":
            truth[key] = at
    for lane, changes in batches:
        writer.write(lane_ends.batch(lane, *changes))
    assert rows(staging.target, "id, n") == sorted(truth.items())
