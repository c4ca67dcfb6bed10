"""NaN and Infinity as bare words, which some producers write though JSON does not have them."""

from __future__ import annotations

import re

_WORDS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b', re.DOTALL)


def with_text_for_bare_numbers(text: bytes) -> bytes:
    """The same JSON with such words as text; what stands inside of text is left alone."""
    if b"NaN" not in text and b"Infinity" not in text:
        return text
    return _WORDS.sub(_quoted, text)


def _quoted(found: re.Match[bytes]) -> bytes:
    return found[0] if found[0].startswith(b'"') else b'"' + found[0] + b'"'
