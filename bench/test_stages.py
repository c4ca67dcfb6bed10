"""What one message or row costs in each pure stage: peek, route, decode to Arrow, net changes."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from actors.contract import messages as msg
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.lending import Fixed
from actors.runtime.mailbox import DataQueue, Mailbox
from bench.rig import message, messages
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode
from changes.routes.fold import fold
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks

SOURCE = TopicPartition("binlog", 0)
COUNT = 50_000
FORMAT = FORMATS["canal-json"](FormatOptions())


def per_message(benchmark: BenchmarkFixture, count: int, what: str) -> None:
    """Keep the figure that people compare beside pytest-benchmark's own."""
    benchmark.extra_info[f"us_per_{what}"] = round(benchmark.stats.stats.min / count * 1e6, 3)


def test_peek(benchmark: BenchmarkFixture) -> None:
    """A glance at a one-row message of 500 bytes."""
    values = list(messages(COUNT))

    def peek() -> None:
        for head in FORMAT.heads(values):
            assert head.table is not None

    benchmark.pedantic(peek, rounds=5, warmup_rounds=1)
    per_message(benchmark, COUNT, "message")


def test_route(benchmark: BenchmarkFixture) -> None:
    """Peek, deal to 20 targets, shares for 2 processors: polls of 5,000 messages."""
    values: list[bytes | None] = list(messages(COUNT))
    routes = [Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)]
    logic = FetcherLogic("p", FORMAT, Router(routes), 2, FetcherSettings())
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: Watermarks(0, COUNT)}), 0.0)
    place = 0

    def route() -> None:
        nonlocal place
        for at in range(0, COUNT, 5_000):
            offsets = list(range(place, place + 5_000))
            place += 5_000
            fetched = msg.Fetched(SOURCE, offsets, values[at : at + 5_000], place)
            logic.handle(msg.Polled((fetched,)), 0.0)

    benchmark.pedantic(route, rounds=5, warmup_rounds=1)
    per_message(benchmark, COUNT, "message")


@pytest.mark.parametrize("rows", [1, 8])
def test_decode_to_arrow(benchmark: BenchmarkFixture, rows: int) -> None:
    """One table's messages of one or eight rows, eight columns each."""
    count = COUNT // rows
    values = [message(number, "t", rows) for number in range(count)]
    offsets = list(range(count))
    decoder = FORMAT.table_decoder(Mode.UPSERT, None)
    benchmark.pedantic(decoder.decode, args=(0, offsets, values), rounds=5, warmup_rounds=1)
    per_message(benchmark, count * rows, "row")


def test_net_changes(benchmark: BenchmarkFixture) -> None:
    """Fold 50,000 rows, each key three times."""
    values = [message(number % (COUNT // 3), "t") for number in range(COUNT)]
    changes = FORMAT.table_decoder(Mode.UPSERT, None).decode(0, list(range(COUNT)), values)
    assert changes is not None
    folded = benchmark.pedantic(fold, args=(changes.table, ("id",)), rounds=5, warmup_rounds=1)
    assert folded.num_rows == COUNT // 3
    per_message(benchmark, COUNT, "row")


def test_mailbox(benchmark: BenchmarkFixture) -> None:
    """Offer and take one batch, in one thread."""
    box = Mailbox(DataQueue(Fixed(1 << 30)))

    def pass_through() -> None:
        for _ in range(1_000):
            box.offer("batch", 1_000, lambda: None)
            box.get()

    benchmark.pedantic(pass_through, rounds=20, warmup_rounds=1)
    per_message(benchmark, 1_000, "batch")
