"""Names and texts between signs, as SQL has them. Pure."""

from __future__ import annotations


def quoted(text: str, sign: str = "'") -> str:
    """A text between two signs, which stands twice where it is in it."""
    return sign + text.replace(sign, sign * 2) + sign
