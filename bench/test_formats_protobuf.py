"""What a row costs in the protobuf formats on its way to Arrow, one row a message or fifty."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.contract.effects import LaneMessages
from actors.contract.raw_messages import Messages
from actors.staging.collector import calm_collector
from actors.staging.counting import counts_of
from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.formats.engine.proto_files import messages
from changes.model.model import FormatOptions, Mode
from offsets.position import TopicPartition
from tests.changes.formats import protobuf_records as wire

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


def updated(number: int) -> list[str]:
    """The same with another amount."""
    return [*row(number)[:4], "7.00", *row(number)[5:]]


def canal(numbers: range, *, update: bool = False) -> bytes:
    """A packet of inserted rows, or of updated ones with both their images."""

    def image(values: list[str]) -> list[bytes]:
        told = zip(NAMES, values, TYPES, strict=True)
        return [wire.canal_column(*each, key=each[0] == "id") for each in told]

    if update:
        rows = [wire.canal_row(image(row(n)), image(updated(n))) for n in numbers]
    else:
        rows = [wire.canal_row((), image(row(n))) for n in numbers]
    event = "UPDATE" if update else "INSERT"
    return wire.canal_packet(wire.canal_mark(1), wire.canal_rows(event, rows), wire.canal_mark(3))


def dts(numbers: range, *, update: bool = False) -> bytes:
    """A message of inserted rows, or of updated ones with both their images."""
    columns = [wire.dts_column(n, t, key=n == "id") for n, t in zip(NAMES, TYPES, strict=True)]
    kinds = (3, 13, 13, 13, 12, 13)

    def image(values: list[str]) -> list[bytes]:
        return [
            wire.dts_text(value) if kind == 13 else wire.dts_number(kind, value)
            for kind, value in zip(kinds, values, strict=True)
        ]

    if update:
        rows = [wire.dts_row(image(row(n)), image(updated(n))) for n in numbers]
    else:
        rows = [wire.dts_row((), image(row(n))) for n in numbers]
    events = wire.dts_rows(int(update), columns, rows)
    return wire.dts_message(wire.dts_begin(), events, wire.dts_commit())


def parse_canal(values: list[bytes]) -> None:
    packets, entries = messages("canal/packet.proto"), messages("canal/entry.proto")
    for value in values:
        for raw in (
            packets["Messages"].FromString(packets["Packet"].FromString(value).body).messages
        ):
            entries["RowChange"].FromString(entries["Entry"].FromString(raw).storeValue)


def parse_dts(values: list[bytes]) -> None:
    proto = messages("tencent/dts.proto")
    for value in values:
        proto["Entries"].FromString(proto["Envelope"].FromString(value).data)


CASES: dict[str, tuple[Callable[..., bytes], Callable[[list[bytes]], None]]] = {
    "canal-protobuf": (canal, parse_canal),
    "tencent-dts": (dts, parse_dts),
}


# Processor time: one thread does it all, and others of the machine must not count.
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize("update", [False, True], ids=["inserts", "updates"])
@pytest.mark.parametrize("what", ["ParseFromString alone", "peek", "decode", "count"])
def test_protobuf_rows(
    benchmark: BenchmarkFixture, name: str, rows: int, update: bool, what: str
) -> None:
    """Beside protobuf's own parser, which leaves the values where they are. ``count``: decoded rows
    by the minute of their source's clock."""
    format_ = FORMATS[name](FormatOptions())
    write, parse = CASES[name]
    plain = [write(range(at, at + rows), update=update) for at in range(0, ROWS, rows)]
    values = [pack(None, value) for value in plain] if format_.keyed else plain
    decoder = format_.table_decoder(Mode.UPSERT, None)
    offsets = list(range(len(values)))
    lane = LaneMessages(TopicPartition("t", 0), Messages.of(offsets, values))
    changes = decoder.decode(0, offsets, values)
    assert changes is not None
    calls: dict[str, Callable[[], object]] = {
        "ParseFromString alone": lambda: parse(plain),
        "peek": lambda: list(format_.heads(values)),
        "decode": lambda: decoder.decode(0, offsets, values),
        "count": lambda: counts_of([(lane, changes)], format_),
    }
    benchmark.pedantic(calls[what], rounds=5, warmup_rounds=1)
    benchmark.extra_info["us_per_row"] = round(benchmark.stats.stats.min / ROWS * 1e6, 3)
