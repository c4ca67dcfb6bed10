"""Mark of a target whose stored rows may differ from the source's: what happened, as a text.

It stays with the target until that is filled again. So it is bounded, and says a thing once.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 6
"""Events that a mark names. What comes after them is in the log: the table is as doubtful as it
can be."""

CHARACTERS = 200
"""Of one event: enough for a table, a column, two types and an offset."""

_BETWEEN = "; "
_MORE = "and more since, which the log names"


def noted(mark: str | None, events: Iterable[str]) -> str | None:
    """The mark after these events; None where nothing ever happened."""
    held = [] if mark is None else mark.split(_BETWEEN)
    for event in map(_short, events):
        if event in held or _MORE in held:
            continue
        held.append(event if len(held) < MOST else _MORE)
    return _BETWEEN.join(held) or None


def names(mark: str | None, event: str) -> bool:
    """Whether the mark names an event, or may: it has no room for all."""
    held = [] if mark is None else mark.split(_BETWEEN)
    return _short(event) in held or _MORE in held


def _short(event: str) -> str:
    """One line of a bounded length, without what separates events."""
    line = " ".join(event.split()).replace(_BETWEEN, ", ")
    return line if len(line) <= CHARACTERS else f"{line[: CHARACTERS - 1]}…"
