"""What batches do to an Iceberg table, read back through another Spark session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from actors.contract.writes import TargetState
from changes.model.model import (
    CHANGELOG_NAMES,
    FROM,
    FROM_PREFIX,
    OP,
    Column,
    KeyBound,
    Mode,
    TableSchema,
    TargetName,
)
from changes.sql.spark.words import dotted, string_literal
from offsets.fence import Fenced, Span
from offsets.position import TopicPartition
from sparkwriter.iceberg.plan import literal
from sparkwriter.iceberg.sink import IcebergWriter

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
Rows = Callable[..., list[tuple[object, ...]]]


def test_target_that_is_not_there(writer: IcebergWriter, target: TargetName) -> None:
    """A target that does not exist shows no schema, no mark and no version."""
    assert writer.open(target) == TargetState()


def test_first_write(writer, staging, rows: Rows, orders) -> None:
    """The first batch makes the table; its deletes of unknown keys are nothing."""
    state = writer.write(staging.batch(orders(("U", 1, "a", 1), ("D", 2, None, None)), 10))
    assert rows(staging.target) == [(1, "a", 1)]
    assert state.schema == staging.schema
    assert state.hwms == {LANE: 10}
    assert writer.open(staging.target) == state


def test_upsert(writer, staging, rows: Rows, orders) -> None:
    """Known keys are updated or deleted, unknown ones inserted, others stay."""
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2), ("U", 3, "c", 3)), 1))
    state = writer.write(
        staging.batch(
            orders(("U", 2, "B", None), ("D", 3, None, None), ("U", 4, "d", 4)),
            2,
            bounds=[KeyBound("id", 2, 4)],
        )
    )
    assert rows(staging.target) == [(1, "a", 1), (2, "B", None), (4, "d", 4)]
    assert writer.open(staging.target) == state


def test_null_keys(writer, staging, rows: Rows) -> None:
    """A null in a key part is a value like others: found again, not inserted twice."""
    staging.schema = TableSchema(
        (Column("a", pa.int32()), Column("b", pa.string()), Column("v", pa.int32())), ("a", "b")
    )
    first = pa.table(
        {
            OP: ["U", "U"],
            "a": pa.array([1, 1], pa.int32()),
            "b": [None, "x"],
            "v": pa.array([1, 2], pa.int32()),
        }
    )
    second = pa.table(
        {
            OP: ["U", "D"],
            "a": pa.array([1, 1], pa.int32()),
            "b": [None, "x"],
            "v": pa.array([9, None], pa.int32()),
        }
    )
    writer.write(staging.batch(first, 1))
    writer.write(staging.batch(second, 2, bounds=[KeyBound("a", 1, 1)]))
    assert rows(staging.target) == [(1, None, 9)]


def test_partial_rows(writer, staging, rows: Rows) -> None:
    """A column that a change did not carry keeps its value; a null that it carried is written."""
    full = pa.table(
        {OP: ["U", "U"], "id": [1, 2], "note": ["a", "b"], "n": pa.array([1, 2], pa.int32())}
    )
    part = pa.table(
        {
            OP: ["U", "U"],
            "id": [1, 2],
            "note": pa.array([None, None], pa.string()),
            "__binlogd_has_note": [True, False],
            "n": pa.array([7, 8], pa.int32()),
        }
    )
    writer.write(staging.batch(full, 1))
    writer.write(staging.batch(part, 2, partial=["note"]))
    assert rows(staging.target) == [(1, None, 7), (2, "b", 8)]


def test_moved_rows(writer, staging, rows: Rows, orders) -> None:
    """A row whose key changed keeps what the change did not carry, and ordinary rows theirs.

    Row 1 moves to 5 with a new note, 2 and 3 swap places, 4 is an ordinary partial row; the
    file does not have the column n at all.
    """
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
    bounds = [KeyBound("id", 1, 6)]
    writer.write(staging.batch(moves, 2, partial=["note"], schema=schema, bounds=bounds))
    assert rows(staging.target) == [
        (2, "note 3", 3),
        (3, "note 2", 2),
        (4, "note 4", 4),
        (5, "new", 1),
        (6, "six", None),
    ]


def test_a_moved_row_that_is_applied_again(writer, staging, rows: Rows, orders) -> None:
    """After a reset its old key is gone: the new one keeps what came from there the first time."""
    writer.write(staging.batch(orders(("U", 1, "one", 1), ("U", 2, "two", 2)), 1))
    move = pa.table(
        {
            OP: ["D", "U", "U"],
            "id": [1, 5, 2],
            "note": pa.array([None, None, "zwei"]),
            "__binlogd_has_note": [True, False, True],
            FROM: pa.array([None, 0, None], pa.int64()),
            FROM_PREFIX + "id": [None, 1, None],
        }
    )
    schema = TableSchema(staging.schema.columns[:2], ("id",))
    for after, through in ((1, 2), (2, 3)):
        batch = staging.batch(move, through, after=after, partial=["note"], schema=schema)
        writer.write(batch)
        assert rows(staging.target) == [(2, "zwei", 2), (5, "one", 1)]


def test_file_without_a_column(writer, staging, rows: Rows) -> None:
    """A stored column that the batch lacks stays on update and is null on insert."""
    full = pa.table({OP: ["U"], "id": [1], "note": ["a"], "n": pa.array([1], pa.int32())})
    less = pa.table({OP: ["U", "U"], "id": [1, 2], "note": ["A", "B"]})
    writer.write(staging.batch(full, 1))
    schema = TableSchema(staging.schema.columns[:2], ("id",))
    writer.write(staging.batch(less, 2, schema=schema))
    assert rows(staging.target) == [(1, "A", 1), (2, "B", None)]


def test_marks_alone(writer, staging, rows: Rows, orders) -> None:
    """A batch without rows moves the mark and leaves the rows."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    state = writer.write(staging.batch(None, 5))
    assert rows(staging.target) == [(1, "a", 1)]
    assert writer.open(staging.target) == state
    assert state.hwms == {LANE: 5}


