"""Decides whether another table could lead to a target, by a route's patterns and template. Pure.

A template with both names leaves a few tables for a target, and each is checked. Where it leaves a
name out, the patterns decide whether any table has such names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from changes.model.model import TargetName

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""Stands for one of the source's names in a template."""


class Named(NamedTuple):
    """A table as far as a target's name has it. None: the template leaves that name out."""

    database: str | None
    table: str | None


def tables_of(template: str, target: TargetName) -> Iterator[Named]:
    """The tables that the template leads to the target."""
    found: list[dict[str, str]] = [{}]
    for part, name in zip(template.split("."), target, strict=True):
        # Literal text and placeholders' names, in turn.
        pieces = PLACEHOLDER.split(part)
        found = [more for names in found for more in _spell(pieces, name, names)]
    for names in found:
        yield Named(names.get("database"), names.get("table"))


def _spell(pieces: Sequence[str], text: str, names: dict[str, str]) -> Iterator[dict[str, str]]:
    """Each way to read a text by its template, with the names that are known from before."""
    literal, *rest = pieces
    if not text.startswith(literal):
        return
    text = text[len(literal) :]
    if not rest:
        if not text:
            yield names
        return
    name, *left = rest
    for end in range(len(text) + 1):
        if names.get(name, text[:end]) == text[:end]:
            yield from _spell(left, text[end:], {**names, name: text[:end]})


def patterns_meet(pattern: str, named: Named) -> Iterator[Named]:
    """The tables of a pattern among these: each name as far as pattern or target have it."""
    for database, table in _halves(pattern):
        found = Named(_meet(database, named.database), _meet(table, named.table))
        if "" not in found:
            yield found


def covers(pattern: str, named: Named) -> bool:
    """Whether a pattern takes all tables of those names, whatever the others are."""
    return any(
        all(
            half == "*" if name is None else fnmatchcase(name, half)
            for half, name in zip(halves, named, strict=True)
        )
        for halves in _halves(pattern)
    )


def _meet(pattern: str, name: str | None) -> str | None:
    """The common name; None where neither has one, empty where they differ."""
    if name is not None:
        return name if fnmatchcase(name, pattern) else ""
    return None if any(sign in pattern for sign in "*?[") else pattern


def _halves(pattern: str) -> Iterator[tuple[str, str]]:
    """A pattern as one of the database and one of the table: at its dot, or else at each star."""
    database, dot, table = pattern.partition(".")
    if dot:
        yield database, table
        return
    for place, sign in enumerate(pattern):
        if sign == "*":
            yield pattern[: place + 1], pattern[place:]
