"""The gates: closed through when, why the next partition is shut, who is not told yet. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.admin.page.format import Html, name, tag
from daemon.admin.status import document as doc
from daemon.admin.status.result_tables import gate_lines
from daemon.admin.status.words import duration


def gates_section(gates: Sequence[doc.GateShown]) -> Html | None:
    """None where no gate is configured."""
    if not gates:
        return None
    head = ("gate", "closed through", "version", "looked at", "not yet, since")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *map(_row, gates)),
    )
    return tag("section", tag("h2", "Gates"), tag("div", table, class_="wide"), id="gates")


def _row(gate: doc.GateShown) -> Html:
    last, looked_s = gate["last"], gate["looked_seconds"]
    return tag(
        "tr",
        tag("td", name(gate["gate"])),
        tag("td", "-" if last is None else last["through"]),
        tag("td", "-" if last is None else str(last["version"]), class_="n"),
        tag("td", "never" if looked_s is None else f"{duration(looked_s)} ago"),
        tag("td", name("; ".join(gate_lines(gate))), class_="why"),
    )
