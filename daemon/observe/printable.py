"""Makes text safe for a log or a terminal: only our own line ends act as commands.

Names of tables and texts of errors come from others. A line end in one would start a line that
looks like an event of ours, an escape sequence changes what a terminal shows, and half a character
(a lone surrogate) can't be written at all.
"""

from __future__ import annotations

import re
from typing import Any

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, line ends, characters that turn the direction of text, lone surrogates."""


def printable(text: str) -> str:
    r"""The text with such characters spelt as Python spells them: ``\n``, ``\x1b``."""
    return _UNPRINTABLE.sub(_spelt, text)


def printable_lines(text: str) -> str:
    """A text of several lines, such as a traceback: indented, so that no line looks like an
    event."""
    return "\n".join(f"  {printable(line)}" for line in text.split("\n"))


def printable_event(_: Any, __: str, event: Any) -> Any:
    """A structlog processor for ``ConsoleRenderer``, which writes texts unchanged."""
    return {key: _value(key, value) for key, value in event.items()}


def _value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value  # shown by ``repr``, which escapes them itself
    return printable_lines(value) if key in ("exception", "stack") else printable(value)


def _spelt(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
