"""What waits for a person: quarantines, dead letters, doubted rows, each with its command. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actors.contract.figures import bare
from daemon.admin.page.format import Html, join, name, quoted, tag
from daemon.admin.page.history import Seen
from daemon.admin.status.result_tables import duration
from daemon.admin.status.status_table import size

MOST = 50
"""Entries of one kind that are listed. The table of targets finds the others."""


def matters_section(status: Mapping[str, Any]) -> Html | None:
    """The list, or None while nothing waits."""
    entries = [
        *_pauses(status),
        *_few(_quarantines(status), "tables list"),
        *_letters(status),
        *_few(_doubted(status), "tables list"),
    ]
    if not entries:
        return None
    return tag("section", tag("h2", "Waits for you"), tag("ul", *entries, class_="matters"))


def errors_section(errors: Sequence[Seen], now_ms: int) -> Html | None:
    """The last errors of the targets, the newest first."""
    if not errors:
        return None
    head = ("when", "target", "error")
    rows = [
        tag(
            "tr",
            tag("td", f"{duration(max(0, now_ms - error.time_ms) / 1000)} ago"),
            tag("td", name(error.target)),
            tag("td", name(bare(error.target, error.reason)), class_="why"),
        )
        for error in errors
    ]
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *rows),
    )
    return tag("section", tag("h2", "Last errors"), tag("div", table, class_="wide"), id="errors")


def _few(entries: Iterator[Html], command: str) -> Iterator[Html]:
    """The first ones, and how many more there are."""
    every = list(entries)
    yield from every[:MOST]
    if len(every) > MOST:
        yield tag("li", f"and {len(every) - MOST:,} more: ", tag("code", f"binlogd {command}"))


def _pauses(status: Mapping[str, Any]) -> Iterator[Html]:
    for p in status["pipelines"]:
        if (pause := p["paused_by_a_person"]) is not None:
            since = f"for {duration(pause['seconds'])}"
            said = f"binlogd resume {quoted(p['pipeline'])}"
            yield _entry(p["pipeline"], "is paused", pause["reason"] or None, since, said)
    for target, pause in status["paused_targets"].items():
        since = f"for {duration(pause['seconds'])}"
        said = f"binlogd resume {quoted(target)}"
        yield _entry(target, "is paused", pause["reason"] or None, since, said)


def _quarantines(status: Mapping[str, Any]) -> Iterator[Html]:
    for p in status["pipelines"]:
        for t in p["targets"]:
            if (q := t["quarantine"]) is None:
                continue
            kept = f"{q['messages']:,} messages, {size(q['bytes'])} kept"
            kept += ", no room for more" if q["full"] else ""
            kept += ", being released" if q["releasing"] else ""
            why = bare(t["target"], q["reason"])
            yield _entry(t["target"], "in quarantine", why, kept, _tables("retry", t["target"]))


def _letters(status: Mapping[str, Any]) -> Iterator[Html]:
    for p in status["pipelines"]:
        letters, of = p["dead_letters"], f"--pipeline {quoted(p['pipeline'])}"
        if letters["error"]:
            what = f"{letters['waiting']:,} wait for the store"
            said = f"binlogd dead-letters list {of}"
            yield _entry(p["pipeline"], "the dead-letter store fails", letters["error"], what, said)
        elif letters["stored"]:
            what = f"{letters['stored']:,} stored since the start"
            said = f"binlogd dead-letters list {of} --state open"
            then = f"binlogd dead-letters replay {of} --all"
            yield _entry(p["pipeline"], "dead letters", None, what, said, then)


def _doubted(status: Mapping[str, Any]) -> Iterator[Html]:
    for p in status["pipelines"]:
        for target, what in p["rows_may_differ"].items():
            said = f"{_tables('verify', target)} --repair"
            yield _entry(target, "stored rows may differ from the source's", what, None, said)


def _tables(command: str, target: str) -> str:
    return f"binlogd tables {command} {quoted(target)}"


def _entry(who: str, what: str, why: str | None, kept: str | None, *commands: str) -> Html:
    return tag(
        "li",
        tag("b", name(who)),
        f" {what}",
        join(": ", name(why)) if why else None,
        tag("span", f" ({kept})", class_="quiet") if kept else None,
        *(tag("code", command) for command in commands),
    )
