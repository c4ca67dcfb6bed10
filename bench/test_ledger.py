"""What the ledger costs: an acknowledgement among 10,000 lanes, memory of 10 million."""

from __future__ import annotations

import itertools
import tracemalloc

from pytest_benchmark.fixture import BenchmarkFixture

from offsets.ledger import LaneLedger
from offsets.position import Lane, Run, TopicPartition

SOURCE = TopicPartition("binlog", 0)
LANES = 10_000
RUNS = 1_000


def test_acknowledgement_among_10_000_lanes(benchmark: BenchmarkFixture) -> None:
    """At most 2 µs per acknowledged run is required; the figure is for 1,000 of them."""
    ledger = LaneLedger()
    ledger.assign(SOURCE, 0)
    lanes = [f"lake.s.t{number}" for number in range(LANES)]
    rounds = itertools.count()

    def send() -> tuple[tuple[list[tuple[Lane, int]]], dict[str, object]]:
        base = next(rounds) * 2 * LANES
        spans = {lane: (base + 2 * i, base + 2 * i + 1) for i, lane in enumerate(lanes)}
        ledger.dispatched(SOURCE, base + 2 * LANES, spans)
        done = [(Lane(SOURCE, lane), spans[lane][0]) for lane in lanes[:: LANES // RUNS]]
        return (done,), {}

    def acknowledge(done: list[tuple[Lane, int]]) -> None:
        for lane, through in done:
            ledger.done(lane, through)

    benchmark.pedantic(acknowledge, setup=send, rounds=30)
    per_run = benchmark.stats.stats.min / RUNS
    benchmark.extra_info["us_per_acknowledgement"] = round(per_run * 1e6, 3)
    assert ledger.frontier(SOURCE) >= 0


def test_acknowledgement_of_split_messages_among_10_000_lanes(
    benchmark: BenchmarkFixture,
) -> None:
    """The same where every lane has two split messages under way, acknowledged one by one."""
    ledger = LaneLedger()
    ledger.assign(SOURCE, 0)
    lanes = [f"lake.s.t{number}" for number in range(LANES)]
    rounds = itertools.count()

    def send() -> tuple[tuple[list[tuple[Lane, int]]], dict[str, object]]:
        base = next(rounds) * 4 * LANES
        runs = {
            lane: (Run(base + 4 * i, base + 4 * i + 1), Run(base + 4 * i + 2, base + 4 * i + 3))
            for i, lane in enumerate(lanes)
        }
        ledger.dispatched(SOURCE, base + 4 * LANES, {}, runs)
        chosen = lanes[:: LANES // RUNS]
        return ([(Lane(SOURCE, lane), run.through) for lane in chosen for run in runs[lane]],), {}

    def acknowledge(done: list[tuple[Lane, int]]) -> None:
        for lane, through in done:
            ledger.done(lane, through)

    benchmark.pedantic(acknowledge, setup=send, rounds=30)
    per_run = benchmark.stats.stats.min / (2 * RUNS)
    benchmark.extra_info["us_per_acknowledgement"] = round(per_run * 1e6, 3)
    assert ledger.frontier(SOURCE) >= 0


def test_dispatched_to_3_000_lanes(benchmark: BenchmarkFixture) -> None:
    """A batch with news for each of 3,000 targets, all of which are done before the next."""
    ledger = LaneLedger()
    ledger.assign(SOURCE, 0)
    lanes = [f"lake.s.t{number}" for number in range(3_000)]
    rounds = itertools.count()

    def send() -> tuple[tuple[int, dict[str, tuple[int, int]]], dict[str, object]]:
        base = next(rounds) * len(lanes)
        for lane in lanes if base else ():
            ledger.done(Lane(SOURCE, lane), base - 1)
        return (base + len(lanes), {lane: (base + i, base + i) for i, lane in enumerate(lanes)}), {}

    def dispatch(following: int, spans: dict[str, tuple[int, int]]) -> None:
        ledger.dispatched(SOURCE, following, spans)

    benchmark.pedantic(dispatch, setup=send, rounds=30)
    benchmark.extra_info["us_per_lane"] = round(benchmark.stats.stats.min / len(lanes) * 1e6, 3)
    assert ledger.frontier(SOURCE) >= 0


def test_memory_with_10_million_messages_in_flight(benchmark: BenchmarkFixture) -> None:
    """It grows with the lanes, not with the messages: 300 lanes, kilobytes."""

    def fill() -> int:
        ledger = LaneLedger()
        ledger.assign(SOURCE, 0)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for batch in range(2_000):  # of 5,000 messages each
            base = batch * 5_000
            lanes = {f"lake.s.t{i}": (base + i, base + 4_999) for i in range(300)}
            ledger.dispatched(SOURCE, base + 5_000, lanes)
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return used

    used = benchmark.pedantic(fill, rounds=1)
    benchmark.extra_info["bytes"] = used
    assert used < 200_000
