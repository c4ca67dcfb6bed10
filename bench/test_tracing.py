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

from bench.rig import config, fill, messages, run_flow
from daemon.config.config import Config
from daemon.tracing.opening import Tracing
from daemon.tracing.section import TracingSection
from demo.broker import DevBroker

COUNT = int(os.environ.get("BENCH_MESSAGES", "400000"))
ROUNDS = 5
WAYS = {"off": None, "a tenth": 0.1, "all": 1.0}

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
    tracing = Tracing(settings, "run-bench")
    at: list[float] = []

    def now(seconds: float = 0.0) -> None:
        at.append(time.process_time())

    costs.clock.append(run_flow(settings, begun=now, caught_up=now, around=tracing.around))
    costs.processor.append(at[1] - at[0])
    tracing.close()
