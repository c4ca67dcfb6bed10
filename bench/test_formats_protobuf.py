"""What a row costs in the protobuf formats on its way to Arrow, one row a message or fifty."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from changes.formats import FORMATS
from changes.formats.base import pack
from changes.formats.proto_files import messages
from changes.model import FormatOptions, Mode
from daemon.collector import calm_collector
from tests.changes.formats import wire

ROWS = 20_000
TYPES = ("int(11)", "varchar(40)", "varchar(40)", "varchar(20)", "decimal(10,2)", "datetime")
NAMES = ("id", "name", "email", "city", "amount", "created")


@pytest.fixture(autouse=True, scope="module")
def _calm() -> None:
    """As in the processes that decode."""
    calm_collector()


def row(number: int) -> list[str]:
    """Six columns."""
    return [
        str(number), f"customer {number}", f"u{number}@example.com", "Amsterdam",
        f"{number % 1000}.{number % 100:02}", "2026-01-01 12:00:00",
    ]  # fmt: skip


def canal(numbers: range) -> bytes:
    rows = []
    for number in numbers:
        told = zip(NAMES, row(number), TYPES, strict=True)
        rows.append(wire.canal_row((), [wire.canal_column(*c, key=c[0] == "id") for c in told]))
    return wire.canal_packet(
        wire.canal_mark(1), wire.canal_rows("INSERT", rows), wire.canal_mark(3)
    )


def dts(numbers: range) -> bytes:
    columns = [wire.dts_column(n, t, key=n == "id") for n, t in zip(NAMES, TYPES, strict=True)]
    kinds = (3, 13, 13, 13, 12, 13)
    rows = []
    for number in numbers:
        values = [
            wire.dts_text(v) if k == 13 else wire.dts_number(k, v)
            for k, v in zip(kinds, row(number), strict=True)
        ]
        rows.append(wire.dts_row((), values))
    return wire.dts_message(wire.dts_begin(), wire.dts_rows(0, columns, rows), wire.dts_commit())


def parse_canal(values: list[bytes]) -> None:
    packets, entries = messages("canal_packet.proto"), messages("canal_entry.proto")
    for value in values:
        for raw in (
            packets["Messages"].FromString(packets["Packet"].FromString(value).body).messages
        ):
            entries["RowChange"].FromString(entries["Entry"].FromString(raw).storeValue)


def parse_dts(values: list[bytes]) -> None:
    proto = messages("tencent_dts.proto")
    for value in values:
        proto["Entries"].FromString(proto["Envelope"].FromString(value).data)


CASES: dict[str, tuple[Callable[[range], bytes], Callable[[list[bytes]], None]]] = {
    "canal-protobuf": (canal, parse_canal),
    "tencent-dts": (dts, parse_dts),
}


# Processor time: one thread does it all, and others of the machine must not count.
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize("what", ["ParseFromString alone", "peek", "decode"])
def test_protobuf_rows(benchmark: BenchmarkFixture, name: str, rows: int, what: str) -> None:
    """Beside protobuf's own parser, which leaves the values where they are."""
    format_ = FORMATS[name](FormatOptions())
    write, parse = CASES[name]
    plain = [write(range(at, at + rows)) for at in range(0, ROWS, rows)]
    values = [pack(None, value) for value in plain] if format_.keyed else plain
    decoder = format_.table_decoder(Mode.UPSERT, None)
    offsets = list(range(len(values)))
    calls: dict[str, Callable[[], object]] = {
        "ParseFromString alone": lambda: parse(plain),
        "peek": lambda: list(format_.heads(values)),
        "decode": lambda: decoder.decode(0, offsets, values),
    }
    benchmark.pedantic(calls[what], rounds=5, warmup_rounds=1)
    benchmark.extra_info["us_per_row"] = round(benchmark.stats.stats.min / ROWS * 1e6, 3)
