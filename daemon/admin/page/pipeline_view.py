"""The picture of a pipeline: log, reading, processors, writers, sinks, and what holds it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.admin.page.format import Html, name, tag
from daemon.admin.page.history import History
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.status_table import log_end
from daemon.admin.status.words import behind, duration, short, size


def pipeline_picture(p: doc.Pipeline, history: History, conditions: Sequence[Condition]) -> Html:
    """One pipeline: its way as five stages, its conditions, its partitions."""
    ill = any(one.level == "ill" for one in conditions)
    passing = [one for one in conditions if one.level != "ill"]
    stage = p["stage"] if p["assigned"] else f"{p['stage']}, no partitions assigned yet"
    return tag(
        "section",
        tag("h2", "Pipeline ", name(p["pipeline"]), tag("small", f" {stage}")),
        _stages(p, history),
        tag("ul", *map(_condition, passing), class_="troubles") if passing else None,
        _partitions(p),
        class_="pipeline ill" if ill else "pipeline",
        data_pipeline=p["pipeline"],
    )


def _condition(one: Condition) -> Html:
    command = tag("code", one.command) if one.command else None
    return tag("li", name(one.subject and f"{one.subject}: "), name(one.line), " ", command)


def _stages(p: doc.Pipeline, history: History) -> Html:
    reads = history.messages_rate(p["pipeline"])
    rates = {
        t["target"]: history.rows_rate(p["pipeline"], t["target"]) or 0.0 for t in p["targets"]
    }
    oldest = duration(p["oldest_write_seconds"])
    writing = f"{p['writes_in_flight']} in flight, oldest {oldest}"
    return tag(
        "ol",
        _stage("Kafka", _count(len(p["partitions"])), _log(p), p["lag_messages"] is None),
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
    if p["messages_awaiting_schemas"]:
        return f"{short(p['messages_awaiting_schemas'])} messages wait for a schema"
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
    return f"{most['target']} holds {short(most['messages'])} messages"


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


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
    )
