"""Draws the course of a figure as a small SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from daemon.page.markup import Html, tag

WIDTH, HEIGHT = 360, 60
"""Of the drawing, in its own units: one for each point. The style sheet scales it."""


def sparkline(values: Sequence[float], what: str) -> Html:
    """The values from left to right, 0 at the bottom; where one is NaN the line is broken."""
    known = [value for value in values if value == value]
    most = max(known, default=0.0) or 1.0
    paths = [
        tag("path", d="".join(_steps(run, most))) for run in _runs(values, WIDTH / len(values))
    ]
    return tag(
        "svg",
        tag("title", what),
        *paths,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        class_="spark",
        role="img",
    )


def _runs(values: Sequence[float], width: float) -> Iterator[list[tuple[float, float]]]:
    """Neighbouring known values, each with its place; one alone becomes a short line."""
    run: list[tuple[float, float]] = []
    for number, value in [*enumerate(values), (len(values), float("nan"))]:
        if value == value:
            run.append((number * width, value))
        elif run:
            yield run if len(run) > 1 else [run[0], (run[0][0] + width, run[0][1])]
            run = []


def _steps(run: Sequence[tuple[float, float]], most: float) -> Iterator[str]:
    def place(point: tuple[float, float]) -> str:
        return f"{point[0]:.1f},{HEIGHT - 2 - point[1] / most * (HEIGHT - 4):.1f}"

    yield f"M{place(run[0])}"
    for before, after in pairwise(run):
        if before != after:
            yield f"L{place(after)}"
