"""What a record in Avro costs on its way to Arrow, beside fastavro for its value alone."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.staging.collector import calm_collector
from changes.formats.engine.format import Format, pack, unpack
from changes.formats.wire.format import Debezium, Upsert
from changes.model.model import Mode
from tests.changes.formats.wire.records import Kept, json_record

RECORDS = 5_000
DECIMAL = "org.apache.kafka.connect.data.Decimal"
FIELDS = {
    "id": "int64", "name": "string", "qty": "int32", "weight": "double",
    "price": ("bytes", DECIMAL, {"scale": "2", "connect.decimal.precision": "10"}),
    "at": ("int64", "io.debezium.time.MicroTimestamp"),
}  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
FLAT = {
    "type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]},
        {"name": "qty", "type": "int"}, {"name": "weight", "type": "double"},
        {"name": "price", "type": {"type": "bytes", "connect.name": DECIMAL,
                                   "connect.parameters": FIELDS["price"][2]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _calm() -> None:
    """As in the processes that decode."""
    calm_collector()


def row(number: int) -> dict[str, Any]:
    """Six columns."""
    return {
        "id": number, "name": f"customer {number}", "qty": number % 100, "weight": number / 8,
        "price": "AQID", "at": 1_700_000_000_000_000 + number,
    }  # fmt: skip


def envelope(kept: Kept, number: int) -> bytes:
    """An insert, or an update with both its images."""
    image = row(number)
    if number % 2:
        return kept.as_avro(json_record("u", image, image, FIELDS))
    return kept.as_avro(json_record("c", image, fields=FIELDS))


def flat(kept: Kept, number: int) -> bytes:
    """A row with its key."""
    bare = json.loads(json.dumps(FLAT).replace("logicalType", "was"))
    value = kept.avro(bare, row(number) | {"price": b"\1\2\3"})
    return pack(kept.avro(KEY, {"id": number}), value)


CASES: dict[str, tuple[Callable[[Kept, int], bytes], type[Format]]] = {
    "envelope": (envelope, Debezium),
    "flat row": (flat, Upsert),
}


# Processor time: one thread does it all, and others of the machine must not count.
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("what", ["fastavro alone", "heads", "decode"])
def test_avro_records(benchmark: BenchmarkFixture, tmp_path: Path, name: str, what: str) -> None:
    """A schema for all, as in a topic."""
    write, kind = CASES[name]
    kept = Kept(tmp_path)
    values = [write(kept, number) for number in range(RECORDS)]
    format_ = kind(kept.options(default_database="shop", default_table="orders"))
    decoder = format_.table_decoder(Mode.UPSERT, None)
    offsets = list(range(RECORDS))
    payloads = [(unpack(value).value or b"")[5:] for value in values]
    schemas = [json.loads(json.loads(f.read_text())["text"]) for f in sorted(tmp_path.iterdir())]
    schema = fastavro.parse_schema(max(schemas, key=lambda each: len(json.dumps(each))))

    def alone() -> None:
        for payload in payloads:
            fastavro.schemaless_reader(io.BytesIO(payload), schema, None)

    calls: dict[str, Callable[[], object]] = {
        "fastavro alone": alone,
        "heads": lambda: list(format_.heads(values)),
        "decode": lambda: decoder.decode(0, offsets, values),
    }
    benchmark.pedantic(calls[what], rounds=5, warmup_rounds=1)
    benchmark.extra_info["us_per_record"] = round(benchmark.stats.stats.min / RECORDS * 1e6, 3)
