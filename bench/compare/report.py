"""What a comparison found: as figures of each run, as ratios to binlogd's, as a table to read."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.compare.contestants import BASES
from bench.compare.workloads import Workload

FIGURES = (
    "rows_per_s",
    "read_rows_per_s",
    "cpu_s_per_million",
    "rss_mb",
    "jvm_rss_mb",
    "scan_s",
    "requests_per_million",
    "lake_cpu_s_per_million",
    "p50_s",
    "p99_s",
)
"""Those that are told as ratios, in the order of the table's columns."""


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures of one run whose tables were equal. ``reached``: an offset, exclusive."""

    seconds: float
    rows: int
    reached: int
    rows_per_s: float
    cpu_s_per_million: float
    rss_mb: float
    jvm_rss_mb: float
    scan_s: float | None = None
    requests_per_million: float | None = None
    """Of the object store, where there is one."""
    lake_cpu_s_per_million: float | None = None
    """Of the object store and the catalog, or of the database: no part of the contestant."""
    read_rows_per_s: float | None = None
    """Of a first load while it reads, without what it waits for before and after."""
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    said: dict[str, Any] = {}


class Entry(msgspec.Struct):
    """A contestant on a workload. ``equal``: None where nothing is written or it never ended."""

    equal: bool | None = None
    runs: list[Run] = []
    reason: str | None = None
    """Why it has no figure: it can't be had, it failed, or how its tables differ."""
    ratios: dict[str, tuple[float, float, float]] = {}
    """To binlogd in the same comparison: least, median, most."""


Results = dict[str, dict[str, Entry]]
"""Workload, contestant."""


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many of all are not above; ``values`` is not empty."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def figure(run: Run, name: str) -> float | None:
    """A run's figure by name."""
    value: float | None = getattr(run, name)
    return value


def add_ratios(results: Results) -> None:
    """Put each contestant's figures beside binlogd's: run by run where both had several.

    The n-th run of a contestant was made beside binlogd's n-th; where binlogd had fewer, its
    last. Without a figure of binlogd there is no ratio.
    """
    for entries in results.values():
        base = next((entries[name] for name in BASES if name in entries), None)
        if base is None or not base.runs:
            continue
        for entry in entries.values():
            for name in FIGURES:
                if ratios := list(_ratios(entry.runs, base.runs, name)):
                    entry.ratios[name] = (min(ratios), statistics.median(ratios), max(ratios))


def _ratios(runs: Sequence[Run], base: Sequence[Run], name: str) -> Iterable[float]:
    for number, run in enumerate(runs):
        ours, theirs = figure(base[min(number, len(base) - 1)], name), figure(run, name)
        if ours and theirs is not None:
            yield round(theirs / ours, 3)


def machine() -> dict[str, Any]:
    """Where it was measured, and with what."""
    said = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in said if line.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().split("\n", 1)[0].split()[1]
    packages = ("pyspark", "confluent-kafka", "pyarrow", "msgspec", "protobuf", "pykka")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(models),
        "memory_gb": round(int(memory) / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def write(path: Path, scale: float, results: Results) -> None:
    """Write all there is; called after each run, so that a run that is cut short leaves it."""
    document = {"scale": scale, "machine": machine(), "workloads": results}
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1))
    fresh.replace(path)


_HEADS = {
    "rows_per_s": "rows/s", "read_rows_per_s": "reading",
    "cpu_s_per_million": "CPU s/M rows", "rss_mb": "RSS MB",
    "jvm_rss_mb": "JVM MB", "scan_s": "scan s", "requests_per_million": "requests/M",
    "lake_cpu_s_per_million": "servers CPU s/M",
    "p50_s": "p50 s", "p99_s": "p99 s",
}  # fmt: skip


def show(console: Console, workload: Workload, entries: Mapping[str, Entry]) -> None:
    """Print a workload's table: medians, and in brackets how often binlogd's that is."""
    title = f"{workload.name}: {workload.what}, {workload.changes:,} changes"
    table = Table(title=title, title_justify="left")
    table.add_column("contestant")
    for name in FIGURES:
        table.add_column(_HEADS[name], justify="right")
    for name, entry in entries.items():
        if entry.runs:
            table.add_row(name, *(_cell(entry, figure_name) for figure_name in FIGURES))
        else:
            table.add_row(name, "no figure")
    console.print(table)
    for name, entry in entries.items():
        if not entry.runs and entry.reason:
            console.print(f"  {name}: {entry.reason}", highlight=False)


def _cell(entry: Entry, name: str) -> str:
    values = [value for run in entry.runs if (value := figure(run, name)) is not None]
    if not values:
        return ""
    ratio = f" ({entry.ratios[name][1]:.2f})" if name in entry.ratios else ""
    median = statistics.median(values)
    return (f"{median:,.0f}" if median >= 100 else f"{median:.2f}") + ratio
