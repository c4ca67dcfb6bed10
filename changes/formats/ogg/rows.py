"""Reads GoldenGate's row messages: the row, and the replaced values of an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw, Struct, UnsetType

from changes.decoding.json_rows import Row
from changes.decoding.json_text import why_not
from changes.decoding.layout import Refused
from changes.model import TableName

LETTERS = {"I": "I", "U": "U", "D": "D", "PK": "U"}
"""The letter of a change by ``op_type``; PK is a changed key in older handlers."""


class Message(Struct, gc=False):
    """A message with nothing assumed about its columns."""

    table: str | None = None
    op_type: str = ""
    op_ts: Any = None
    primary_keys: Raw = Raw()
    before: dict[str, Raw] | None = None
    after: dict[str, Raw] | None = None


_message = msgspec.json.Decoder(Message)
_key_names = msgspec.json.Decoder(list[str] | None)


class OggDialect:
    """The ``Dialect`` of GoldenGate."""

    letters: Mapping[str, str] = LETTERS
    deletes_by_was = True
    drops_nulls = False

    def message(self, row: type[Struct]) -> type[Struct]:
        image: Any = row
        fields: list[tuple[str, Any, Any]] = [
            ("kind", str, ""),
            ("now", image | None | UnsetType, None),
            ("was", image | None | UnsetType, None),
            ("names", Raw, Raw()),
            ("odd", None, None),
        ]
        # No member's name ends in a space, so ``odd`` is always None.
        names = {
            "kind": "op_type",
            "now": "after",
            "was": "before",
            "names": "primary_keys",
            "odd": "odd ",
        }
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    def bodies(self, values: Sequence[bytes]) -> Sequence[bytes]:
        return values

    def key_texts(self, names: Sequence[Raw], values: Sequence[bytes]) -> Sequence[bytes]:
        if names.count(names[0]) == len(names):
            return (bytes(names[0]),)
        return list(map(bytes, names))

    def read(self, value: bytes) -> Row:
        message = read_message(value)
        if message.op_type not in LETTERS:
            raise Refused(f"unknown op_type {message.op_type!r}")
        op = LETTERS[message.op_type]
        row = message.before if op == "D" else message.after
        if row is None:
            image = "before" if op == "D" else "after"
            raise Refused(f"a message of op_type {message.op_type} without {image}")
        was = message.before if op == "U" else None
        return Row(op, row, was, bytes(message.primary_keys), _keys(message.primary_keys))

    def table_of(self, value: bytes) -> TableName | None:
        try:
            return table_name(read_message(value).table)
        except Refused:
            return None


def read_message(value: bytes) -> Message:
    """Raises Refused where the value is no such message."""
    try:
        return _message.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a GoldenGate message: {why_not(value, error)}") from error


def table_name(name: str | None) -> TableName | None:
    """``SCHEMA.TABLE``, or with a container before it, which then belongs to the schema's name."""
    schema, _, table = (name or "").rpartition(".")
    return TableName(schema, table) if schema and table else None


def moment(op_ts: object, zone: str) -> int | None:
    """When the change happened, in milliseconds: the database's clock, read in its zone."""
    if not isinstance(op_ts, str):
        return None
    try:
        when = datetime.fromisoformat(op_ts)
        if when.tzinfo is None:
            when = when.replace(tzinfo=ZoneInfo(zone))
        return round(when.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _keys(names: Raw) -> tuple[str, ...]:
    try:
        return tuple(_key_names.decode(names) or ()) if bytes(names) else ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"primary_keys is not a list of names: {error}") from error
