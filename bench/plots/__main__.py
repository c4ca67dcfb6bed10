"""Draws docs/figures/*.svg from docs/figures/figures.json: ``python -m bench.plots [FOLDER]``.

The figures are those of docs/performance.md and docs/scaling.md, which a test compares, with the
commands that measure them again. The same figures give the same files: no date, no random names.
``python -m bench.plots FOLDER var/compare.json`` draws what `make compare` has found instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.plots.compared import drawn
from bench.plots.themes import THEMES, Theme, saved

HERE = Path(__file__).parents[2] / "docs" / "figures"

Data = Mapping[str, Any]


def peers(data: Data, theme: Theme) -> Figure:
    """Rows/s and processor time of each peer beside binlogd's, from the same runs."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 2.8), sharey=True)
    rows = [{"peer": "binlogd, merge", "rate": 1, "cpu": 1}, *data["rows"]]
    names = [row["peer"] for row in rows]
    for axes, key, title in (
        (left, "rate", "rows/s, binlogd = 1"),
        (right, "cpu", "processor time a row, binlogd = 1 (log)"),
    ):
        values = [row[key] for row in rows]
        axes.barh(names, values, color=_colors(names, theme), height=0.65)
        for place, value in enumerate(values):
            axes.annotate(f"{value:,}", (value, place), xytext=(4, 0), va="center",
                          textcoords="offset points", fontsize=8)  # fmt: skip
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xticks([])
    left.set_xlim(0, 1.2)
    right.set_xscale("log")
    right.set_xlim(0.5, 9000)
    left.invert_yaxis()
    return figure


def freshness(data: Data, theme: Theme) -> Figure:
    """From the median to the 99th percentile, a bar each."""
    figure, axes = pyplot.subplots(figsize=(9, 1.9))
    names = [row["peer"] for row in data["rows"]]
    for place, (row, color) in enumerate(zip(data["rows"], _colors(names, theme), strict=True)):
        axes.plot([row["p50"], row["p99"]], [place, place], color=color, lw=7,
                  solid_capstyle="round")  # fmt: skip
        axes.annotate(f"p50 {row['p50']:.2f} s, p99 {row['p99']:.2f} s", (row["p99"], place),
                      xytext=(10, 0), textcoords="offset points", va="center",
                      fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 18)
    axes.set_title("seconds from producer to visible row, 500 changes/s", loc="left", fontsize=10)
    return figure


def growth(data: Data, theme: Theme) -> Figure:
    """Processor seconds per million rows against the table's size."""
    figure, axes = pyplot.subplots(figsize=(6, 2.8))
    for name, color in (("merge", theme["ours"]), ("equality", theme["also"])):
        axes.plot(data["millions"], data[name], "o-", color=color)
        axes.annotate(name, (data["millions"][-1], data[name][-1]), xytext=(8, 0), va="center",
                      textcoords="offset points", fontsize=9)  # fmt: skip
    axes.set_ylim(0)
    axes.set_xlim(0, 23)
    axes.set_xticks(data["millions"])
    axes.set_xlabel("million rows in the table")
    title = "processor seconds per million updates of any key"
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def memory(data: Data, theme: Theme) -> Figure:
    """Python's and Java's memory, side by side in one bar."""
    figure, axes = pyplot.subplots(figsize=(9, 2.1))
    names = [row["peer"] for row in data["rows"]]
    python, jvm = ([row[key] for row in data["rows"]] for key in ("python", "jvm"))
    axes.barh(names, python, color=theme["ours"], height=0.6, label="Python")
    axes.barh(names, jvm, left=python, color=theme["other"], height=0.6, label="JVM")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.set_title("MB resident, 2 million changes", loc="left", fontsize=10)
    return figure


def long(data: Data, theme: Theme) -> Figure:
    """The daemon's own memory over a stream of 6 million changes."""
    figure, axes = pyplot.subplots(figsize=(6, 2.4))
    axes.plot(data["seconds"], data["mb"], "o-", color=theme["ours"])
    axes.fill_between([data["seconds"][-1], 40], *data["then"], color=theme["ours"], alpha=0.35)
    low, high = data["then"]
    axes.annotate(f"{low} to {high} until the end", (26, (low + high) / 2), va="center",
                  ha="center", fontsize=9)  # fmt: skip
    axes.set_ylim(0, 800)
    axes.set_xlim(0, 40)
    axes.set_xticks(data["seconds"])
    axes.set_xlabel("seconds")
    axes.set_title("MB of the daemon's process, 6 million changes", loc="left", fontsize=10)
    return figure


def daemons(data: Data, theme: Theme) -> Figure:
    """The same work by more daemons: what all of them take together."""
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 2.5))
    titles = {"few": "8 tables, 360,000 changes", "many": "160 tables, 480 writes"}
    for plot, (key, title) in zip(axes, titles.items(), strict=True):
        names = [str(count) for count in data["counts"]]
        plot.bar(names, data[key]["measured"], color=theme["ours"], width=0.55, label="measured")
        plot.plot(names, data[key]["model"], "o", color=theme["ink"], label="model")
        plot.set_xlabel("daemons")
        plot.set_title(f"processor seconds: {title}", loc="left", fontsize=10)
    axes[0].set_ylim(0, 8)
    axes[1].set_ylim(0, 46)
    axes[1].legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    return figure


def throughput(data: Data, theme: Theme) -> Figure:
    """Changes a second: of more daemons on the same cores, of one daemon on more cores."""
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 2.5), width_ratios=(3, 3, 2))
    panels = (
        ("few", "8 tables, large writes", "daemons on the same two cores", data["counts"]),
        ("many", "160 tables, small writes", "daemons on the same two cores", data["counts"]),
        ("cores", "nothing written", "cores of one daemon", range(1, len(data["cores"]) + 1)),
    )
    for plot, (key, title, below, counts) in zip(axes, panels, strict=True):
        bars = plot.bar(list(map(str, counts)), data[key], color=theme["ours"], width=0.55)
        plot.bar_label(bars, [f"{value:,}" for value in data[key]], padding=2, fontsize=8)
        plot.set_ylim(0, 1.2 * max(data[key]))
        plot.set_yticks([])
        plot.set_xlabel(below)
        plot.set_title(title, loc="left", fontsize=10)
    figure.suptitle("changes a second", x=0.12, y=1.04, ha="left", fontsize=10)
    return figure


PLOTS: Mapping[str, Callable[[Data, Theme], Figure]] = {
    "peers": peers, "freshness": freshness, "growth": growth, "memory": memory, "long": long,
    "daemons": daemons, "throughput": throughput,
}  # fmt: skip


def _colors(names: list[str], theme: Theme) -> list[str]:
    ours = {"binlogd, merge": theme["ours"], "binlogd, equality": theme["also"]}
    return [ours.get(name, theme["other"]) for name in names]


def draw(folder: Path) -> list[Path]:
    """Draw every plot, light and dark; gives the files."""
    matplotlib.use("svg")
    figures = json.loads((HERE / "figures.json").read_text(encoding="utf-8"))
    made = []
    for name, plot in PLOTS.items():
        for theme, colors in THEMES.items():
            made.append(saved(folder, name, theme, partial(plot, figures[name], colors)))
    return made


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for path in drawn(Path(sys.argv[2]), folder) if len(sys.argv) > 2 else draw(folder):
        print(path)
