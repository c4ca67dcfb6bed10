"""Refuses names that no target may have: a catalog makes folders of them, maybe another's.

A source's users choose its names, so a target's name is checked before anything is created. One
that leaves the warehouse, or can't be shown, is left out by itself.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache

from changes.model.model import TargetName


def name_problem(name: str) -> str | None:
    """Why a namespace or table in the lake can't be named so, None where it can."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"{name!r} means another folder"
    if "/" in name:
        return f"{name!r} holds a slash, which leads to another folder"
    # Cs: half a character, which no UTF-8 has.
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
        return f"{name!r} holds a control character"
    return None


def target_problem(target: TargetName) -> str | None:
    """The same for a target; its sink's name is from the configuration."""
    for what, name in (("namespace", target.namespace), ("table", target.table)):
        if (problem := name_problem(name)) is not None:
            return f"no {what} in the lake is named so: {problem}"
    return None


# Patterns of tables: ``shop.order_*``, or a regular expression between slashes.

_LITERAL = re.compile(r"\\([^\w\s])|([\w ]|[-_/,;:@#%&=<>!~'\"])")
"""A sign that stands for itself: a letter, a digit, or what a backslash makes one."""


def is_expression(pattern: str) -> bool:
    """Whether a pattern is a regular expression."""
    return len(pattern) > 2 and pattern[0] == pattern[-1] == "/"


@lru_cache(maxsize=1024)
def expression(pattern: str) -> re.Pattern[str]:
    """The expression between the slashes. Raises ValueError."""
    try:
        return re.compile(pattern[1:-1])
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is no regular expression: {error}") from error


def takes(pattern: str, name: str) -> bool:
    """Whether a pattern takes ``database.table``."""
    if is_expression(pattern):
        return expression(pattern).fullmatch(name) is not None
    return fnmatchcase(name, pattern)


def glob_of(pattern: str) -> str:
    """A pattern with stars that takes all that this one takes, and maybe more."""
    if not is_expression(pattern):
        return pattern
    text, literal, at = pattern[1:-1], "", 0
    if "|" in re.sub(r"\\.|\([^()]*\)|\[[^\]]*\]", "", text):
        return "*"
    while found := _LITERAL.match(text, at):
        # An optional or repeated sign is none that all names have.
        if text[found.end() : found.end() + 1] in ("?", "*", "+", "{"):
            break
        literal, at = literal + (found[1] or found[2]), found.end()
    literal = re.sub(r"([*?\[])", r"[\1]", literal)
    return literal if at == len(text) else literal + "*"


def reaches(pattern: str, database: str) -> bool:
    """Whether a pattern matches ``database.x`` for some x: a star may span the dot."""
    return any(
        (sign == "." and fnmatchcase(database, pattern[:place]))
        or (sign == "*" and fnmatchcase(database, pattern[: place + 1]))
        for place, sign in enumerate(pattern)
    )


def covers_database(pattern: str, database: str) -> bool:
    """Whether a pattern matches ``database.x`` for every x."""
    return pattern == "*" or (pattern.endswith(".*") and fnmatchcase(database, pattern[:-2]))
