"""What a row costs in a shaped route: a filter, a computed column, a mask, a partition."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.contract.writes import StagedBatch
from actors.staging.staged_tables import ParquetTables
from bench.rig import message
from bench.test_stages import COUNT, FORMAT, per_message
from changes.model.model import HAS_PREFIX, OP, Column, Mode, TableSchema, TargetName
from changes.routes.shaping.additions import Read
from changes.routes.shaping.columns import plan_of
from changes.routes.shaping.layout import transform_of
from changes.routes.shaping.partial import RowFilter
from changes.routes.shaping.shape import Shape
from offsets.fence import Span
from offsets.position import TopicPartition
from sparkwriter.iceberg.partitions import split
from sparkwriter.kit.filtered import decided
from sparkwriter.kit.store import Absent
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore

SALT = "a salt of many characters"
SHAPES = {
    "filter_integer": Shape(filter="qty > 5"),
    "filter_text": Shape(filter="city LIKE 'B%' AND id > 10"),
    "computed_integer": Shape(computed=(("c", "id * 2 + 1"),)),
    "computed_text": Shape(computed=(("c", "city || '-' || CAST(id AS string)"),)),
    "mask_keep_last": Shape(masks=(("email", "keep_last(4)"),)),
    "mask_sha256": Shape(masks=(("email", "sha256"),), salt=SALT),
    "mask_redact": Shape(masks=(("email", "redact"),)),
    "rename": Shape(rename=(("email", "remark"),)),
    "drop": Shape(drop=("email",)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(benchmark: BenchmarkFixture, name: str) -> None:
    """50,000 decoded rows of seven columns."""
    decoder = FORMAT.table_decoder(Mode.UPSERT, None)
    values = [message(number, "t") for number in range(COUNT)]
    changes = decoder.decode(0, list(range(COUNT)), values)
    assert changes is not None
    plan = plan_of(SHAPES[name], changes.schema)
    benchmark.pedantic(
        plan.shaped, args=(changes, frozenset(), Read(0, [])), rounds=9, warmup_rounds=2
    )
    per_message(benchmark, COUNT, "row")


@pytest.mark.parametrize("text", ["days(at)", "bucket(16, id)", "truncate(2, city)", "city"])
def test_partition(benchmark: BenchmarkFixture, text: str) -> None:
    """50,000 rows, put apart by their partitions: 30 days, 16 buckets, 90 cities."""
    start = datetime(2024, 1, 1)
    rows = pa.record_batch(
        {
            "id": pa.array(range(COUNT), pa.int64()),
            "at": pa.array([start + timedelta(days=n % 30) for n in range(COUNT)]),
            "city": pa.array([f"{n % 90:02} city" for n in range(COUNT)]),
        }
    )
    benchmark.pedantic(lambda: list(split(rows, [transform_of(text)])), rounds=9, warmup_rounds=2)
    per_message(benchmark, COUNT, "row")


def test_partial_rows_under_a_filter(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """50,000 rows that lack what decides, and their rows in a file of SQLite: read, completed,
    decided, staged again."""
    store, files = SqliteStore(tmp_path / "sink.db"), ParquetTables()
    target = TargetName("lake", "shop", "t")
    whole = pa.table({"id": range(COUNT), "qty": [n % 10 for n in range(COUNT)]})
    part = whole.select(["id"]).append_column("qty", pa.nulls(COUNT, pa.int64()))
    part = part.append_column(HAS_PREFIX + "qty", pa.repeat(False, COUNT))
    schema = TableSchema((Column("id", pa.int64()), Column("qty", pa.int64())), ("id",))
    batch = StagedBatch("1", target, Mode.UPSERT, schema, {TopicPartition("t", 0): Span(-1, 1)})
    for name, rows in (("whole", whole), ("part", part)):
        marked = rows.add_column(0, OP, pa.repeat("U", COUNT))
        pq.write_table(marked, tmp_path / name)
    TargetWriter(store).write(replace(batch, path=str(tmp_path / "whole"), rows=COUNT))
    seen = store.look(target)
    assert not isinstance(seen, Absent)
    asked = replace(
        batch,
        path=str(tmp_path / "part"),
        partial=("qty",),
        filter=RowFilter("qty > 5", (("qty", "qty"),)),
    )
    benchmark.pedantic(decided, args=(store, files, seen, asked), rounds=5, warmup_rounds=1)
    per_message(benchmark, COUNT, "row")
    store.close()
