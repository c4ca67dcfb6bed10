"""Threads or processes for the processors: the same work, with decoding in processes of its own.

A prototype of the other way, as lean as it can be: no ledger, no files, raw messages through a
pipe. It bounds what processes could bring; ``bench/test_flow.py`` has the threads.
"""

from __future__ import annotations

import multiprocessing as mp
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pytest_benchmark.fixture import BenchmarkFixture

from bench.rig import fill, messages
from changes.fold import fold
from changes.formats import FORMATS
from changes.model import FormatOptions, Kind, Mode
from changes.routing import shard_of
from demo.broker import DevBroker

COUNT = int(os.environ.get("BENCH_MESSAGES", "500000"))
BATCH = 20_000
"""Messages of one target that are decoded together."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One real Kafka with a topic of one-row messages."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with DevBroker(folder) as started:
        fill(started.bootstrap, "one", messages(COUNT))
        yield started


def decode(pipe: Connection) -> None:
    """A processor in a process: decode and fold what comes, until None comes."""
    format_ = FORMATS["canal-json"](FormatOptions())
    decoders = {}
    waiting: dict[str, tuple[list[int], list[bytes]]] = {}
    rows = 0

    def close(table: str) -> int:
        offsets, values = waiting.pop(table)
        decoder = decoders.setdefault(table, format_.table_decoder(Mode.UPSERT, None))
        changes = decoder.decode(0, offsets, values)
        return fold(changes.table, changes.schema.keys).num_rows if changes else 0

    while (shares := pipe.recv()) is not None:
        for table, offsets, values in shares:
            held = waiting.setdefault(table, ([], []))
            held[0].extend(offsets)
            held[1].extend(values)
            if len(held[0]) >= BATCH:
                rows += close(table)
    for table in list(waiting):
        rows += close(table)
    pipe.send(rows)


def flow(bootstrap: str, workers: int) -> int:
    """Consume and route here, decode and fold in so many processes."""
    peek = FORMATS["canal-json"](FormatOptions()).peek
    context = mp.get_context("spawn")
    pipes, processes = [], []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=decode, args=(theirs,), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "p", "fetch.queue.backoff.ms": 10,
         "queued.max.messages.kbytes": 32 * 1024}
    )  # fmt: skip
    consumer.assign([TopicPartition("one", 0, 0)])
    seen = 0
    while seen < COUNT:
        found = consumer.consume(5000, 1.0)
        by_table: dict[str, tuple[list[int | None], list[bytes | None]]] = {}
        for message in found:
            head = peek(message.value())
            assert head.kind is Kind.ROWS
            held = by_table.setdefault(str(head.table), ([], []))
            held[0].append(message.offset())
            held[1].append(message.value())
        shares: list[list[object]] = [[] for _ in pipes]
        for table, (offsets, values) in by_table.items():
            shares[shard_of(table, workers)].append((table, offsets, values))
        for pipe, share in zip(pipes, shares, strict=True):
            pipe.send(share)
        seen += len(found)
    consumer.close()
    for pipe in pipes:
        pipe.send(None)
    rows = sum(pipe.recv() for pipe in pipes)
    for process in processes:
        process.join(20)
    return int(rows)


@pytest.mark.parametrize("workers", [1, 2])
def test_decoding_in_processes(
    benchmark: BenchmarkFixture, broker: DevBroker, workers: int
) -> None:
    """The start of the processes (a second or so) is in the figure, as it is the smaller part."""
    benchmark.pedantic(flow, args=(broker.bootstrap, workers), rounds=3, warmup_rounds=1)
    benchmark.extra_info["messages_per_s"] = round(COUNT / benchmark.stats.stats.min)
