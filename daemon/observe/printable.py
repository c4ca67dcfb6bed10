"""Text for a log or a terminal in which nothing but our own line ends is a command.

Names of tables and the texts of errors come from others. A line end in one would begin a line that
looks like an event of ours, an escape sequence changes what a terminal shows, and half a
character (a lone surrogate) can't be written at all.
"""

from __future__ import annotations

import re
from typing import Any

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, what ends lines, what turns the direction of text, and lone surrogates."""


def printable(text: str) -> str:
    r"""The text with such characters spelt as Python spells them: ``\n``, ``\x1b``."""
    return _UNPRINTABLE.sub(_spelt, text)


def printable_lines(text: str) -> str:
    """A text of several lines, a traceback: each is indented, so none looks like an event."""
    return "\n".join(f"  {printable(line)}" for line in text.split("\n"))


def printable_event(_: Any, __: str, event: Any) -> Any:
    """A processor of structlog: before ``ConsoleRenderer``, which writes texts as they are."""
    return {key: _value(key, value) for key, value in event.items()}


def _value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value  # shown by ``repr``, which spells them so itself
    return printable_lines(value) if key in ("exception", "stack") else printable(value)


def _spelt(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
