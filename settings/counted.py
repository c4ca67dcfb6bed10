"""Numbers with what they count, as people write them."""

from __future__ import annotations


def counted(number: int, one: str, more: str = "") -> str:
    """``1 table``, ``1,200 tables``. ``more``: the plural, where it is not ``one`` with an s, such
    as of a phrase with its verb (``message waits``, ``messages wait``)."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"
