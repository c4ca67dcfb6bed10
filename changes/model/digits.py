"""Digits of ASCII: Python's ``isdigit`` and ``int`` also take those of other scripts."""

from __future__ import annotations


def is_digits(text: str) -> bool:
    """Whether a text is one digit of ASCII or more, without sign, blank or underscore."""
    return text.isascii() and text.isdigit()
