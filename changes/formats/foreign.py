"""Recognises envelopes of writers that binlogd does not read, and objects that can't be a row.

Taken for a row without an envelope, such an object would be written as a row of its outermost
members.
"""

from __future__ import annotations

from changes.decoding.glance import Members, is_list, is_object, members, word

_DMS = frozenset(("record-type", "operation"))
_DATAWORKS = "the JSON of Aliyun DataWorks"
_STRUCTURES = ({"wkb"}, {"scale", "value"}, {"dimensions", "vector"})
"""The members of Debezium's geometries, decimals of any scale and sparse vectors."""
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


def nested_member(found: Members) -> str | None:
    """The first member that no flattened row of Debezium's can have, None where there is none.

    A row's values are scalars or lists, except for the structures of a few Debezium types.
    """
    for name, raw in found.items():
        if is_object(found, name) and not any(members(raw).keys() >= s for s in _STRUCTURES):
            return name
    return None
