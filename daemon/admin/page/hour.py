"""The last hour of all pipelines; what of it was an event, or a dead letter. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.admin.page.charts import courses, together
from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.page.history import History, SeenEvent
from daemon.admin.page.pipeline_view import time_left
from daemon.admin.status import document as doc
from daemon.admin.status.words import duration
from settings.shell import quoted


def hour_section(status: doc.Status, history: History) -> Html | None:
    """Throughput, lag and freshness of all together, and when they will be caught up; None before
    the first sample."""
    found = {p["pipeline"]: history.pipeline_course(p["pipeline"]) for p in status["pipelines"]}
    known = [course for course in found.values() if course is not None]
    # The freshness of a pipeline whose source is quiet grows, and says nothing about the others.
    busy = [course for course in known if any(value > 0 for value in course.rows)]
    left = [
        tag("p", name(p["pipeline"]), f": {line}", class_="left")
        for p in status["pipelines"]
        if (line := time_left(p, found[p["pipeline"]])) is not None
    ]
    return tag(
        "section",
        tag("h2", "The last hour"),
        courses(together(busy or known)),
        *left,
        id="hour",
    )


def letters_section(status: doc.Status) -> Html | None:
    """How many dead letters are open, and those of this run by target; None without one."""
    rows = [
        tag(
            "tr",
            tag("td", name(t["target"])),
            tag("td", f"{t['dead_letters']:,}", class_="n"),
            tag("td", code(f"binlogd dead-letters list --table {quoted(t['target'])}")),
        )
        for p in status["pipelines"]
        for t in p["targets"]
        if t["dead_letters"]
    ]
    open_ = sum(p["dead_letters"]["open"] or 0 for p in status["pipelines"])
    if not open_ and not rows:
        return None
    head = ("target", "in this run", "command")
    return tag(
        "section",
        tag("h2", "Dead letters ", tag("small", f"{open_:,} not replayed")),
        _listed(head, rows) if rows else tag("p", code("binlogd dead-letters list")),
        id="letters",
    )


def events_section(events: Sequence[SeenEvent], now_ms: int) -> Html | None:
    """What began or ended to be not well, the newest first; None where nothing did."""
    if not events:
        return None
    rows = [
        tag(
            "tr",
            tag("td", f"{duration(max(0, now_ms - event.time_ms) / 1000)} ago", class_="n"),
            tag("td", "began" if event.begun else "ended"),
            tag("td", name(event.condition.who)),
            tag("td", name(event.condition.line), class_="why"),
        )
        for event in events
    ]
    head = ("when", "", "of", "what")
    return tag("section", tag("h2", "Events"), _listed(head, rows), id="events")


def _listed(head: Sequence[str], rows: Sequence[Html]) -> Html:
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *rows),
    )
    return tag("div", table, class_="wide")
