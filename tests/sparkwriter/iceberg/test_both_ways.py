"""Random batches, written now by MERGE and now by equality, compacted now and then: as a dict."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from changes.model.model import HAS_PREFIX, OP, Column, TableSchema, TargetName
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from tests.sparkwriter.conftest import LANE, Staging

pytestmark = pytest.mark.integration
_numbers = itertools.count()

Key = tuple[int, str | None, Decimal]
Value = tuple[str | None, int | None]

COLUMNS = (
    Column("shop", pa.int32()),
    Column("Code", pa.string()),
    Column("price", pa.decimal128(6, 2)),
    Column("note", pa.string()),
    Column("n", pa.int64()),
)
SCHEMA = TableSchema(COLUMNS, ("shop", "code", "PRICE"))
KEYS = st.tuples(
    st.integers(-2, 2),
    st.sampled_from([None, "", "a", "ß", "\U0001f600" * 20, "long " * 1000]),
    st.sampled_from([Decimal("-0.01"), Decimal("0.00"), Decimal("9999.99")]),
)
VALUES = st.tuples(st.none() | st.text(max_size=5), st.none() | st.integers(-(2**63), 2**63 - 1))
# A value is a whole row, one without a note, or (None) a delete.
CHANGES = st.dictionaries(KEYS, st.none() | st.tuples(VALUES, st.booleans()), min_size=1)
BATCHES = st.lists(st.tuples(CHANGES, st.booleans()), min_size=4, max_size=12)


def apply(held: dict[Key, Value], changes: dict[Key, tuple[Value, bool] | None]) -> None:
    for key, change in changes.items():
        if change is None:
            held.pop(key, None)
            continue
        (note, n), whole = change
        held[key] = (note if whole else held.get(key, (None, None))[0], n)


def staged(changes: dict[Key, tuple[Value, bool] | None], partial: bool) -> pa.Table:
    keys = list(zip(*changes, strict=True))
    values = [(None, None) if change is None else change[0] for change in changes.values()]
    has = [change is None or change[1] for change in changes.values()]
    notes = [note if there else None for (note, _), there in zip(values, has, strict=True)]
    arrays = {
        OP: ["D" if change is None else "U" for change in changes.values()],
        **{c.name: pa.array(k, c.type) for c, k in zip(COLUMNS[:3], keys, strict=True)},
        "note": pa.array(notes, pa.string()),
        "n": pa.array([n for _, n in values], pa.int64()),
    }
    return pa.table(arrays | ({HAS_PREFIX + "note": has} if partial else {}))


@pytest.mark.long
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES, data=st.data())
def test_any_way_at_any_time(
    spark: SparkSession, tmp_path: Path, batches: list[tuple[object, bool]], data: st.DataObject
) -> None:
    """Keys of several parts, some null or long; whole rows, partial ones, deletes of nothing."""
    target = TargetName("lake", "sink", f"both{next(_numbers)}")
    staging = Staging(tmp_path, target, SCHEMA)
    compactions = Compactions(CompactionSection.model_construct(max_deletes=4, small_files=4))
    writer = IcebergWriter(spark, Upkeep(anonymous(), MaintenanceSection()), compactions)
    held: dict[Key, Value] = {}
    for number, (changes, merged) in enumerate(batches):
        assert isinstance(changes, dict)
        partial = any(change is not None and not change[1] for change in changes.values())
        apply(held, changes)
        staging.write = Write.MERGE if merged else Write.EQUALITY
        table = staged(changes, partial)
        writer.write(staging.batch(table, number, partial=("note",) if partial else ()))
    found = spark.newSession().sql(f"SELECT * FROM {'.'.join(target)}").collect()
    assert {tuple(row)[:3]: tuple(row)[3:] for row in found} == held
    assert len(found) == len(held)
    assert writer.open(target).hwms == {LANE: len(batches) - 1}


MORE_KEYS = {
    "binary": (pa.binary(), [b"", b"\x00", b"\xff" * 40]),
    "date": (pa.date32(), [datetime(1, 1, 1).date(), datetime(9999, 12, 31).date()]),
    "local": (pa.timestamp("us"), [datetime(1, 1, 1, 0, 0, 0, 1), datetime(2024, 1, 1)]),
    "instant": (pa.timestamp("us", "UTC"), [datetime(1900, 1, 1, 0, 0, 0, 1, UTC)]),
    "bool": (pa.bool_(), [True, False]),
    "wide": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789")]),
    "twenty": (pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(0)]),
    "double": (pa.float64(), [0.5, float("-inf")]),
}


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_keys_of_every_type(writer: IcebergWriter, staging: Staging, spark: SparkSession) -> None:
    """A row is replaced and then deleted, whatever its key is; floating-point ones are merged."""
    for name, (type_, keys) in MORE_KEYS.items():
        staging.target = TargetName("lake", "sink", f"key_{name}_{next(_numbers)}")
        staging.schema = TableSchema((Column("k", type_), Column("v", pa.int32())), ("k",))
        staging.after = -1
        for number, op in enumerate("UUD"):
            values = pa.array([number] * len(keys), pa.int32())
            table = pa.table({OP: [op] * len(keys), "k": pa.array(keys, type_), "v": values})
            writer.write(staging.batch(table, number))
            left = spark.sql(f"SELECT v FROM {'.'.join(staging.target)}").collect()
            assert [row.v for row in left] == [number] * len(keys) * (op == "U"), name


@pytest.mark.parametrize("write", [Write.EQUALITY])
def test_a_key_that_was_widened(
    writer: IcebergWriter, staging: Staging, spark: SparkSession
) -> None:
    """Deletes that were written before hold on; those after find rows from before."""

    def batch(type_: pa.DataType, op: str, key: int, value: int) -> pa.Table:
        return pa.table(
            {OP: [op], "id": pa.array([key], type_), "v": pa.array([value], pa.int32())}
        )

    def schema(type_: pa.DataType) -> TableSchema:
        return TableSchema((Column("id", type_), Column("v", pa.int32())), ("id",))

    narrow, wide = pa.int32(), pa.int64()
    for number, (op, key) in enumerate([("U", 1), ("U", 2), ("U", 1), ("U", 3)]):
        table = batch(narrow, op, key, number)
        writer.write(staging.batch(table, number, schema=schema(narrow)))
    for number, (op, key) in enumerate([("U", 2**40), ("U", 2), ("D", 3)], start=4):
        writer.write(staging.batch(batch(wide, op, key, number), number, schema=schema(wide)))
    found = spark.sql(f"SELECT id, v FROM {'.'.join(staging.target)} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, 2), (2, 5), (2**40, 4)]
