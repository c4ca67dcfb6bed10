"""Protobuf as Confluent's converter writes it, and as anybody else does.

A plain field that is not there may be zero or NULL. Where the schema marks what can be NULL (by
``optional`` or a wrapper), it is zero; else a row with such a field is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from google.protobuf import message as protobuf
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from changes.formats.engine.json_text import members
from changes.formats.engine.layout import Refused
from changes.formats.wire.connect import (
    ConnectSchema,
    prefix_of,
    structure,
)
from changes.formats.wire.protobuf_files import ProtobufFiles, class_of, is_wrapper
from changes.formats.wire.protobuf_values import (
    CALENDAR,
    STRUCTURES,
    TIME,
    Read,
    decimal_of,
    plain,
    timestamp,
)
from changes.formats.wire.schemas import Schema
from settings.counted import counted

_WAYS_OUT = (
    'set optional.for.nullables=true in the converter, or options.absent_fields = "zero" where '
    "no such column is ever NULL"
)


@dataclass(slots=True)
class _Message:
    """How the values of one kind of message are read."""

    fields: list[tuple[str, Read]] = field(default_factory=list)
    unmarked: tuple[str, ...] = ()
    """Fields that don't show whether they are there."""

    def read(self, found: Any) -> dict[str, Any]:
        return {name: read(found) for name, read in self.fields}


@dataclass(frozen=True, slots=True)
class _Root:
    """How the payloads of one message of a schema are read."""

    made: Callable[[], Any]
    reader: _Message
    prefix: bytes
    rows: Mapping[str, _Message]
    """The messages of rows, by the name of the member that holds them; "" is the root itself."""


