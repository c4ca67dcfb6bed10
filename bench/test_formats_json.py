"""What a row costs on its way to Arrow in the JSON formats, Debezium's apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.staging.collector import calm_collector
from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode

COUNT = 50_000


@pytest.fixture(autouse=True, scope="module")
def _calm() -> None:
    """As in the processes that decode."""
    calm_collector()


def row(number: int) -> dict[str, Any]:
    """Six columns."""
    return {
        "id": number, "name": f"customer {number}", "email": f"u{number}@example.com",
        "city": "Amsterdam", "amount": msgspec.Raw(b"%d.%02d" % (number % 1000, number % 100)),
        "created": "2026-01-01 12:00:00",
    }  # fmt: skip


def maxwell(number: int) -> bytes:
    """A message of about 310 bytes, one in three an update."""
    told = {
        "database": "bench", "table": "t", "type": "update" if number % 3 == 2 else "insert",
        "ts": 1700000000, "xid": number, "xoffset": 1, "position": f"mysql-bin.000003:{number}",
        "server_id": 1, "primary_key_columns": ["id"], "data": row(number),
    }  # fmt: skip
    return msgspec.json.encode(told | ({"old": {"city": "Utrecht"}} if number % 3 == 2 else {}))


def ogg(number: int) -> bytes:
    """A message of about 350 bytes, one in three an update with both images whole."""
    told: dict[str, Any] = {
        "table": "BENCH.T", "op_type": "U" if number % 3 == 2 else "I",
        "op_ts": "2020-05-13 15:40:06.000000", "current_ts": "2020-05-13T15:40:07.000000",
        "pos": f"{number:020}", "primary_keys": ["id"],
    }  # fmt: skip
    if number % 3 == 2:
        told["before"] = row(number) | {"city": "Utrecht"}
    return msgspec.json.encode(told | {"after": row(number)})


def canal(number: int) -> bytes:
    """A message of one row, about 500 bytes, one in three an update."""
    texts = row(number) | {"id": str(number), "amount": f"{number % 1000}.{number % 100:02}"}
    types = {
        "id": "bigint(20)", "name": "varchar(64)", "email": "varchar(64)", "city": "varchar(32)",
        "amount": "decimal(10,2)", "created": "datetime",
    }  # fmt: skip
    update = number % 3 == 2
    return msgspec.json.encode(
        {
            "data": [texts], "database": "bench", "es": 1700000000000, "id": number + 1,
            "isDdl": False, "mysqlType": types, "old": [{"city": "Utrecht"}] if update else None,
            "pkNames": ["id"], "sql": "", "sqlType": dict.fromkeys(types, 12), "table": "t",
            "ts": 1700000000123, "type": "UPDATE" if update else "INSERT",
        }
    )  # fmt: skip


def upsert(number: int) -> bytes:
    """The row alone, about 135 bytes; its key is the record's."""
    return msgspec.json.encode(row(number))


NAMED = {"default_database": "bench", "default_table": "t"}
WRITERS: dict[str, Callable[[int], bytes]] = {
    "canal-json": canal,
    "maxwell-json": maxwell,
    "ogg-json": ogg,
    "upsert-json": upsert,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("what", ["orjson alone", "msgspec alone", "peek", "decode"])
def test_json_rows(benchmark: BenchmarkFixture, name: str, what: str) -> None:
    """Beside reading the same messages into dictionaries, which is not half the work."""
    format_ = FORMATS[name](FormatOptions(extra=NAMED))
    plain = [WRITERS[name](number) for number in range(COUNT)]
    values = plain
    if format_.keyed:
        values = [pack(b'{"id":%d}' % number, value) for number, value in enumerate(plain)]
    decoder = format_.table_decoder(Mode.UPSERT, None)
    offsets = list(range(COUNT))
    calls: dict[str, Callable[[], object]] = {
        "orjson alone": lambda: [orjson.loads(value) and None for value in plain],
        "msgspec alone": lambda: [msgspec.json.decode(value) for value in plain],
        "peek": lambda: list(format_.heads(values)),
        "decode": lambda: decoder.decode(0, offsets, values),
    }
    benchmark.pedantic(calls[what], rounds=5, warmup_rounds=1)
    benchmark.extra_info["us_per_row"] = round(benchmark.stats.stats.min / COUNT * 1e6, 3)