def test_write_that_changes_nothing(writer, staging, rows: Rows, orders) -> None:
    """A merge that touches no row still publishes its mark."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(staging.batch(orders(("D", 8, None, None)), 2, bounds=[KeyBound("id", 8, 8)]))
    assert rows(staging.target) == [(1, "a", 1)]
    assert writer.open(staging.target).hwms == {LANE: 2}


def test_marks_of_other_lanes(writer, staging, orders) -> None:
    """Lanes that the batch does not name keep their marks."""
    other = TopicPartition("shop", 3)
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(staging.batch(None, 40, after=-1, lane=other))
    assert writer.open(staging.target).hwms == {LANE: 1, other: 40}


def test_replay(writer, staging, rows: Rows, orders) -> None:
    """A batch whose reply was lost is offered again and writes nothing."""
    writer.write(staging.batch(orders(("U", 1, "old", 1)), 1))
    batch = staging.batch(orders(("U", 1, "new", 1)), 2)
    state = writer.write(batch)
    assert writer.write(batch) == state
    assert rows(staging.target) == [(1, "new", 1)]


def test_replay_after_others_went_on(writer, staging, rows: Rows, orders) -> None:
    """Where later batches followed, another writer is at work: fenced, nothing is taken back."""
    batch = staging.batch(orders(("U", 1, "old", 1)), 1)
    writer.write(batch)
    writer.write(staging.batch(orders(("U", 1, "new", 1)), 2))
    with pytest.raises(Fenced, match=r"shop:0 stands at 2, expected -1"):
        writer.write(batch)
    assert rows(staging.target) == [(1, "new", 1)]


def changelog(*rows: tuple[str, int, int, str]) -> pa.Table:
    ops, offsets, indexes, notes = zip(*rows, strict=True)
    partitions = pa.array([0] * len(rows), pa.int32())
    columns = [
        pa.array(ops),
        partitions,
        pa.array(offsets, pa.int64()),
        pa.array(indexes, pa.int32()),
        pa.array(notes),
    ]
    return pa.table(columns, names=[*CHANGELOG_NAMES, "note"])


def test_append(writer, staging, rows: Rows) -> None:
    """A changelog keeps every row, in whichever batch it came."""
    staging.schema = TableSchema((Column("note", pa.string()),), ())
    writer.write(staging.batch(changelog(("I", 0, 0, "a"), ("U", 0, 1, "b")), 0, mode=Mode.APPEND))
    state = writer.write(staging.batch(changelog(("D", 1, 0, "b")), 1, mode=Mode.APPEND))
    assert rows(staging.target, "_offset, _index, _partition, _op, note") == [
        (0, 0, 0, "I", "a"),
        (0, 1, 0, "U", "b"),
        (1, 0, 0, "D", "b"),
    ]
    assert len(rows(staging.target)) == 3
    assert state.schema == staging.schema
    assert state.mode is Mode.APPEND


TYPES = {
    "big": (pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(0)]),
    "price": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), None]),
    "text": (pa.string(), ["nul\0 quote' back\\ \U0001f600 ${x}", ""]),
    "raw": (pa.binary(), [bytes(range(256)), b""]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "local": (pa.timestamp("us"), [datetime(1, 1, 1, 0, 0, 0, 1), datetime(2024, 3, 31, 2, 30)]),
    "instant": (
        pa.timestamp("us", "UTC"),
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, 0, 999999, tzinfo=UTC)],
    ),
    "late": (
        pa.timestamp("us", "UTC"),
        [datetime(2262, 4, 12, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)],
    ),
    "flag": (pa.bool_(), [True, None]),
    "single": (pa.float32(), [0.5, float("-inf")]),
    "double": (pa.float64(), [1e308, -0.0]),
    "small": (pa.int32(), [-(2**31), 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
}


def test_types_round_trip(writer, staging, spark: SparkSession, tmp_path: Path) -> None:
    """Every type comes back exactly, after a first append and after a merge."""
    columns = tuple(Column(name, type_) for name, (type_, _) in TYPES.items())
    staging.schema = TableSchema((Column("id", pa.int64()), *columns), ("id",))
    arrays = {name: pa.array(values, type_) for name, (type_, values) in TYPES.items()}
    rows = pa.table({OP: ["U", "U"], "id": pa.array([0, 1], pa.int64()), **arrays})
    writer.write(staging.batch(rows, 1))
    writer.write(staging.batch(rows, 2))
    name = ".".join(staging.target)
    out = tmp_path / "out"
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    session.sql(f"SELECT * FROM {name} ORDER BY id").coalesce(1).write.parquet(str(out))
    found = pq.read_table(next(out.glob("*.parquet"))).to_pylist()
    expected = rows.drop_columns([OP]).to_pylist()
    for name in found[0]:
        assert (name, [row[name] for row in found]) == (name, [row[name] for row in expected])


def test_odd_names(writer, staging, spark: SparkSession) -> None:
    """Names with dots, spaces, backticks, quotes, dollars and other alphabets are just names."""
    target = TargetName(
        "lake", "odd ns", f"ta ble.with `é' ${{spark.master}} {staging.write.value}"
    )
    columns = ("ke y.`1", "va'lue.$x", "größe")
    schema = TableSchema(tuple(Column(name, pa.string()) for name in columns), columns[:1])
    staging.target, staging.schema = target, schema
    for number, value in enumerate(("x", "y")):
        table = pa.table([["U"], ["k"], [value], ["g"]], names=[OP, *columns])
        writer.write(staging.batch(table, number, bounds=[KeyBound(columns[0], "k", "k")]))
    assert writer.open(target).schema == schema
    session = spark.newSession()
    session.conf.set("spark.sql.variable.substitute", "false")
    found = session.sql(f"SELECT * FROM {dotted(*target)}").collect()
    assert [tuple(row) for row in found] == [("k", "y", "g")]


def test_odd_staging_folder(writer, staging, rows: Rows, orders, tmp_path: Path) -> None:
    """A staged path is a path, not a pattern."""
    staging.folder = tmp_path / "[x]{y}* a=1"
    staging.folder.mkdir()
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    assert rows(staging.target) == [(1, "a", 1)]


@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(st.text(), min_size=20, max_size=60))
def test_literals_in_spark(spark: SparkSession, texts: list[str]) -> None:
    """What Spark reads from a string literal is the string that was put in."""
    texts = [*texts, "\0\\'\"\n\r\t%_${x}$'", "\\u0041\\", "😀\U0010ffff", "\u2028`"]
    sql = ", ".join(f"{string_literal(text)} AS c{n}" for n, text in enumerate(texts))
    assert list(spark.sql(f"SELECT {sql}").first() or ()) == texts


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (-(2**63), "long"),
        (2**31 - 1, "int"),
        (Decimal("-0.10"), "decimal(38, 2)"),
        (Decimal(10**37), "decimal(38, 0)"),
        (date(1, 1, 1), "date"),
        (datetime(1582, 10, 10, 1, 2, 3, 4), "timestamp"),
        (bytes(range(256)), "binary"),
        (False, "boolean"),
    ],
)
def test_typed_literals_in_spark(spark: SparkSession, value: object, type_: str) -> None:
    """A typed literal is its value in Spark, of the type that was asked for."""
    row = spark.sql(f"SELECT {literal(value, type_)} AS v").first()
    assert row is not None
    assert row[0] == value


def test_bounds_prune_files(writer, staging, spark: SparkSession, orders) -> None:
    """A merge within key bounds leaves files outside them unread: their plan says so."""
    writer.write(staging.batch(orders(*[("U", n, "a", 1) for n in range(100)]), 1))
    new = [("U", n, "b", 1) for n in range(1000, 1100)]
    writer.write(staging.batch(orders(*new), 2, bounds=[KeyBound("id", 1000, 1099)]))
    name = ".".join(staging.target)
    low, high = literal(1000, "long"), literal(1099, "long")
    found = spark.newSession().sql(
        f"SELECT DISTINCT input_file_name() FROM {name} WHERE id BETWEEN {low} AND {high}"
    )
    assert found.count() == 1
    assert spark.sql(f"SELECT * FROM {name}.data_files").count() == 2


def test_pyiceberg_reads_the_catalog(writer, staging, lake_conf: dict[str, str], orders) -> None:
    """The catalog is a plain SQLite one: another engine opens it, sees the table and its mark."""
    from pyiceberg.catalog import sql

    batch = staging.batch(orders(("U", 1, "a", 1), ("U", 2, None, None)), 6)
    writer.write(replace(batch, lanes={LANE: Span(-1, 6)}))
    path = lake_conf["uri"].removeprefix("jdbc:sqlite:file:")
    catalog = sql.SqlCatalog("lake", uri=f"sqlite:///{path}", warehouse=lake_conf["warehouse"])
    table = catalog.load_table(tuple(staging.target[1:]))
    assert table.current_snapshot().summary["binlogd.hwm"] == '{"shop:0": 6}'
    assert table.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 2],
        "note": ["a", None],
        "n": [1, None],
    }
