"""Makes HTML out of values. Pure."""

from __future__ import annotations

import html

from changes.model.printable import printable

# A text is escaped wherever it stands: only ``Html`` is taken as it is.

VOID = frozenset({"input", "meta", "link", "line", "rect", "path", "circle"})
"""Elements without content. The SVG ones among them are closed by themselves."""


class Html(str):
    """Markup that is safe as it is. Made in this module alone."""

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


def code(text: str) -> Html:
    """A command to copy. No line ends behind a word's dash: ``--`` alone would mean another."""
    words = (tag("span", word) if "-" in word else _text(word) for word in text.split(" "))
    return tag("code", Html(" ".join(words)))


def _text(value: Part | bool) -> str:
    return "" if value is None else html.escape(printable(str(value)), quote=True)
