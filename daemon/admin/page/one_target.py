"""One target: its last hour as three lines, and its figures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from daemon.admin.page.format import Html, name, tag
from daemon.admin.page.history import INTERVAL_S, POINTS, Course
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.words import behind, duration, short, size

# Draws the course of a figure as a small SVG. Pure.

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


def target_section(
    pipeline: str, t: doc.Target, course: Course | None, found: Sequence[Condition]
) -> Html:
    """The whole section; ``course`` None: it had no change in this run. ``found``: of the
    target, the worst first."""
    hour = duration(INTERVAL_S * POINTS)
    return tag(
        "section",
        tag("h2", name(t["target"]), tag("small", " of pipeline ", name(pipeline))),
        *map(_condition, found),
        None if found else tag("p", "well", class_="verdict well"),
        tag("p", f"The last {hour}, now at the right", class_="quiet"),
        _line("rows/s", course.rows if course else (), short),
        _line("seconds of a write", course.write if course else (), duration),
        _line("lag in seconds", course.lag if course else (), duration),
        tag("dl", *_figures(t)),
        id="target",
    )


def _condition(one: Condition) -> Html:
    command = tag("code", one.command) if one.command else None
    return tag("p", name(one.line), " ", command, class_=f"verdict {one.level}")


def _line(what: str, values: Sequence[float], written: Any) -> Html:
    known = [value for value in values if value == value]
    if not known:
        return tag("figure", tag("figcaption", f"{what}: nothing yet"))
    text = f"{what}: {written(known[-1])} last, {written(max(known))} at most"
    return tag("figure", tag("figcaption", text), sparkline(values, text))


def _figures(t: doc.Target) -> list[Html]:
    mean = t["write_seconds"] / t["writes"] if t["writes"] else None
    figures = {
        "state": t["phase"],
        "lag": behind(t),
        "fresh to": duration(t["freshness_seconds"]),
        "rows written": f"{t['rows_written']:,}, as {t['rows_stored']:,} after folding",
        "writes": f"{t['writes']:,}, {duration(mean)} each",
        "held": f"{size(t['buffered_bytes'])} buffered, {size(t['staged_bytes'])} staged",
        "dead letters in this run": f"{t['dead_letters']:,}",
        "holds the frontier of": ", ".join(t["holds_frontier_of"]) or "no partition",
        "contains": ", ".join(f"{s} through {n:,}" for s, n in t["high_water_marks"].items()),
    }
    return [
        part
        for what, text in figures.items()
        for part in (tag("dt", what), tag("dd", name(text or "-")))
    ]
