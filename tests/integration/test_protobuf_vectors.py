"""Protobuf messages of another encoder go through broker, daemon and Spark, record by record."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from settings.exit import Exit
from tests.changes import conformance
from tests.integration.rig import Rig


@pytest.mark.machine
@pytest.mark.parametrize("path", conformance.cases("synthetic-vectors/*.json"))
def test_the_tables_are_those_that_the_file_tells(rig: Rig, path: Path) -> None:
    """Types, minimal images, parts of two shards, a record sent again; a gap ends the run."""
    vectors = json.loads(path.read_text())
    _produce(rig, vectors["records"])
    name = "canal-protobuf" if path.name.startswith("canal") else "tencent-dts"
    target = f"lake.{rig.db}.{{database}}_{{table}}"
    config = rig.write_config(p=rig.pipeline(format=name, include=["*"], target=target))
    gap = "gap must be reported" in str(vectors["records"][-1].get("meaning"))
    assert rig.run(config) is (Exit.PIPELINE_FAILED if gap else Exit.OK), rig.stderr
    if gap:
        assert "offset 13: the running number (ps) is 14, expected is 13" in rig.stderr
    ((_, state),) = rig.snapshot().partitions.items()
    assert state.frontier == vectors["records"][-1]["offset"] + (not gap)
    for table, expected in vectors["final_tables"].items():
        stored = rig.spark.table(f"lake.{rig.db}.{table.replace('.', '_')}")
        found = [
            {column: _told(value) for column, value in row.asDict().items()}
            for row in stored.collect()
        ]
        key = expected["primary_key"][0]
        wanted = [{c: _short(v) for c, v in row.items()} for row in expected["rows"]]
        assert sorted(found, key=lambda row: row[key]) == wanted


def _produce(rig: Rig, records: list[dict[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    for record in records:
        producer.produce(
            rig.topic,
            bytes.fromhex(record["value_hex"]),
            partition=record["partition"],
            headers=[(key, text.encode()) for key, text in record["headers"].items()],
        )
    assert producer.flush(30) == 0


def _told(value: object) -> object:
    """A stored value as the files write it."""
    match value:
        case bytes() | bytearray():
            return {"hex": bytes(value).hex()}
        case Decimal():
            whole = value == value.to_integral_value() and not value.as_tuple().exponent
            return int(value) if whole else f"{value:f}"
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
    return value


def _short(value: object) -> object:
    """A TIME is kept without the zeros behind its seconds; Spark's rows, in UTC, tell no zone."""
    if isinstance(value, str):
        return value.removesuffix(" +00:00").replace(":59.000", ":59")
    return value
