"""Finds the names of targets in a statement, and spells them as its sink does. Pure.

Only names are looked for: texts, comments and other identifiers stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from changes.model.model import TargetName

_PART = r'(?:[^\W\d][\w$-]*|`(?:[^`]|``)*`|"(?:[^"]|"")*")'
_OTHERS = r"--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'"
_WITH_BACKSLASHES = r"--[^\n]*|#[^\n]*|/\*.*?\*/|(\A)\Z|'(?:[^'\\]|\\.|'')*'"
"""In texts of MySQL a backslash takes the next sign along."""


def _pattern(backslashes: bool) -> re.Pattern[str]:
    others = _WITH_BACKSLASHES if backslashes else _OTHERS
    return re.compile(rf"(?:{others})|(?P<name>{_PART}(?:\s*\.\s*{_PART})*)", re.DOTALL)


def sinks_in(sql: str, sinks: Collection[str]) -> list[str]:
    """The sinks that names in the statement begin with, in the order of the configuration."""
    found = {_parts(each["name"])[0] for each in _named(sql, False)}
    return [sink for sink in sinks if sink in found]


def spelt(
    sql: str, sink: str, spell: Callable[[TargetName], str], backslashes: bool
) -> tuple[str, list[TargetName]]:
    """The statement with each target of the sink as ``spell`` has it, and these targets."""
    targets: dict[TargetName, None] = {}

    def replace(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        parts = _parts(found["name"])
        if len(parts) < 3 or parts[0] != sink:
            return found[0]
        target = TargetName(*parts[:3])
        targets[target] = None
        written = re.findall(_PART, found["name"])
        return ".".join([spell(target), *written[3:]])

    return _pattern(backslashes).sub(replace, sql), list(targets)


def _named(sql: str, backslashes: bool) -> list[re.Match[str]]:
    found = _pattern(backslashes).finditer(sql)
    return [each for each in found if each["name"] is not None and "." in each["name"]]


def _parts(name: str) -> list[str]:
    """The parts of a name, without their quotes."""
    return [_plain(part) for part in re.findall(_PART, name)]


def _plain(part: str) -> str:
    sign = part[0]
    return part[1:-1].replace(sign * 2, sign) if sign in '`"' else part
