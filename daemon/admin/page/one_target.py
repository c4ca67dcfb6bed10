"""One target: its last hour as three lines, and its figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.admin.page.charts import chart, times
from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.page.history import Course
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.words import behind, duration, short, size


def target_section(
    pipeline: str,
    t: doc.Target,
    course: Course | None,
    found: Sequence[Condition],
    log: Sequence[str] = (),
) -> Html:
    """The whole section; ``course`` None: it had no change in this run. ``found``: of the
    target, the worst first. ``log``: its last lines there, the newest first."""
    course = course or Course((), (), ())
    return tag(
        "section",
        tag("h2", name(t["target"]), tag("small", " of pipeline ", name(pipeline))),
        *map(_condition, found),
        None if found else tag("p", "well", class_="verdict well"),
        tag(
            "div",
            chart("Rows a second", course.rows, short),
            times("Duration of a write", course.write),
            times("Lag", course.lag),
            class_="charts",
        ),
        tag("dl", *_figures(t)),
        tag("h3", "Its last lines in the log"),
        tag("ol", *(tag("li", name(line)) for line in log), class_="log")
        if log
        else tag("p", "none since the start", class_="quiet"),
        id="target",
    )


def _condition(one: Condition) -> Html:
    command = code(one.command) if one.command else None
    return tag("p", name(one.line), " ", command, class_=f"verdict {one.level}")


def _figures(t: doc.Target) -> list[Html]:
    mean = t["write_seconds"] / t["writes"] if t["writes"] else None
    figures = {
        "state": t["phase"],
        "lag": behind(t),
        "newest change written": _ago(t["freshness_seconds"]),
        "rows written": f"{t['rows_written']:,}, as {t['rows_stored']:,} after folding",
        "writes": f"{t['writes']:,}, {duration(mean)} each",
        "waits": f"{size(t['buffered_bytes'])} buffered, {size(t['staged_bytes'])} staged",
        "dead letters in this run": f"{t['dead_letters']:,}",
        "commits wait for it in": ", ".join(t["holds_frontier_of"]) or "no partition",
        "written through": ", ".join(f"{s} offset {n:,}" for s, n in t["high_water_marks"].items()),
    }
    return [
        part
        for what, text in figures.items()
        for part in (tag("dt", what), tag("dd", name(text or "-")))
    ]


def _ago(seconds: float | None) -> str:
    return "-" if seconds is None else f"{duration(seconds)} old"
