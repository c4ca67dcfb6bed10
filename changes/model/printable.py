r"""The one boundary for text from outside: what leaves the process is whole, and can do no harm.

Names of tables, texts of errors, arguments and files come from others. A line end in one would
start a line that looks like an event of ours, an escape sequence changes what a terminal shows, and
half a character (a lone surrogate: ``$'\xff'`` among the arguments, ``"\ud800"`` in JSON) can't be
written as UTF-8 at all: the thread that tries ends.

``printable`` is for people. Where two texts must stay two, ``distinct`` is reversible. JSON is
written by ``json_text``, and a reason is made of an exception by ``reason_of``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import IO, Any

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, line ends, characters that turn the direction of text, lone surrogates."""

_WITHIN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Those that JSON allows in a string as they are."""

_IN_LINES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Those that a text of several lines may not hold: all but tabulators and line ends."""

_HALF = re.compile("[\ud800-\udfff]")

_ESCAPED = re.compile(r"\\(\\|n|r|t|x[0-9a-f]{2}|u[0-9a-f]{4})")


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


def printable_within_lines(text: str) -> str:
    """As ``printable``, for a text of several lines: these stay."""
    return _IN_LINES.sub(_spelt, text)


def distinct(text: str) -> str:
    r"""As ``printable``, with each backslash doubled: other texts give other results, always."""
    return printable(text.replace("\\", "\\\\"))


def original(text: str) -> str:
    """The text of which ``distinct`` made this one."""
    return _ESCAPED.sub(_meant, text)


def reason_of(error: BaseException) -> str:
    """An exception's text for people, in one line; its kind's name where it has none.

    An exception of a function of the user may raise while its text is made.
    """
    try:
        text = str(error)
    except Exception as fault:
        text = f"its text can't be made ({type(fault).__name__})"
    return printable(text) or type(error).__name__


def holds_half(value: object) -> bool:
    """Whether a text in this value, JSON's or an argument, holds half a character: no name of
    anything does, because formats and the configuration refuse it."""
    if isinstance(value, str):
        return not value.isascii() and _HALF.search(value) is not None
    if isinstance(value, Mapping):
        return any(holds_half(key) or holds_half(inner) for key, inner in value.items())
    return isinstance(value, list | tuple) and any(map(holds_half, value))


def json_text(value: Any, indent: int | None = None) -> str:
    r"""JSON with unprintable characters escaped, so that each parser gives back the same.

    Half a character has no such form that others may read: it becomes the text ``\udcff``.
    """
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=indent))


def escaped_json(text: str) -> str:
    """A JSON text with its unprintable characters escaped as by ``json_text``."""
    return _WITHIN_JSON.sub(_as_json, text)


def own_json_text(value: Any, indent: int | None = None) -> str:
    """As ``json_text``, for files that this program alone reads: half characters stay halves."""
    return _WITHIN_JSON.sub(_escaped, json.dumps(value, ensure_ascii=False, indent=indent))


class PrintableStream:
    """Standard output or error of a command, for ``print``: everything in it is text of others."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.rich_proxied_file = stream
        """Where Rich writes, whose escape sequences are our own. See ``PrintableConsole``."""

    def write(self, text: str) -> int:
        """Write it. Raises OSError."""
        self._stream.write(printable_within_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self._stream, name)


def _value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value  # shown by ``repr``, which escapes them itself
    return printable_lines(value) if key in ("exception", "stack") else printable(value)


def _spelt(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def _meant(found: re.Match[str]) -> str:
    spelt = found.group(1)
    return spelt if spelt == "\\" else found.group().encode("ascii").decode("unicode_escape")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _as_json(found: re.Match[str]) -> str:
    return f"\\{_escaped(found)}" if _HALF.match(found.group()) else _escaped(found)
