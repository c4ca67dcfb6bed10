"""What a row costs in PostgreSQL and MariaDB: upserts into a table of 300,000 rows.

Seconds by pytest-benchmark; processor time a row, of this process and of the server, beside it.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from changes.model.model import OP, Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.databases import Server, running

STORED = 300_000
TICKS_A_SECOND = 100


@pytest.fixture(scope="module", params=["postgres", "mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each in turn."""
    with running(request.param) as made:
        yield made


def orders(ids: list[int]) -> pa.Table:
    """Rows of some 100 bytes."""
    numbers = pa.array(ids, pa.int64())
    return pa.table(
        {
            OP: ["U"] * len(ids),
            "id": numbers,
            "customer": [number % 1000 for number in ids],
            "status": [("new", "paid", "sent")[number % 3] for number in ids],
            "note": [f"note {number} " * 4 for number in ids],
            "total": [number / 7 for number in ids],
            "at": numbers.cast(pa.timestamp("us")),
        }
    )


def cpu_s(server: Server) -> float:
    """What the server's processes have used; those that ended count in their parent."""
    pids = [server.program.program.pid]
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        pids += [int(child) for child in children.split()]
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids[1:])
    return sum(sum(map(int, fields[11:15])) for fields in stats) / TICKS_A_SECOND


@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_upserts(benchmark: BenchmarkFixture, server: Server, tmp_path: Path, rows: int) -> None:
    """Half of the rows are new."""
    fields = orders([1]).schema
    schema = TableSchema(tuple(Column(field.name, field.type) for field in fields)[1:], ("id",))
    staging = Staging(tmp_path, TargetName("db", "bench", f"orders_{rows}"), schema)
    store = JdbcStore(server.connect, "binlogd")
    writer = LedgeredWriter(store)
    offsets, new = itertools.count(), itertools.count(STORED, rows // 2)
    writer.write(staging.batch(orders(list(range(STORED))), next(offsets)))
    used: list[tuple[float, float]] = []

    def next_batch() -> tuple[tuple[object, ...], dict[str, object]]:
        first = next(new)
        ids = random.Random(first).sample(range(STORED), rows // 2)
        ids += range(first, first + rows // 2)
        return (staging.batch(orders(ids), next(offsets)),), {}

    def write(batch: object) -> None:
        before = time.process_time(), cpu_s(server)
        writer.write(batch)  # type: ignore[arg-type]
        used.append((time.process_time() - before[0], cpu_s(server) - before[1]))

    benchmark.pedantic(write, setup=next_batch, rounds=5, warmup_rounds=1)
    store.close()
    for name, values in zip(("client", "server"), zip(*used[1:], strict=True), strict=True):
        benchmark.extra_info[f"{name}_us_per_row"] = round(min(values) / rows * 1e6, 2)
    benchmark.extra_info["rows_per_s"] = round(rows / benchmark.stats.stats.min)
