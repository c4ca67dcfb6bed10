"""What waits for a person, each with the command that leads out; and the last errors. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from actors.contract.figures import bare
from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.page.history import SeenError
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.health import shown
from daemon.admin.status.words import duration

MOST = 50
"""Entries of one kind that are listed. The table of targets finds the others."""


ALSO = {"pipeline_failed": "binlogd reload  # after a change of its configuration"}
"""A second command that leads out, by kind."""


def matters_section(status: doc.Status) -> Html | None:
    """The list, or None while nothing is ill."""
    of_kinds: dict[str, list[Condition]] = {}
    for one in shown(status):
        if one.level == "ill":
            of_kinds.setdefault(one.kind, []).append(one)
    if not of_kinds:
        return None
    entries = [entry for found in of_kinds.values() for entry in _few(found)]
    return tag("section", tag("h2", "Waits for you"), tag("ul", *entries, class_="matters"))


def errors_section(errors: Sequence[SeenError], now_ms: int) -> Html | None:
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


def _few(every: Sequence[Condition]) -> Iterator[Html]:
    """The first ones of a kind, and how many more there are."""
    yield from map(_entry, every[:MOST])
    if len(every) > MOST:
        command = code("binlogd status --json")
        yield tag("li", f"and {len(every) - MOST:,} more of {every[0].kind}: ", command)


def _entry(one: Condition) -> Html:
    return tag(
        "li",
        tag("b", name(one.who)),
        ": ",
        name(one.line),
        tag("span", f" (for {duration(one.seconds)})", class_="quiet") if one.seconds else None,
        code(one.command) if one.command else None,
        code(also) if (also := ALSO.get(one.kind)) else None,
    )
