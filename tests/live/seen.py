"""Which row a message of a reader is about, as far as markers need it. Pure.

Of records with schemas the bytes themselves are looked at, so that no decoder of binlogd's and no
registry stands between what came and what a run believes to have come.
"""

from __future__ import annotations

import json

from tests.live.sources import MARKER
from tests.live.wires import Form

Row = tuple[str, str]
"""A table, and the ``id`` of its row as text."""
_OTHER: Row = ("", "")
"""A change of a table that is no marker."""


def row_of(form: Form, key: bytes | None, value: bytes | None, marker: str = MARKER) -> Row | None:
    """Of a change its table and the ``id`` after it, as text; None of anything else."""
    if value is None:
        return None
    if form.name == "json":
        return _json_row(value)
    if key is None or not _is_of(marker.encode(), form, value):
        return _OTHER
    number = _id(form, key[form.frame :])
    return None if number is None else (marker, str(number))


def _is_of(name: bytes, form: Form, value: bytes) -> bool:
    """Whether the record's source names a table: with its length, as each wire has it, for other
    names may begin like it."""
    if form.name.startswith("avro"):
        return bytes([2 * len(name)]) + name in value
    if form.name.startswith("proto"):
        return bytes([len(name)]) + name in value
    return b'"' + name + b'"' in value


def _id(form: Form, payload: bytes) -> int | None:
    """The key ``id``, an INT that is its only column; None of a statement, whose key is a name."""
    if form.name == "jsonschema":
        found: int | None = json.loads(payload).get("id")
        return found
    if form.name.startswith("avro"):
        number = _varint(payload)
        return None if number is None else number >> 1 ^ -(number & 1)
    return _varint(payload[1:]) if payload[:1] == _FIRST_AS_NUMBER else None


_FIRST_AS_NUMBER = b"\x08"
"""Protobuf's tag of a message's first field, where that is a number."""


def _varint(data: bytes) -> int | None:
    """A number that takes up all of the data; None where something else does."""
    found = 0
    for place, byte in enumerate(data):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return found if place == len(data) - 1 else None
    return None


def _json_row(value: bytes) -> Row | None:
    """Of each reader's JSON."""
    message = json.loads(value)
    payload = message.get("payload", message) if isinstance(message, dict) else None
    if not isinstance(payload, dict):
        return None
    if "op" in payload:  # Debezium
        return payload["source"]["table"], str((payload.get("after") or {}).get("id"))
    data = payload.get("data")
    if isinstance(data, list) and data:  # Canal: rows of one table
        return payload["table"], str(data[-1].get("id"))
    if isinstance(data, dict):  # Maxwell
        return payload["table"], str(data.get("id"))
    return None
