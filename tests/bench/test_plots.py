"""The plots in the docs: of the figures that the docs tell, and the same each time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.compare.report import Entry, Run, write
from bench.plots.__main__ import HERE, PLOTS, draw
from bench.plots.compared import drawn
from bench.plots.themes import THEMES

DOCS = HERE.parent
FIGURES = json.loads((HERE / "figures.json").read_text())
NOT_MEASURED = {"millions", "counts"}


def test_drawing_again_gives_the_same_files(tmp_path: Path) -> None:
    """None is missing, none is left over."""
    made = {path.name: path.read_bytes() for path in draw(tmp_path)}
    assert made == {path.name: path.read_bytes() for path in HERE.glob("*-*.svg")}


def numbers(data: Any) -> Iterator[float]:
    """All figures below."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from () if key in NOT_MEASURED else numbers(value)
    elif isinstance(data, list):
        for value in data:
            yield from numbers(value)
    elif not isinstance(data, str):
        yield data


@pytest.mark.parametrize("name", PLOTS)
def test_each_figure_is_told_in_the_docs(name: str) -> None:
    """Under the heading that it is said to be from."""
    text = (DOCS / "performance.md").read_text() + (DOCS / "scaling.md").read_text()
    heading = re.escape(FIGURES[name]["from"])
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    told = {float(number.replace(",", "")) for number in re.findall(r"[\d,]*\.?\d+", found[1])}
    assert {number for number in numbers(FIGURES[name]) if number not in told} == set()


@pytest.mark.parametrize("name", PLOTS)
def test_each_plot_is_shown(name: str) -> None:
    """Both themes of it."""
    text = (DOCS / "performance.md").read_text() + (DOCS / "scaling.md").read_text()
    for theme in THEMES:
        assert f"figures/{name}-{theme}.svg" in text


def test_a_comparison_of_ones_own_is_drawn(tmp_path: Path) -> None:
    """Each workload that has figures, the medians of its runs; who has none is left out."""

    def run(rate: float, **more: float) -> Run:
        return Run(1.0, 1000, 1000, rate, 1e6 / rate, 300, 700, **more)

    wide = {"binlogd": Entry(True, [run(40_000), run(50_000), run(90_000)]),
            "expert": Entry(True, [run(10_000)]), "flink": Entry(reason="not here")}  # fmt: skip
    fresh = {"binlogd": Entry(True, [run(500, p50_s=0.8, p99_s=2.5)])}
    write(tmp_path / "compare.json", 0.1, {"wide": wide, "fresh": fresh, "hot": {}})
    made = {path.name: path.read_text() for path in drawn(tmp_path / "compare.json", tmp_path)}
    assert set(made) == {f"compare-{w}-{t}.svg" for w in ("wide", "fresh") for t in THEMES}
    shown = set(re.findall(r">([^<>]+)</text>", made["compare-wide-light.svg"]))
    assert {"binlogd", "expert", "50,000", "10,000", "20", "100", "1,000"} <= shown
    assert not {"flink", "freshness p50, s"} & shown
    shown = set(re.findall(r">([^<>]+)</text>", made["compare-fresh-dark.svg"]))
    assert {"freshness p50, s", "0.8", "2.5", "500"} <= shown
