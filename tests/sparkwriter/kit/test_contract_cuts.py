"""The table of cuts is a target like any other: its rows come back as the cuts that they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changes.model.cut_row import cut_of
from changes.model.cuts_table import staged_row
from changes.model.model import TargetName
from offsets.cuts import Cut
from offsets.position import TopicPartition
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.kit.conftest import Sink

FIRST = Cut(
    number=1_800_000_000,
    pipeline="shop",
    boundary="transaction",
    positions={TopicPartition("shop", 0): 4711},
    time_ms=1_799_999_999_123,
    transaction=None,
    versions={"lake.shop.`a.b`": "8213746123"},
    left_out={"lake.shop.c": "is away: \u20ac 'quoted'"},
)


@pytest.mark.parametrize(
    "sink", ["sqlite", pytest.param("iceberg", marks=pytest.mark.integration)], indirect=True
)
def test_cuts_are_written_and_read(sink: Sink, target: TargetName, tmp_path: Any) -> None:
    """One that is written twice is one row."""
    table, schema = staged_row(FIRST)
    staging = Staging(tmp_path, target, schema)
    writer = TargetWriter(sink.store())
    second = replace(FIRST, number=FIRST.number + 60, time_ms=None, boundary="time")
    writer.write(staging.batch(table, 1))
    writer.write(staging.batch(staged_row(second)[0], 2))
    writer.write(staging.batch(staged_row(second)[0], 3))
    found = sorted(map(cut_of, rows_of(sink.read(target))), key=lambda cut: cut.number)
    assert found == [FIRST, second]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    _, schema = staged_row(FIRST)
    typed = pa.schema([(column.name, column.type) for column in schema.columns])
    return list(table.select(typed.names).cast(typed).to_pylist())
