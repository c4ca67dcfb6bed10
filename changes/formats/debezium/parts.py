"""Parses the parts of a Debezium record: members of objects, schema blocks, the record's key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
from msgspec import Raw

from changes.formats.debezium.layout import NULL
from changes.formats.debezium.types import Field
from changes.formats.engine.format import packed_header, unpack
from changes.formats.engine.json_text import why_not, with_text_for_bare_numbers
from changes.formats.engine.layout import Refused
from changes.model.places import TransactionEnd

Members = Mapping[str, Raw]

OLD_KEY = "__debezium.oldkey"
"""The header on the second half of a key change."""

NEW_KEY = "__debezium.newkey"
"""The header on its first half."""

WRAPPED = frozenset(("schema", "payload"))
"""What JsonConverter puts around a key or value, with ``schemas.enable``."""

NOT_COLUMNS = "__dbz__"
"""Keys get such members where topics were merged: they name the physical table."""

_members = msgspec.json.Decoder(dict[str, Raw])
_field = msgspec.json.Decoder(Field | None)


@dataclass(frozen=True)
class Key:
    """A record's key: its columns, and their types where it has a schema."""

    text: bytes
    members: Members
    field: Field | None
    prefix: bytes | None
    """The bytes before its payload, as in ``Record``."""

    @cached_property
    def columns(self) -> Members:
        """What of it is columns of the table."""
        return {n: raw for n, raw in self.members.items() if not n.startswith(NOT_COLUMNS)}


def members(text: bytes, what: str) -> Members:
    """An object's members. The bare NaN and Infinity of JsonConverter become text."""
    try:
        text.decode()  # the decoder does not check what stays raw
        try:
            return _members.decode(text)
        except msgspec.DecodeError:
            return _members.decode(with_text_for_bare_numbers(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            f"{what} is not an object of Debezium's JSON: {why_not(text, error)}"
        ) from error


def field_of(raw: Raw | None, whose: str) -> Field | None:
    """A schema block. Raises Refused where it is not Connect's: values would lose their types, and
    a number of days would be stored as text."""
    try:
        return None if raw is None else _field.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the schema of the {whose} can't be read: {error}") from error


def key_of(packed: bytes, *, lenient: bool = False) -> Key | None:
    """The record key, None where there is none.

    Raises Refused where it is no object; None with ``lenient``.
    """
    text = unpack(packed).key
    if text is None or text.strip() in (b"", NULL):
        return None
    try:
        top = members(text, "the record key")
        if not (top.keys() <= WRAPPED and "payload" in top):
            return Key(text, top, None, b"")
        payload = bytes(top["payload"])
        if payload == NULL:
            return None
        inner = members(payload, "the record key")
        return Key(text, inner, field_of(top.get("schema"), "key"), prefix_of(text, payload))
    except Refused:
        if lenient:
            return None
        raise


def announces(packed: bytes) -> bool:
    """Whether a record's headers mark it as half of a key change."""
    return any(packed_header(packed, name) is not None for name in (NEW_KEY, OLD_KEY))


def columns_of(field: Field | None) -> Mapping[str, Field]:
    """The fields of a structure's schema by their names."""
    fields = field.fields if field is not None and field.fields else ()
    return {each.field: each for each in fields if each.field}


def prefix_of(value: bytes, payload: bytes) -> bytes | None:
    """What is before the payload of a value that ends with it."""
    if not value.endswith(b"}"):
        return None
    body = value[:-1].rstrip()
    return body[: len(body) - len(payload)] if body.endswith(payload) else None


# Recognises records of Debezium's side topics: transactions, heartbeats, notifications.

_TIMES = frozenset(("ts_ms", "ts_us", "ts_ns"))
_TRANSACTION = frozenset(("status", "id", "event_count"))
_NOTIFICATION = frozenset(("id", "aggregate_type", "type", "additional_data"))
_CLOUD_EVENT = frozenset(("id", "source", "specversion", "data"))
_OURS = "io.debezium."
"""Begins the names of their schemas; those of rows begin with the connector's topic prefix."""


def side_topic(found: Mapping[str, Raw], schema_name: str | None) -> str | None:
    """The kind of a side topic's record, None where it may be a row.

    A row's columns may have the same names: so it must have no other members than the known ones,
    and its schema must not be a row's. Raises Refused for a CloudEvents record.
    """
    names = found.keys()
    if names >= _CLOUD_EVENT:
        raise Refused("a CloudEvents record, which is not read; use JsonConverter")
    if schema_name is not None and not schema_name.startswith(_OURS):
        return None
    if _TRANSACTION <= names <= _TRANSACTION | _TIMES | {"data_collections"}:
        return "transaction" if bytes(found["status"]) in (b'"BEGIN"', b'"END"') else None
    if names & _TIMES and names <= _TIMES | {"serverName"}:
        return "heartbeat"
    if _NOTIFICATION <= names <= _NOTIFICATION | {"timestamp"}:
        return "notification"
    return None


def ended(found: Mapping[str, Raw]) -> TransactionEnd | None:
    """The transaction that ends with a record of the topic of transactions; None: it is none, or
    the beginning of one. Where a connector restarts, an end may come again: nothing is between."""
    if not found.keys() >= _TRANSACTION or bytes(found["status"]) != b'"END"':
        return None
    try:
        name = msgspec.json.decode(found["id"], type=str)
        time_ms = msgspec.json.decode(found.get("ts_ms", b"null"), type=int | None)
    except msgspec.DecodeError:
        return None
    return TransactionEnd(name, time_ms)
