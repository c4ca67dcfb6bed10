"""What a row costs in a shaped route: a filter, a computed column, a mask, a partition."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.rig import message
from bench.test_stages import COUNT, FORMAT, per_message
from changes.model import Mode
from changes.shaping.additions import Read
from changes.shaping.columns import plan_of
from changes.shaping.layout import transform_of
from changes.shaping.shape import Shape
from sparkwriter.iceberg.partitions import split

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
