"""What one write asks of a catalog and an object store: requests and seconds, beside a folder.

Before both stands a proxy that counts; catalog and store are real ones on this machine, so seconds
are those of small distances. ``BENCH_ROUNDS=8`` sets how often each write is made.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table as Lines

from actors.runtime.java import find_java
from bench.test_write import LANE, ROUNDS, SCHEMA, rows_of
from changes.model.model import KeyBound, TargetName
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.section import CompactionSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.session import start_session
from tests.lake.lakes import LAKES
from tests.lake.proxy import Asked, Proxy
from tests.lake.sessions import CONF, jars_for
from tests.sparkwriter.conftest import Staging

STORED = 200_000
"""Rows of each table before the writes that are counted; as it grew, its files follow the keys."""


class Counted(NamedTuple):
    """One write: seconds, and requests by what was asked of whom."""

    seconds: float
    asked: Counter[str]


class Bench:
    """A writer on a lake, with the proxies that count."""

    def __init__(self, writer: IcebergWriter, proxies: list[Proxy], folder: Path) -> None:
        self.writer, self.proxies, self.folder = writer, proxies, folder

    def table(self, way: Write, name: str) -> Staging:
        """A table of STORED rows, in four files."""
        staging = Staging(self.folder, TargetName("lake", "bench", name), SCHEMA, way)
        for number, first in enumerate(range(0, STORED, STORED // 4), start=1):
            keys = range(first, first + STORED // 4)
            self.write(staging, list(keys), number)
        return staging

    def write(self, staging: Staging, keys: list[int], through: int) -> Counted:
        """Write rows of these keys, and count."""
        bounds = [KeyBound("id", min(keys), max(keys))]
        batch = staging.batch(rows_of(keys, through), through, bounds=bounds, lane=LANE)
        for proxy in self.proxies:
            proxy.asked.clear()
        begun = time.perf_counter()
        self.writer.write(batch)
        seconds = time.perf_counter() - begun
        return Counted(seconds, Counter(map(kind_of, (a for p in self.proxies for a in p.asked))))


def kind_of(asked: Asked) -> str:
    """A request in two words: whose, and what."""
    if asked.path.startswith("/v1/"):
        return f"catalog {asked.method}"
    listing = "list-type" in asked.path or asked.path.endswith("?delete")
    ranged = any(name.lower() == "range" for name, _ in asked.headers)
    return f"store {'LIST' if listing else asked.method}{' range' if ranged else ''}"


@pytest.fixture(scope="module", params=["rest-s3", "jdbc-folder"])
def bench(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Bench]:
    """Each lake in turn, behind proxies where it is spoken to by HTTP."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "servers").mkdir()
    os.environ["JAVA_HOME"] = str(find_java().home)
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES[request.param](folder / "servers"))
        properties, proxies = dict(lake.catalog), []
        for key in ("uri", "s3.endpoint"):
            if properties.get(key, "").startswith("http://"):
                proxy = stack.enter_context(Proxy(properties[key].removeprefix("http://")))
                properties[key] = proxy.url
                proxies.append(proxy)
        spark = start_session(
            {**CONF, **lake.conf}, "local[2]", jars_for(lake), {"lake": properties},
            folder / "jvm.log", folder / "scratch",
        )  # fmt: skip
        stack.callback(SparkJvm(spark).stop, 10.0)
        never = Compactions(CompactionSection.model_construct(enabled=False))
        yield Bench(IcebergWriter(spark, compactions=never), proxies, folder)


def recent(random_: random.Random, rows: int) -> list[int]:
    """Keys of the last file alone."""
    return random_.sample(range(STORED * 3 // 4, STORED), rows)


def anywhere(random_: random.Random, rows: int) -> list[int]:
    """Keys of all files."""
    return random_.sample(range(STORED), rows)


@pytest.mark.parametrize("keys", [None, recent, anywhere], ids=["new", "recent", "anywhere"])
@pytest.mark.parametrize("way", list(Write), ids=lambda way: way.value)
def test_a_write(
    bench: Bench, benchmark: BenchmarkFixture, way: Write, keys: Callable[..., list[int]] | None
) -> None:
    """Batches of 1,000 rows, of one kind of keys each."""
    name = re.sub(r"\W", "_", f"{way.value}_{'new' if keys is None else keys.__name__}")
    staging, random_ = bench.table(way, name), random.Random(4)
    found: list[Counted] = []

    def write() -> None:
        number = len(found)
        new = list(range(STORED + number * 1000, STORED + (number + 1) * 1000))
        chosen = new if keys is None else keys(random_, 1000)
        found.append(bench.write(staging, chosen, 10 + number))

    benchmark.pedantic(write, rounds=ROUNDS, warmup_rounds=2, iterations=1)
    found = found[2:]
    total = sum((counted.asked for counted in found), Counter())
    median = statistics.median(counted.seconds for counted in found)
    per_write = {kind: round(count / len(found), 1) for kind, count in sorted(total.items())}
    benchmark.extra_info.update(requests=per_write)
    _show(f"{way.value}, {name}", median, per_write)
    if bench.proxies:
        assert total["store LIST"] == 0  # nothing is listed on the way of a write


def _show(what: str, seconds: float, requests: dict[str, float]) -> None:
    lines = Lines("write", "median s", "requests", *requests)
    shown = (f"{sum(requests.values()):.1f}", *map(str, requests.values()))
    lines.add_row(what, f"{seconds:.3f}", *shown)
    Console(width=160).print(lines)
