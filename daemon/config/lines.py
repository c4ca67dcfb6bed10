"""Finds the line of a TOML file in which a key stands. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The line, from 1, that gives the key, of which ``path`` has all names, outermost first.

    None where the file spells it with escapes, or not at all. TOML's own reader tells no lines: it
    reads the file as far as each line that has the key's name, until the key is there.
    """
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if path[-1] in line and _holds(_read(lines, number), path):
            return number
    return None


def _read(lines: Sequence[str], least: int) -> Any:
    """The file's beginning: so many lines, and as many more as a value over several needs."""
    for end in range(least, len(lines) + 1):
        try:
            return tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
    return {}


def _holds(found: Any, path: Sequence[str]) -> bool:
    for name in path:
        if isinstance(found, list):
            found = dict(enumerate(found)).get(int(name)) if name.isdigit() else None
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return False
    return found is not None
