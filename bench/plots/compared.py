"""Draws what ``make compare`` has found: a plot for each workload that has figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import matplotlib
import msgspec
from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.compare.report import Entry, Run, figure
from bench.plots.themes import THEMES, Theme, saved

OF_ALL = {
    "rows_per_s": "rows/s",
    "cpu_s_per_million": "processor s per million rows",
    "memory_mb": "MB resident",
}
OF_FRESHNESS = {"p50_s": "freshness p50, s", "p99_s": "freshness p99, s"}


class Document(msgspec.Struct):
    """What of the file is drawn."""

    workloads: dict[str, dict[str, Entry]]


def drawn(file: Path, folder: Path) -> list[Path]:
    """Draw every workload, light and dark; gives the files. The medians of its runs."""
    matplotlib.use("svg")
    document = msgspec.json.decode(file.read_bytes(), type=Document)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for workload, entries in document.workloads.items():
        runs = {name: entry.runs for name, entry in entries.items() if entry.runs}
        for theme, colors in THEMES.items() if runs else ():
            plot = partial(_plot, workload, runs, colors)
            made.append(saved(folder, f"compare-{workload}", theme, plot))
    return made


def _plot(workload: str, runs: Mapping[str, list[Run]], theme: Theme) -> Figure:
    fresh = all(run.p50_s is not None for those in runs.values() for run in those)
    shown = {**OF_FRESHNESS, **OF_ALL} if fresh else OF_ALL
    height = 0.9 + 0.4 * len(runs)
    whole, axes = pyplot.subplots(1, len(shown), figsize=(3.4 * len(shown), height), sharey=True)
    colors = [theme["ours" if "binlogd" in name else "other"] for name in runs]
    for plot, (key, title) in zip(axes, shown.items(), strict=True):
        values = [statistics.median(_figure(run, key) for run in those) for those in runs.values()]
        bars = plot.barh(list(runs), values, color=colors, height=0.65)
        plot.bar_label(bars, map(_short, values), padding=3, fontsize=8)
        plot.set_xlim(0, 1.35 * max(values))
        plot.set_xticks([])
        plot.set_title(title, loc="left", fontsize=10)
    axes[0].invert_yaxis()
    whole.suptitle(workload, x=0.01, ha="left", fontsize=11)
    return whole


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _figure(run: Run, key: str) -> float:
    if key == "memory_mb":
        return run.rss_mb + run.jvm_rss_mb
    return figure(run, key) or 0.0
