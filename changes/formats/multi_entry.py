"""The head of a message of many entries."""

from __future__ import annotations

from collections.abc import Iterable

from changes.model import Head, Kind, TableName

_NOTHING = Head(Kind.NOTHING, None)
_DDL = Head(Kind.DDL, None)
_MULTI_ENTRY = Head(Kind.MULTI_ENTRY, None)


def head_of(entries: Iterable[tuple[Kind, TableName]]) -> Head:
    """One head for a message: its rows' one table, or MULTI_ENTRY where it has to be split.

    All entries are read, so an error in the last one is found before the first is dispatched.
    """
    found = {each for each in entries if each[0] is not Kind.NOTHING}
    if not found:
        return _NOTHING
    if len(found) == 1:
        kind, table = found.pop()
        return Head(kind, table) if kind is Kind.ROWS else _DDL
    return _DDL if all(kind is Kind.DDL for kind, _ in found) else _MULTI_ENTRY
