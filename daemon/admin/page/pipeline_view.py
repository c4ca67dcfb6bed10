"""A pipeline: one line, and what it opens to: its last hour, its stages, what holds it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daemon.admin.page.charts import courses
from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.page.history import History, PipelineCourse
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.status_table import log_end
from daemon.admin.status.stores_health import last_cut
from daemon.admin.status.words import behind, duration, messages, short, size
from settings.counted import counted


def pipeline_section(
    p: doc.Pipeline, history: History, conditions: Sequence[Condition], *, alone: bool
) -> Html:
    """One pipeline: a line, which opens to its last hour, its way as five stages, its conditions,
    its partitions. ``alone``: it is the only one, so its hour is at the page's top."""
    ill = any(one.level == "ill" for one in conditions)
    passing = [one for one in conditions if one.level != "ill"]
    course = history.pipeline_course(p["pipeline"])
    return tag(
        "details",
        tag("summary", *_line(p, history, course)),
        None if alone else courses(course),
        _stages(p, history),
        None if (cuts := p["cuts"]) is None else tag("p", last_cut(cuts), class_="quiet"),
        tag("ul", *map(_condition, passing), class_="troubles") if passing else None,
        _partitions(p),
        _without_news(p),
        class_="pipeline ill" if ill else "pipeline",
        open=alone or ill,
        data_keep=f"pipeline {p['pipeline']}",
    )


def _line(p: doc.Pipeline, history: History, course: PipelineCourse | None) -> Iterator[Html]:
    rates = (history.rows_rate(p["pipeline"], t["target"]) or 0.0 for t in p["targets"])
    rate = sum(rates)
    yield tag("b", name(p["pipeline"]))
    yield tag("span", _state(p, rate), class_="state")
    yield tag("span", f"{short(rate)} rows/s")
    yield tag("span", f"lag {behind(p)}")
    yield tag("span", f"freshness {duration(p['freshness_seconds'])}")
    if (left := time_left(p, course)) is not None:
        yield tag("span", left, class_="left")


def _state(p: doc.Pipeline, rate: float) -> str:
    if p["failure"]:
        return "stopped"
    if p["stage"] != "running":
        return p["stage"]
    if not p["assigned"]:
        return "no partitions assigned yet"
    if p["paused_by_a_person"] is not None:
        return "paused"
    return "running" if rate or p["lag_messages"] else "idle"


BEHIND_S = 30.0
"""A lag from which on people want to know when it ends."""


def time_left(p: doc.Pipeline, course: PipelineCourse | None) -> str | None:
    """When it will be caught up; None where it is, as good as, or does not run."""
    if p["failure"] or p["stage"] != "running" or (p["lag_seconds"] or 0.0) < BEHIND_S:
        return None
    left_s = None if course is None else course.left_s
    return "the lag does not fall" if left_s is None else f"caught up in about {duration(left_s)}"


MOST_NAMED = 200
"""Targets without news that are named."""


def _without_news(p: doc.Pipeline) -> Html | None:
    """Targets that an earlier run has written and that had no change since the start."""
    if not (names := p["targets_without_news"]):
        return None
    more = len(names) - MOST_NAMED
    listed = [tag("li", name(each)) for each in names[:MOST_NAMED]]
    return tag(
        "details",
        tag("summary", f"{counted(len(names), 'target')} without a change since the start"),
        tag("ul", *listed, tag("li", f"and {more:,} more") if more > 0 else None),
        data_keep=f"quiet {p['pipeline']}",
    )


def _condition(one: Condition) -> Html:
    command = code(one.command) if one.command else None
    return tag("li", name(one.subject and f"{one.subject}: "), name(one.line), " ", command)


def _stages(p: doc.Pipeline, history: History) -> Html:
    reads = history.messages_rate(p["pipeline"])
    rates = {
        t["target"]: history.rows_rate(p["pipeline"], t["target"]) or 0.0 for t in p["targets"]
    }
    writing = f"{p['writes_in_flight']} in flight"
    if (oldest := p["oldest_write_seconds"]) is not None:
        writing += f", oldest {duration(oldest)}"
    away = p["broker_unreachable_seconds"] is not None or p["log_ends_unknown_seconds"] is not None
    return tag(
        "ol",
        _stage("Kafka", _count(len(p["partitions"])), _log(p), away),
        _stage("Reading", f"{short(reads)} messages/s", _reading(p), p["paused"], bool(reads)),
        _stage(
            "Processors",
            f"{size(p['buffered_bytes'])} buffered",
            f"{size(p['staged_bytes'])} staged" + (", the budget is used up" if p["held"] else ""),
            p["held"],
            bool(p["buffered_messages"]),
        ),
        _stage("Writers", writing, _held(p), _failing(p), bool(p["writes_in_flight"])),
        _stage(
            "Sinks",
            f"{short(sum(rates.values()))} rows/s",
            ", ".join(sorted({target.split(".")[0] for target in rates})) or "no target yet",
            False,
            any(rates.values()),
        ),
        class_="way",
    )


def _stage(title: str, main: str, beside: str, ill: bool, flows: bool = False) -> Html:
    classes = ("stage", "ill" if ill else "", "flows" if flows else "")
    return tag(
        "li",
        tag("b", title),
        tag("span", main),
        name(beside, "quiet"),
        class_=" ".join(filter(None, classes)),
    )


def _log(p: doc.Pipeline) -> str:
    if p["broker_unreachable_seconds"] is not None:
        return f"no broker for {duration(p['broker_unreachable_seconds'])}"
    if waiting := p["messages_awaiting_schemas"]:
        return f"{messages(waiting)} waiting for a schema"
    return f"lag: {behind(p)}"


def _reading(p: doc.Pipeline) -> str:
    if p["paused"]:
        return "paused"
    return f"{short(p['messages_read'])} in all"


def _failing(p: doc.Pipeline) -> bool:
    return any(t["last_error"] and t["last_error"]["lasting"] for t in p["targets"])


def _held(p: doc.Pipeline) -> str:
    """The target that holds most messages back."""
    held = [part["held_by"] for part in p["partitions"] if part["held_by"]]
    if not held:
        return "nothing waits"
    most = max(held, key=lambda holder: holder["messages"])
    return f"{most['target']} holds {messages(most['messages'])}"


def _count(partitions: int) -> str:
    return counted(partitions, "partition")


def _partitions(p: doc.Pipeline) -> Html | None:
    if not p["partitions"]:
        return None
    head = ("partition", "frontier", "read to", "log end", "lag", "held by")
    rows = [
        tag(
            "tr",
            tag("td", name(part["source"])),
            *(tag("td", f"{part[at]:,}", class_="n") for at in ("frontier", "position")),
            tag("td", log_end(part, "{:,}".format), class_="n"),
            tag("td", behind(part)),
            tag("td", name(part["held_by"]["target"]) if part["held_by"] else "-"),
        )
        for part in p["partitions"]
    ]
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *rows),
    )
    return tag(
        "details",
        tag("summary", _count(len(rows))),
        tag("div", table, class_="wide"),
        data_keep=f"partitions {p['pipeline']}",
    )
