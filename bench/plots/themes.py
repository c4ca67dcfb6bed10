"""Colours and lines of the plots, light and dark, and how a plot becomes a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

Theme = Mapping[str, str]

THEMES: Mapping[str, Theme] = {
    "light": {"ink": "#1f2328", "faint": "#d0d7de", "ours": "#3b5bdb", "also": "#7c8fe8",
              "other": "#9aa3ad"},
    "dark": {"ink": "#e6edf3", "faint": "#3d444d", "ours": "#8ea2ff", "also": "#5a6fd0",
             "other": "#7d8590"},
}  # fmt: skip


def saved(folder: Path, name: str, theme: str, plot: Callable[[], Figure]) -> Path:
    """Draw one plot in one theme. The same figures give the same file."""
    path, ink = folder / f"{name}-{theme}.svg", THEMES[theme]["ink"]
    settings = {
        "svg.hashsalt": name, "svg.fonttype": "none", "font.family": "sans-serif",
        "font.size": 9, "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink,
        "ytick.color": ink, "axes.edgecolor": THEMES[theme]["faint"], "axes.spines.top": False,
        "axes.spines.right": False, "xtick.bottom": False, "ytick.left": False,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        figure = plot()
        figure.savefig(path, transparent=True, bbox_inches="tight",
                       metadata={"Date": None, "Creator": "binlogd"})  # fmt: skip
        pyplot.close(figure)
    return path
