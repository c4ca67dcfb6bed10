"""Draws the last hour of a figure: a line with its axes, as SVG and text. Pure.

The script of a browser is not needed, and the axes are text of the page: a drawing that is
stretched to a screen's width would stretch its letters as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from daemon.admin.page.format import Html, join, tag
from daemon.admin.page.history import INTERVAL_S, POINTS, PipelineCourse
from daemon.admin.status.words import duration, short

WIDTH, HEIGHT = 360, 60
"""Of the drawing, in its own units: one for each point. The style sheet scales it."""

HOUR = ("1 h ago", "30 min", "now")
assert INTERVAL_S * POINTS == 3600


TIMES_S = (1, 2, 4, 10, 20, 60, 120, 240, 600, 1200, 3600, 7200, 14_400, 36_000, 86_400, 172_800)
"""The tops of an axis of times: a half of each is round as well."""


def times(what: str, values: Sequence[float]) -> Html:
    """A chart of seconds."""
    return chart(what, values, duration, TIMES_S)


def chart(
    what: str,
    values: Sequence[float],
    written: Callable[[float], str],
    tops: Sequence[float] = (),
) -> Html:
    """A figure with its last and largest value, the line, and both axes. ``tops``: of the axis,
    where they are not 1, 2, 5, 10, …"""
    known = [value for value in values if value == value]
    if not known:
        return tag("figure", tag("figcaption", tag("b", what), " nothing yet"))
    top = next((top for top in tops if top >= max(known)), ceiling(max(known)))
    text = f"{what}: {written(known[-1])} now, {written(max(known))} at most in the last hour"
    return tag(
        "figure",
        tag("figcaption", tag("b", what), f" {written(known[-1])}"),
        tag(
            "div",
            tag("div", *(tag("span", written(top * part)) for part in (1, 0.5, 0)), class_="y"),
            _drawing(values, top, text),
            tag("div", *(tag("span", moment) for moment in HOUR), class_="x"),
            class_="chart",
        ),
    )


def ceiling(most: float) -> float:
    """The top of an axis: the next of 1, 2, 5, 10, 20, …, so that its half is round as well."""
    power = 1.0
    while most > 10 * power:
        power *= 10
    return next((step * power for step in (1, 2, 5, 10) if most <= step * power), 10 * power)


def courses(of: PipelineCourse | None) -> Html:
    """The three charts of a pipeline, or of all together."""
    course = of or PipelineCourse((), (), (), ())
    return tag(
        "div",
        chart("Rows a second", course.rows, short),
        times("Lag", course.lag),
        times("Freshness", course.freshness),
        class_="charts",
    )


def together(every: Sequence[PipelineCourse]) -> PipelineCourse | None:
    """All pipelines as one: their rows in all, the largest lag and freshness."""
    if not every:
        return None
    lines = [[course.rows, course.lag, course.freshness, course.behind] for course in every]
    added, worst = sum, max
    rows, lag, fresh, behind = zip(*lines, strict=True)
    return PipelineCourse(
        _merged(rows, added), _merged(lag, worst), _merged(fresh, worst), _merged(behind, added)
    )


def _merged(
    lines: Sequence[Sequence[float]], by: Callable[[list[float]], float]
) -> tuple[float, ...]:
    points = ([value for value in values if value == value] for values in zip(*lines, strict=True))
    return tuple(by(known) if known else float("nan") for known in points)


def _drawing(values: Sequence[float], top: float, text: str) -> Html:
    lines = (tag("path", d="".join(_steps(run, top))) for run in _runs(values, WIDTH / len(values)))
    grid = (
        tag("path", d=f"M0,{at}L{WIDTH},{at}", class_="grid") for at in (1, HEIGHT / 2, HEIGHT - 1)
    )
    return tag(
        "svg",
        tag("title", text),
        join(*grid, *lines),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        class_="line",
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


def _steps(run: Sequence[tuple[float, float]], top: float) -> Iterator[str]:
    def place(point: tuple[float, float]) -> str:
        return f"{point[0]:.1f},{HEIGHT - 1 - point[1] / top * (HEIGHT - 2):.1f}"

    yield f"M{place(run[0])}"
    for before, after in pairwise(run):
        if before != after:
            yield f"L{place(after)}"
