"""Finds the label of an enumeration or set that a text names, as servers compare them.

A server compares by the column's collation, which no message tells. Without a strict ``sql_mode``
it also takes a list with two labels that are one to the collation; the first of them then counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_LAST_OF_PLANE = "\uffff"
_ALIKE = str.maketrans(
    {"\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d", "\u0127": "h", "\u0131": "i",
     "\u00e6": "ae", "\u0153": "oe", "\u00fe": "th"}
    | {chr(katakana): chr(katakana - 0x60) for katakana in range(0x30A1, 0x30F7)}
)  # fmt: skip
"""What collations take for other letters and no decomposition tells."""


def place_of(text: str, labels: Sequence[str]) -> int | None:
    """The place of the label, from 0; None where it is none of them, or may be several."""
    folded = [_folded(label) for label in labels]
    label = _folded(text.rstrip(" "))
    return folded.index(label) if folded.count(label) == 1 else None


def _folded(label: str) -> str:
    """One text for all labels that some collation takes for one: without case, accents and width.

    Old collations take all letters beyond the basic plane for one.
    """
    letters = unicodedata.normalize("NFKD", label)
    kept = (letter for letter in letters if not unicodedata.combining(letter))
    folded = "".join(kept).casefold().translate(_ALIKE)
    return "".join(min(letter, _LAST_OF_PLANE) for letter in folded)
