"""The head of a message of many entries."""

from __future__ import annotations

from collections.abc import Iterable

from changes.formats.engine.json_text import Members, is_list, is_object, members, word
from changes.model.model import Head, Kind, TableName

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


# Recognises envelopes of writers that binlogd does not read, so that errors can name them.

_DMS = frozenset(("record-type", "operation"))
_DATAWORKS = "the JSON of Aliyun DataWorks"
_DMS_TABLE = frozenset(("schema-name", "table-name"))


def foreign(found: Members) -> str | None:
    """The writer of a record by its outermost members, None where it is none of these."""
    if is_object(found, "metadata"):
        inner = members(found["metadata"])
        if inner.keys() >= _DMS and inner.keys() & _DMS_TABLE:
            return "AWS DMS's JSON"
    if is_object(found, "payload"):
        if is_list(members(found.get("schema")), "dataColumn"):
            return _DATAWORKS
        inner = members(found["payload"])
        images = (members(inner.get(name)) for name in ("before", "after"))
        if any(is_object(image, "dataColumn") for image in images):
            return _DATAWORKS
        if word(inner, "op") == "MHEARTBEAT":
            return _DATAWORKS
    return None
