"""What a commit costs: 10,000 lanes made durable in the local file."""

from __future__ import annotations

from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from actors.staging.collector import calm_collector
from daemon.state.offset_file import FileStore
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark

LANES = 10_000
PARTITIONS = 100


def test_10_000_lanes_to_the_durable_file(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Under 50 ms is required, with both fsyncs, the file before kept, and every mark a new one."""
    calm_collector()  # as the daemon does
    store = FileStore(tmp_path, "shop")
    store.start()
    sources = [TopicPartition("shop-binlog", n) for n in range(PARTITIONS)]
    base = 1_000_000_000

    def batch() -> tuple[tuple[Snapshot], dict[str, object]]:
        nonlocal base
        base += 1
        frontiers = {source: PartitionState(base, base - 1) for source in sources}
        marks = {
            f"lake.shop.table_{n:05d}": TargetMark(
                str(base << 30), {sources[n % PARTITIONS]: base + n}
            )
            for n in range(LANES)
        }
        ids = {"shop-binlog": "AAAAAAAAAAAAAAAAAAAAAA"}
        return (Snapshot("shop", "g", ids, frontiers, marks),), {}

    benchmark.pedantic(lambda one: store.set(one).result(), setup=batch, rounds=20)
    benchmark.extra_info["ms"] = round(benchmark.stats.stats.median * 1e3, 1)
    found = store.get().snapshot
    assert found is not None
    assert len(found.targets) == LANES
