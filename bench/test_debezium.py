"""What a row costs as Debezium's JSON, with and without schema, beside other readers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.staging.collector import calm_collector
from changes.formats import FORMATS
from changes.formats.engine.format import pack, unpack
from changes.model.model import FormatOptions, Mode

COUNT = 50_000
FORMAT = FORMATS["debezium-json"](FormatOptions())
FIELDS = {
    "id": ("int64", None), "name": ("string", None), "email": ("string", None),
    "amount": ("int64", None), "qty": ("int32", None),
    "created": ("int64", "io.debezium.time.MicroTimestamp"),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _calm() -> None:
    """As in the processes that decode."""
    calm_collector()


def row(number: int) -> dict[str, Any]:
    """A row of six columns."""
    return {
        "id": number, "name": f"customer {number}", "email": f"u{number}@example.com",
        "amount": number * 100, "qty": number % 100, "created": 1700000000000000 + number,
    }  # fmt: skip


def envelope(number: int) -> dict[str, Any]:
    """A change of some 400 bytes; one in three is an update with its old row."""
    update = number % 3 == 2
    return {
        "before": {**row(number), "qty": 7} if update else None,
        "after": row(number),
        "source": {
            "version": "3.0.0.Final", "connector": "mysql", "name": "s", "ts_ms": 1700000000000,
            "db": "shop", "table": "t", "server_id": 1, "file": "b.000001", "pos": number, "row": 0,
        },
        "op": "u" if update else "c",
        "ts_ms": 1700000000123,
    }  # fmt: skip


def schema() -> dict[str, Any]:
    """The schema block that stands in each record."""
    columns = [
        {"type": kind, "optional": True, "field": name, "name": semantic, "version": 1}
        for name, (kind, semantic) in FIELDS.items()
    ]
    source = [{"type": "string", "field": name} for name in envelope(0)["source"]]
    rows = [
        {"type": "struct", "fields": columns, "name": "s.shop.t.Value", "field": image}
        for image in ("before", "after")
    ]
    told = {"type": "struct", "fields": source, "name": "io.debezium.Source", "field": "source"}
    fields = [*rows, told, {"type": "string", "field": "op"}]
    return {"type": "struct", "fields": fields, "name": "s.shop.t.Envelope", "version": 2}


def records(with_schema: bool) -> list[bytes]:
    """Keyed records, packed."""
    block = msgspec.Raw(msgspec.json.encode(schema()))
    key_block = {
        "type": "struct",
        "fields": [{"type": "int64", "field": "id"}],
        "name": "s.shop.t.Key",
    }
    found = []
    for number in range(COUNT):
        key: Any = {"id": number}
        value: Any = envelope(number)
        if with_schema:
            key, value = {"schema": key_block, "payload": key}, {"schema": block, "payload": value}
        found.append(pack(msgspec.json.encode(key), msgspec.json.encode(value)))
    return found


@pytest.fixture(scope="module", params=[False, True], ids=["bare", "with-schema"])
def values(request: pytest.FixtureRequest) -> Sequence[bytes]:
    """Records without schema, then with."""
    return records(request.param)


def told(benchmark: BenchmarkFixture, values: Sequence[bytes]) -> None:
    """Keep the figures that people compare: microseconds for a row, and for a kilobyte."""
    each = benchmark.stats.stats.min / COUNT * 1e6
    benchmark.extra_info["us_per_row"] = round(each, 3)
    size = sum(map(len, values)) / COUNT
    benchmark.extra_info["us_per_kb"] = round(each / size * 1000, 3)


def test_peek(benchmark: BenchmarkFixture, values: Sequence[bytes]) -> None:
    """A glance at a record."""

    def peek() -> None:
        for head in FORMAT.heads(values):
            assert head.table is not None

    benchmark.pedantic(peek, rounds=5, warmup_rounds=1)
    told(benchmark, values)


def test_decode_to_arrow(benchmark: BenchmarkFixture, values: Sequence[bytes]) -> None:
    """One table's records."""
    decoder, offsets = FORMAT.table_decoder(Mode.UPSERT, None), list(range(COUNT))
    benchmark.pedantic(decoder.decode, args=(0, offsets, values), rounds=5, warmup_rounds=1)
    told(benchmark, values)


@pytest.mark.parametrize(
    "decode", [orjson.loads, msgspec.json.Decoder().decode], ids=["orjson", "msgspec"]
)
def test_alone(
    benchmark: BenchmarkFixture, values: Sequence[bytes], decode: Callable[[bytes], Any]
) -> None:
    """The same values to dictionaries, and nothing more."""
    plain: list[Any] = [unpack(value).value for value in values]
    benchmark.pedantic(lambda: [decode(v) and None for v in plain], rounds=5, warmup_rounds=1)
    told(benchmark, values)


def test_packing(benchmark: BenchmarkFixture, values: Sequence[bytes]) -> None:
    """What it costs to make one value of key and value, which only keyed formats pay."""
    parts = [unpack(value) for value in values]
    benchmark.pedantic(lambda: [pack(p.key, p.value) for p in parts], rounds=5, warmup_rounds=1)
    told(benchmark, values)
