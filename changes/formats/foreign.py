"""Recognises envelopes of writers that binlogd does not read, so that errors can name them."""

from __future__ import annotations

from changes.decoding.glance import Members, is_list, is_object, members, word

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
