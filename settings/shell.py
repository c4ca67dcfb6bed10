"""Names as words of a shell, for commands that a message prints: whatever is in a name, the command
that is pasted means it."""

from __future__ import annotations

import glob
import shlex


def quoted(name: object) -> str:
    r"""A name, or a path, as one word. One with characters that can't be shown is written as
    ``$'…'``, with ``\U`` in their place."""
    text = str(name)
    if text.isprintable():
        return shlex.quote(text)
    spelt = "".join(
        {"\\": "\\\\", "'": "\\'"}.get(char, char) if char.isprintable() else f"\\U{ord(char):08x}"
        for char in text
    )
    return f"$'{spelt}'"


def quoted_pattern(name: object) -> str:
    """A name as one word where a command takes a pattern (``tables load``, ``tables verify``): it
    matches this name alone."""
    return quoted(glob.escape(str(name)))