class ProtobufTranslation:
    """Turns the payloads of one Protobuf schema into JSON."""

    def __init__(self, schema: Schema, *, zero: bool = False, instants: bool = False) -> None:
        """``zero``: a plain field that is not there is zero, whatever the schema marks.
        ``instants``: rows are anybody's, and timestamps are moments; else they are Debezium's, with
        local times, as Connect has them, and side topics' messages beside rows.

        Raises Refused for a schema that can't be read.
        """
        self._files = ProtobufFiles(schema)
        self._marked = self._files.has_presence()
        self._zero = zero
        self._instants = instants
        self._roots: dict[tuple[int, ...], _Root] = {}
        self._messages: dict[str, tuple[_Message, ConnectSchema]] = {}

    @property
    def columns(self) -> Mapping[str, str]:
        """None: its names are those of the fields."""
        return {}

    def naming(self, columns: Mapping[str, str]) -> ProtobufTranslation:
        """See ``translation.Translation``."""
        return self

    def wrapped(
        self, data: bytes, begin: int, message: bytes | None, key: bytes | None = None,
        *, is_key: bool = False,
    ) -> bytes:  # fmt: skip
        """See ``translation.Translation``."""
        if message is None:
            place, begin = _message_index(data, begin)
        else:
            place, end = _message_index(message, 0)
            if end != len(message):
                raise Refused("its header has more bytes than a message index")
        root = self._roots.get(place) or self._made(place)
        found = _parsed(root.made(), data[begin:])
        value = root.reader.read(found)
        if not (self._zero or is_key):  # a key's columns are not NULL
            for name, row in root.rows.items():
                self._check_absent(found, value, name, row, key)
        return b"%b%b}" % (root.prefix, msgspec.json.encode(value))

    def one_spelling(self, data: bytes, begin: int, message: bytes | None) -> bool:
        """Whether a value is as serializers write it: the short index of the first message, fields
        in the order of their numbers. The same value may be other bytes."""
        index, at = (data, begin) if message is None else (message, 0)
        place, end = _message_index(index, at)
        if place == (0,) and index[at:end] not in (b"", b"\0"):
            return False
        payload = data[end if message is None else begin :]
        found = _parsed((self._roots.get(place) or self._made(place)).made(), payload)
        return bool(found.SerializeToString(deterministic=True) == payload)

    def _made(self, place: tuple[int, ...]) -> _Root:
        found = self._files.message(place)
        reader, schema = self._message(found)
        named = found.name in ("Key", "Value", "Envelope")
        schema = {**schema, "name": found.full_name} if named else schema
        root = _Root(class_of(found), reader, prefix_of(schema), self._rows(found, reader))
        self._roots[place] = root
        return root

    def _rows(self, found: Descriptor, reader: _Message) -> Mapping[str, _Message]:
        """The messages whose absent fields may be NULLs of a row."""
        fields = found.fields_by_name
        if "op" in fields and "after" in fields:
            kinds = {
                name: fields[name].message_type for name in ("before", "after") if name in fields
            }
            return {name: self._message(kind)[0] for name, kind in kinds.items() if kind}
        side_topics = not self._instants and found.full_name.startswith("io.debezium.")
        return {} if side_topics else {"": reader}

    def _check_absent(
        self, found: Any, value: Any, name: str, row: _Message, key: bytes | None
    ) -> None:
        """Raise Refused where a column may be zero or NULL, and nothing shows which it is."""
        image = value if not name else value[name]
        if image is None:
            return
        unsure = [each for each in row.unmarked if not image[each]]
        if not unsure:
            return
        there = {each.name for each, _ in (getattr(found, name) if name else found).ListFields()}
        unsure = [each for each in unsure if each not in there]
        if unsure and (left := [each for each in unsure if each not in _columns(key)]):
            raise Refused(
                f"column {left[0]} is not there, so it is zero or NULL, which its schema can't "
                f"tell apart: {_WAYS_OUT}"
            )

    # --- kinds of messages

    def _message(self, found: Descriptor) -> tuple[_Message, ConnectSchema]:
        """The reader and the schema of a message; in itself it is a document."""
        if found.full_name in self._messages:
            return self._messages[found.full_name]
        made = _Message()
        self._messages[found.full_name] = made, structure([], None)
        fields, unmarked = [], []
        for each in found.fields:
            read, schema = self._field(each)
            made.fields.append((each.name, read))
            fields.append({**schema, "field": each.name})
            if each.is_repeated or not (self._marked or each.has_presence):
                unmarked.append(each.name)
        made.unmarked = tuple(unmarked)
        names, named = STRUCTURES.get(found.name, ((), ""))
        meant = named if tuple(sorted(found.fields_by_name)) == names else None
        self._messages[found.full_name] = made, structure(fields, meant)
        return self._messages[found.full_name]

    def _field(self, each: FieldDescriptor) -> tuple[Read, ConnectSchema]:
        name = each.name
        if each.message_type is not None and each.message_type.GetOptions().map_entry:
            return self._map(each, each.message_type)
        read, schema = self._one(each)
        if each.is_repeated:
            listed = {"type": "array", "items": {"optional": False, **schema}, "optional": True}
            return lambda found: [read(item) for item in getattr(found, name)], listed
        if each.has_presence:
            optional = {**schema, "optional": True}
            return lambda m: read(getattr(m, name)) if m.HasField(name) else None, optional
        return lambda found: read(getattr(found, name)), {"optional": False, **schema}

    def _map(self, each: FieldDescriptor, entry: Descriptor) -> tuple[Read, ConnectSchema]:
        key, value = (self._one(entry.fields_by_name[part])[0] for part in ("key", "value"))
        name, schema = each.name, {"type": "map", "optional": True}
        if entry.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING:
            return lambda m: {k: value(v) for k, v in getattr(m, name).items()}, schema
        return lambda m: [[key(k), value(v)] for k, v in sorted(getattr(m, name).items())], schema

    def _one(self, each: FieldDescriptor) -> tuple[Read, ConnectSchema]:
        """One value of a field, which is there."""
        kind = each.message_type
        assert each.containing_type is not None
        parameters = self._files.parameters(each.containing_type.full_name, each.name)
        if kind is None:
            return plain(each, parameters)
        if is_wrapper(kind):
            read, schema = plain(kind.fields_by_name["value"], parameters)
            return lambda found: read(found.value), schema
        if kind.full_name == "confluent.type.Decimal":
            return decimal_of(parameters)
        if kind.full_name == "google.protobuf.Timestamp":
            name = "ZonedTimestamp" if self._instants else "IsoTimestamp"
            return timestamp, {"type": "string", "name": f"{TIME}{name}", "version": 1}
        if kind.full_name in CALENDAR:
            return CALENDAR[kind.full_name]
        reader, schema = self._message(kind)
        return reader.read, schema


def _message_index(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Which message of its file it is, and where that ends; none stands for the first. Raises
    Refused."""
    try:
        count, at = _signed(data, at)
        if count == 0:
            return (0,), at
        if not 0 < count <= _MOST_NESTED:
            raise Refused("its message index is damaged")
        place = []
        for _ in range(count):
            number, at = _signed(data, at)
            if number < 0:
                raise Refused("its message index is damaged")
            place.append(number)
    except IndexError as error:
        raise Refused("its message index is cut off") from error
    return tuple(place), at


_MOST_NESTED = 100


def _signed(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
        if shift > 28:
            raise Refused("its message index is damaged")


def _parsed(into: Any, payload: bytes) -> Any:
    """The message in a payload, which is all of it: every field is one of its schema's, and stands
    there once. Raises Refused."""
    try:
        into.MergeFromString(payload)
    except (protobuf.DecodeError, RecursionError, ValueError) as error:
        raise Refused(f"its bytes are no message of its Protobuf schema: {error}") from error
    into.DiscardUnknownFields()
    if into.ByteSize() != len(payload):
        raise Refused(
            f"its bytes are no message of its Protobuf schema: that takes "
            f"{counted(into.ByteSize(), 'byte')} of {len(payload)}"
        )
    return into


def _columns(key: bytes | None) -> Mapping[str, Any]:
    """The columns in a translated key."""
    found = members(key)
    return members(found["payload"]) if "payload" in found else found
