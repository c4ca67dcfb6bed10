"""Texts for a TOML file: strings, and comments with names of others. Pure."""

from __future__ import annotations

import json

from changes.printable import printable


def quote(text: str) -> str:
    """A basic string. JSON's escapes are TOML's; one character is not escaped there."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """A comment of one line, whatever the text: no name of a table can end it."""
    return f"# {printable(text)}"
