"""Numbers and commands as the page writes them, and what of a target is not well. Pure."""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping
from typing import Any

from actors.contract.figures import bare
from changes.model.printable import printable
from daemon.admin.status.result_tables import duration
from daemon.admin.status.status_table import size

BEHIND_S = 300.0
"""A target that is further behind is shown as not well. A calm target is behind for seconds."""


def short(number: float | None) -> str:
    """``950``, ``1.2k``, ``3.4M``; ``-`` when unknown."""
    if number is None or number != number:
        return "-"
    for limit, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if number >= limit:
            return f"{number / unit:.1f}{name}"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def behind(item: Mapping[str, Any]) -> str:
    """The lag of a pipeline, partition or target."""
    if item["lag_messages"] is None:
        oldest = item["lag_seconds"]
        return f"unknown, at least {duration(oldest)}" if oldest else "unknown"
    if not item["lag_messages"]:
        return "none"
    return f"{duration(item['lag_seconds'])} ({short(item['lag_messages'])} messages)"


def not_well(target: Mapping[str, Any]) -> str | None:
    """Why a target is not well, in one line; None where it is."""
    error, quarantine = target["last_error"], target["quarantine"]
    if quarantine is not None:
        return f"in quarantine: {bare(target['target'], quarantine['reason'])}"
    if target["away"] is not None:
        return away_words(target)
    if error and error["lasting"]:
        return bare(target["target"], error["reason"])
    if target["phase"] == "stopped":
        return "stopped"
    if target["rows_may_differ"]:
        return f"stored rows may differ: {target['rows_may_differ']}"
    if (target["lag_seconds"] or 0.0) > BEHIND_S:
        return f"{duration(target['lag_seconds'])} behind"
    return None


def away_words(target: Mapping[str, Any]) -> str:
    """Since when a target's sink is away, what is kept for it, and what ends that."""
    away = target["away"]
    since = "" if away["seconds"] is None else f" for {duration(away['seconds'])}"
    kept = f"{away['messages']:,} messages, {size(away['bytes'])} kept"
    kept += ", no room for more" if away["full"] else ""
    then = "is catching up" if away["catching_up"] else "goes on by itself once the sink answers"
    return f"away{since}: {kept}; it {then}: {bare(target['target'], away['reason'])}"


def quoted(name: str) -> str:
    r"""A name as a shell's word. One with characters that a page can't show is written as
    ``$'…'``, with ``\\u`` in their place."""
    if printable(name) == name:
        return shlex.quote(name)
    spelt = "".join(
        {"\\": "\\\\", "'": "\\'"}.get(char, char)
        if printable(char) == char
        else f"\\U{ord(char):08x}"
        for char in name
    )
    return f"$'{spelt}'"


# Makes HTML out of values. A text is escaped wherever it stands: only ``Html`` is taken as it is.

VOID = frozenset({"input", "meta", "line", "rect", "path", "circle"})
"""Elements without content. The SVG ones among them are closed by themselves."""


class Html(str):
    """Markup that is safe as it is. Made by ``tag`` and ``join`` alone."""

    __slots__ = ()


Part = str | int | float | None
"""A text, a number, markup; None is left out."""


def tag(name: str, /, *content: Part, **attributes: Part | bool) -> Html:
    """An element. ``class_`` is ``class``, ``view_box`` is ``view-box``; an attribute that is None
    or False is left out, one that is True has no value."""
    head = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        head += f" {key}" if value is True else f' {key}="{_text(value)}"'
    if name in VOID:
        return Html(f"<{head}/>")
    return Html(f"<{head}>{join(*content)}</{name}>")


def join(*content: Part) -> Html:
    """Parts beside each other."""
    return Html("".join(part if isinstance(part, Html) else _text(part) for part in content))


def name(text: str, class_: str | None = None) -> Html:
    """A name or text of others: its direction ends with it."""
    return tag("bdi", text, class_=class_)


def _text(value: Part | bool) -> str:
    return "" if value is None else html.escape(printable(str(value)), quote=True)
