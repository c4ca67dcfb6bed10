"""What traces cost: the flow without a sink, with none, a tenth and all of its batches traced.

``python -m pytest -s bench/test_tracing.py`` prints processor time of the daemon's main process and
the clock's, the best of each way's rounds; the ways take turns, so that a busy machine meets all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Fetched, Published, Staged
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch, TargetState
from bench.rig import config, fill, messages, run_flow
from changes.model.model import Mode, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from daemon.config.config import Config
from daemon.config.sections import TracingSection
from daemon.tracing.batches import BatchTraces
from daemon.tracing.exporting import Exporting
from daemon.tracing.opening import Tracing
from demo.broker import DevBroker
from offsets.fence import Span
from offsets.position import TopicPartition

COUNT = int(os.environ.get("BENCH_MESSAGES", "400000"))
ROUNDS = 5
WAYS = {"off": None, "a tenth": 0.1, "all": 1.0}

SOURCE, TARGET = TopicPartition("t", 0), TargetName("lake", "bench", "t")
SCHEMA, DONE = TableSchema({}, ()), Published(TargetState(version="1"), 0.0)

RECEIVER = """
import sys
from tests.daemon.tracing.receiver import receiving
with receiving() as receiver:
    print(receiver.port, flush=True)
    sys.stdin.read()
    print(sum(span.name == "batch" for span in receiver.spans), len(receiver.spans))
"""


@dataclass
class Costs:
    """Of one way: seconds, processor seconds, and what the receiver got."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    got: list[str] = field(default_factory=list)


@contextmanager
def receiver(costs: Costs) -> Iterator[int]:
    """In a process of its own: its decoding is not the daemon's."""
    with subprocess.Popen(
        [sys.executable, "-c", RECEIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            costs.got.append(process.communicate()[0].strip())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("tables", [20, 500])
def test_traces(tmp_path: Path, tables: int) -> None:
    """Large batches of few tables, small ones of many."""
    costs = {way: Costs() for way in WAYS}
    with DevBroker(tmp_path / "broker") as broker:
        fill(broker.bootstrap, "one", messages(COUNT, tables))
        for number in range(ROUNDS + 1):
            for way, sample in WAYS.items():
                name = f"{way.replace(' ', '-')}-{number}"
                settings = config(tmp_path / name, broker.bootstrap, "one", name, 2)
                with receiver(costs[way]) as port:
                    costs_of(settings, sample, port, costs[way])
    least, most = (min(costs["off"].processor[1:]), min(costs["all"].processor[1:]))
    print(f"\n{COUNT} messages, {tables} tables; best of {ROUNDS} rounds; load {os.getloadavg()}")
    for way, cost in costs.items():
        processor, clock = min(cost.processor[1:]), min(cost.clock[1:])
        print(way, "all rounds:", *(f"{seconds:.2f}" for seconds in cost.processor[1:]))
        print(f"{way:8} processor {processor:.2f} s ({processor / least:.3f}), clock {clock:.2f} s,"
              f" batches and spans: {cost.got[-1]}")  # fmt: skip
    assert most > 0


def costs_of(settings: Config, sample: float | None, port: int, costs: Costs) -> None:
    """One run."""
    if sample is not None:
        section = TracingSection(endpoint=f"http://127.0.0.1:{port}", sample=sample)
        object.__setattr__(settings, "tracing", section)
    tracing = Tracing(settings.tracing, "run-bench", settings.redactor.text)
    at: list[float] = []

    def now(seconds: float = 0.0) -> None:
        at.append(time.process_time())

    costs.clock.append(run_flow(settings, begun=now, caught_up=now, around=tracing.around))
    costs.processor.append(at[1] - at[0])
    tracing.close()


@pytest.mark.parametrize("sample", [1e-12, 1.0])
def test_what_a_poll_and_a_batch_cost(sample: float) -> None:
    """Processor time of the main process, the sending included, for polls of 5,000 messages and
    batches of the messages of ten of them."""
    costs, polls, batches = Costs(), 20_000, 2_000
    with receiver(costs) as port:
        section = TracingSection(endpoint=f"http://127.0.0.1:{port}", sample=sample)
        exporting = Exporting(section, "run", "0")
        traces = BatchTraces(exporting.tracer)
        begun = time.process_time()
        for number in range(polls):
            offsets = list(range(5000 * number, 5000 * number + 5))
            traces.polled("p", (Fetched(SOURCE, offsets, [b""] * 5, offsets[-1]),), number, number)
        polled = time.process_time() - begun
        lanes = (LaneMessages(SOURCE, Messages(range(5000 * (polls - 10), 5000 * polls), (), 0)),)
        request = Stage(TargetRoute(TARGET, Mode.UPSERT, None), (), lanes)
        begun = time.process_time()
        for number in range(batches):
            path = str(number)
            traces.staged("p", request, Staged(TARGET, path, rows=1, changes=1), 1, 2)
            batch = StagedBatch(path, TARGET, Mode.UPSERT, SCHEMA, {SOURCE: Span(0, 1)}, path)
            traces.published(batch, DONE, 3, 4)
            traces.saved("p", {SOURCE: 2}, 5, 6)
            if number % 100 == 0:
                time.sleep(0.05)  # the exporter's turn: its queue is bounded
        exporting.close()
        each = time.process_time() - begun
    print(f"\nsample {sample}: a poll {1e6 * polled / polls:.1f} µs, a batch "
          f"{1e6 * each / batches:.0f} µs; {costs.got}")  # fmt: skip
    assert each > 0
