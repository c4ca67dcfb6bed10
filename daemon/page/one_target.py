"""One target: its last hour as three lines, and its figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daemon.observe.durations import duration
from daemon.observe.status_table import size
from daemon.page.history import INTERVAL_S, POINTS, Course
from daemon.page.markup import Html, name, tag
from daemon.page.sparkline import sparkline
from daemon.page.words import behind, not_well, short


def target_section(pipeline: str, t: Mapping[str, Any], course: Course | None) -> Html:
    """The whole section; ``course`` None: it had no change in this run."""
    trouble = not_well(t)
    hour = duration(INTERVAL_S * POINTS)
    return tag(
        "section",
        tag("h2", name(t["target"]), tag("small", " of pipeline ", name(pipeline))),
        tag("p", name(trouble or "well"), class_="verdict ill" if trouble else "verdict well"),
        tag("p", f"The last {hour}, now at the right", class_="quiet"),
        _line("rows/s", course.rows if course else (), short),
        _line("seconds of a write", course.write if course else (), duration),
        _line("lag in seconds", course.lag if course else (), duration),
        tag("dl", *_figures(t)),
        id="target",
    )


def _line(what: str, values: Sequence[float], written: Any) -> Html:
    known = [value for value in values if value == value]
    if not known:
        return tag("figure", tag("figcaption", f"{what}: nothing yet"))
    text = f"{what}: {written(known[-1])} last, {written(max(known))} at most"
    return tag("figure", tag("figcaption", text), sparkline(values, text))


def _figures(t: Mapping[str, Any]) -> list[Html]:
    mean = t["write_seconds"] / t["writes"] if t["writes"] else None
    figures = {
        "state": t["phase"],
        "lag": behind(t),
        "fresh to": duration(t["freshness_seconds"]),
        "rows written": f"{t['rows_written']:,}, as {t['rows_stored']:,} after folding",
        "writes": f"{t['writes']:,}, {duration(mean)} each",
        "in hand": f"{size(t['buffered_bytes'])} buffered, {size(t['staged_bytes'])} staged",
        "dead letters": f"{t['dead_letters']:,}",
        "holds the frontier of": ", ".join(t["holds_frontier_of"]) or "no partition",
        "contains": ", ".join(f"{s} through {n:,}" for s, n in t["high_water_marks"].items()),
    }
    return [
        part
        for what, text in figures.items()
        for part in (tag("dt", what), tag("dd", name(text or "-")))
    ]
