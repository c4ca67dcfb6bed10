"""The flow on the real broker: bare consume, without a sink, and with Spark and Iceberg."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pytest_benchmark.fixture import BenchmarkFixture

from bench.rig import config, fill, messages, run_flow
from demo.broker import DevBroker

COUNT = int(os.environ.get("BENCH_MESSAGES", "1000000"))
ROWS = 8


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One real Kafka with a topic of one-row messages and one of eight rows each."""
    with DevBroker(tmp_path_factory.mktemp("broker")) as started:
        fill(started.bootstrap, "one", messages(COUNT))
        fill(started.bootstrap, "eight", messages(COUNT // ROWS, rows=ROWS))
        yield started


def test_bare_consume(benchmark: BenchmarkFixture, broker: DevBroker) -> None:
    """The limit: ``consume`` and ``value()``, nothing else."""

    def consume() -> None:
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "bare",
             "fetch.queue.backoff.ms": 10, "queued.max.messages.kbytes": 32 * 1024}
        )  # fmt: skip
        consumer.assign([TopicPartition("one", 0, 0)])
        seen = 0
        while seen < COUNT:
            seen += len([message.value() for message in consumer.consume(5000, 1.0)])
        consumer.close()

    benchmark.pedantic(consume, rounds=3, warmup_rounds=1)
    benchmark.extra_info["messages_per_s"] = round(COUNT / benchmark.stats.stats.min)


@pytest.mark.parametrize(
    ("how", "processors"),
    [("processes", 1), ("processes", 2), ("processes", 3), ("threads", 1), ("threads", 2)],
)
@pytest.mark.parametrize(("topic", "rows"), [("one", 1), ("eight", ROWS)])
def test_flow_without_a_sink(
    benchmark: BenchmarkFixture,
    broker: DevBroker,
    tmp_path: Path,
    topic: str,
    rows: int,
    processors: int,
    how: str,
) -> None:
    """Fetch, route, decode, net changes to Arrow, with the real actors and offset file."""
    runs = iter(range(100))

    def set_up() -> tuple[tuple[object, bool], dict[str, object]]:
        number = next(runs)
        group = f"{topic}-{processors}-{how}-{number}"
        settings = config(tmp_path / str(number), broker.bootstrap, topic, group, processors)
        return (settings, how == "threads"), {}

    benchmark.pedantic(run_flow, setup=set_up, rounds=3)
    count = COUNT // rows * rows
    benchmark.extra_info["rows_per_s"] = round(count / benchmark.stats.stats.min)


def test_whole_flow_into_iceberg(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """``python -m demo`` without its read-back's share: the daemon on 200,000 changes."""
    import json
    import subprocess

    def demo() -> float:
        subprocess.run(
            [sys.executable, "-m", "demo", "--changes", "200000", "--var", str(tmp_path / "demo")],
            check=True, timeout=600, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        log = (tmp_path / "demo/log/binlogd.log").read_text().splitlines()
        (done,) = [e for e in map(json.loads, log) if e["event"] == "caught_up"]
        return float(done["rows_per_s"])

    rate = benchmark.pedantic(demo, rounds=1)
    benchmark.extra_info["rows_per_s"] = rate
    assert rate > 0
