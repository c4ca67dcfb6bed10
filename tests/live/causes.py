"""Which step of a table's history explains what was said of it: each reason has its rule. Pure.

A reason that no rule knows, or whose rule finds no such step, is as bad as silence: whoever reads
it looks for something that did not happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Past:
    """What happened to a table, under all its names."""

    kinds: frozenset[str] = frozenset()
    """Of the steps that the source accepted."""
    statements: tuple[str, ...] = ()
    """Those of no rows."""
    own: bool = False
    """Somebody else made the target."""
    image: str = "FULL"
    """The row image of the source."""
    planted: bool = False
    """Rows of the target were made to differ."""
    apart: bool = False
    """Its topic has several partitions."""

    def has(self, words: str, name: str = "") -> bool:
        """Whether a statement has some words, by a pattern, and a name."""
        return any(re.search(words, text) and name in text for text in self.statements)


_RENAMES = {"swap", "several_renames", "online", "rename_table", "drop", "copied"}
_CHANGES = r"\b(?:MODIFY|CHANGE|CONVERT|TYPE)\b"
_NEW_TYPES = rf"{_CHANGES}|\b(?:ADD|add|DROP|RENAME)\b"
_OFTEN_MADE = _RENAMES | {"database"}


def _unread(past: Past, found: re.Match[str]) -> bool:
    """The statement that was not followed is one of the table's, as far as it is shown. A reader
    may tell the parts of a RENAME one by one."""
    told = _flat(found.string)
    if re.search(r"\brename table\b", told) and not past.kinds.isdisjoint(_RENAMES):
        return True
    return any(_flat(text)[:40] in told for text in past.statements)


def _flat(text: str) -> str:
    return " ".join(text.split()).lower()


def _of_kinds(*kinds: str) -> Callable[[Past, re.Match[str]], bool]:
    return lambda past, found: not past.kinds.isdisjoint(kinds)


Rule = tuple[str, Callable[[Past, re.Match[str]], bool]]
RULES: Sequence[Rule] = (
    (r"ddl_not_understood: |not understood: |is not followed", _unread),
    (r"a statement not understood at", lambda past, _: bool(past.statements)),
    (r"column (\S+|.+?) from .+ to |NOT NULL over nulls|is computed from|CONVERT TO CHARACTER SET",
     lambda past, found: past.has(_CHANGES, found[1] or "")),
    (r"come[s]? without|lack|was not sent|is not sent|not in the stream",
     lambda past, _: past.image != "FULL" or past.own or past.has(r"(?i)\b(?:ADD|DROP|RENAME)\b")),
    (r"can't become|does not hold|holds \d|does not fit|can't be read as|out of range|too long",
     lambda past, _: past.own or past.has(_NEW_TYPES)
     or not past.kinds.isdisjoint(_OFTEN_MADE)),
    (r"never tried|has no default|trigger|constraint|unique|foreign key|generated|identity|collat"
     r"|domain|enum|ON UPDATE|AUTO_INCREMENT|would be stored|is stored otherwise",
     lambda past, _: past.own),
    (r"took the place of|renamed|in the way|waits until|same target|has its name",
     _of_kinds(*_RENAMES)),
    (r"partitions have no order|another partition", lambda past, _: past.apart),
    (r"others changed rows", lambda past, _: past.planted),
    (r"(?i)\bkey\b", _of_kinds("another_key", *_OFTEN_MADE)),
    (r"DEFAULT|default", lambda past, _: past.own or past.has(r"(?i)\bDEFAULT\b")),
    (r"column", lambda past, _: past.has(r"(?i)\b(?:ADD|DROP|RENAME|CHANGE)\b")),
)  # fmt: skip
"""A reason, and what must have happened."""
NEVER = re.compile(
    r"lacks the right|[Pp]ermission|denied|Traceback|Error\(|KeyError|AssertionError|internal"
)
"""What no statement of a source leads to."""


def is_explained(told: str, past: Past) -> bool:
    """Whether a step of the table's past leads to what was said of it."""
    if NEVER.search(told):
        return False
    return any(
        holds(past, found)
        for words, holds in RULES
        if (found := re.search(words, told, re.DOTALL)) is not None
    )
