"""Translates records of any wire into JSON as Kafka Connect's JsonConverter writes it.

Keys and values are translated each by its own frame: a plain key may come with an Avro value. All
else of a record stays, and what has no frame stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from changes.formats.engine.format import (
    VALUE_AT,
    Headers,
    packed_headers,
    repacked,
    sizes,
)
from changes.formats.engine.json_text import members
from changes.formats.engine.layout import Refused
from changes.formats.wire.alike import together
from changes.formats.wire.avro import AvroTranslation
from changes.formats.wire.avro_heads import AvroHead
from changes.formats.wire.frames import Frame, frame_of, needed
from changes.formats.wire.json_schema import JsonTranslation
from changes.formats.wire.protobuf import ProtobufTranslation
from changes.formats.wire.schemas import Schema, SchemaFolder, SchemaId
from changes.model.registry import Registry


class Translation(Protocol):
    """Translates the payloads of one schema. Any thread may use it."""

    def wrapped(
        self, data: bytes, begin: int, message: bytes | None, key: bytes | None, *, is_key: bool
    ) -> bytes:
        """The payload that begins there, as JSON with its schema before it; raises Refused.

        ``message``: see ``Frame``. ``key``: of a value, its record's key as JSON. ``is_key``: it is
        a record's key itself.
        """
        ...

    @property
    def columns(self) -> Mapping[str, str]:
        """By field the column's name in the source, where that is another one."""
        ...

    def naming(self, columns: Mapping[str, str]) -> Translation:
        """The same with other names for these fields."""
        ...


@dataclass(frozen=True, slots=True)
class Meanings:
    """What a format means by values that a wire can't tell apart (``ProtobufTranslation``)."""

    zero: bool = False
    instants: bool = False


def translation_of(schema: Schema, meanings: Meanings) -> Translation:
    """Make the translation of a schema; raises Refused where it can't be read."""
    if schema.kind == "AVRO":
        return AvroTranslation(schema)
    if schema.kind == "JSON":
        return JsonTranslation(schema)
    return ProtobufTranslation(schema, zero=meanings.zero, instants=meanings.instants)


_FRAME = 5
"""Bytes of a frame with an id of four bytes."""


class SchemaNotKept(Refused):
    """A record's schema is not kept here."""


class Translations:
    """Translates the records of one pipeline; knows the schemas that it has met."""

    def __init__(self, registry: Registry | None, meanings: Meanings) -> None:
        self._registry = registry
        self._meanings = meanings
        self._folder = None if registry is None else SchemaFolder(registry.folder)
        self._known: dict[SchemaId, Translation] = {}
        self._checked: set[SchemaId] = set()
        self._by_begin: dict[bytes, Translation] = {}
        """The same by the frame before a payload, where no header says more."""

    def plain(self, packed: bytes) -> bytes:
        """A packed record whose key and value are JSON, or were plain before; raises Refused."""
        return self._record(packed, None)

    def head(self, packed: bytes) -> AvroHead | None:
        """The head of an envelope in Avro, None where a record has to be read whole."""
        size, _, headers_size = sizes(packed)
        if headers_size or size <= 0 or packed[VALUE_AT] != 0:
            return None
        known = self._by_begin.get(packed[VALUE_AT : VALUE_AT + _FRAME])
        if not isinstance(known, AvroTranslation):
            return None
        return known.head(packed[VALUE_AT : VALUE_AT + size], _FRAME)

    def whole(self, packed: bytes, names: dict[str, str]) -> bytes:
        """The same for who reads its row: columns are called alike in key and value, where only
        one of both says what they are called in the source.

        ``names``: what the table's columns are called, by field. A record without a value is read
        by it, and what a value says is added.
        """
        return self._record(packed, names)

    def whole_all(self, values: Sequence[bytes], names: dict[str, str]) -> Iterator[bytes]:
        """The same of many records, in their order; those in Avro of one schema are read at once.

        Raises Refused in the place of the first record that it is raised for.
        """
        ready = together(values, self._by_begin, self._learn)
        for place, packed in enumerate(values):
            found = ready.get(place)
            yield self.whole(packed, names) if found is None else found

    def _learn(self, packed: bytes) -> None:
        """Make the translations that a record needs."""
        with suppress(Refused):  # it is said in the record's turn
            self.plain(packed)

    def key(self, packed: bytes) -> bytes | None:
        """The record key as JSON, with its schema's identity before it where the bytes have that.

        Bytes of Avro and Protobuf follow from schema and values; so their values are shown, under
        the names that the key's schema has by itself. A key in JSON stays as it is spelled.
        """
        size, key_size, headers_size = sizes(packed)
        if key_size < 0:
            return None
        end = VALUE_AT + max(size, 0)
        headers = packed_headers(packed) if headers_size else ()
        key = packed[end : end + key_size]
        try:
            frame = frame_of(key, headers, self._registry, is_key=True)
            if frame is None:
                return key
            known = self._known.get(frame.schema) or self._made(frame)
            identity = b"\0%b" % str(frame.schema).encode() if frame.begin else b""
            if isinstance(known, JsonTranslation):
                return identity + key[frame.begin :]
            found = known.wrapped(key, frame.begin, frame.message, None, is_key=True)
            if isinstance(known, ProtobufTranslation):
                _check_spelling(known, key, frame)
        except Refused as refused:
            raise _named("record key", refused) from refused
        return identity + bytes(members(found)["payload"]) if identity else found

    def _record(self, packed: bytes, names: dict[str, str] | None) -> bytes:
        size, key_size, headers_size = sizes(packed)
        end = VALUE_AT + max(size, 0)
        headers = packed_headers(packed) if headers_size else ()
        value = packed[VALUE_AT:end] if size >= 0 else None
        key = packed[end : end + key_size] if key_size >= 0 else None
        try:
            new_key, of_key = self._translated(key, headers, None, is_key=True)
        except Refused as refused:
            raise _named("record key", refused) from refused
        try:
            new_value, of_value = self._translated(value, headers, new_key, is_key=False)
        except Refused as refused:
            raise _named("value", refused) from refused
        if new_value is value and new_key is key:
            return packed
        if names is not None and key is not None and of_key is not None:
            if of_value is not None:
                names.update(of_value.columns)
                if value and of_key.columns and of_key.columns.keys() - of_value.columns.keys():
                    new_value = self._again(of_value, of_key.columns, value, headers, new_key)
            if columns := names if of_value is None else of_value.columns:
                new_key = self._again(of_key, columns, key, headers, None)
        return repacked(packed, new_key, new_value)

    def _again(
        self, known: Translation, columns: Mapping[str, str], data: bytes, headers: Headers,
        key: bytes | None,
    ) -> bytes:  # fmt: skip
        """A key, or a value with its ``key``, under other names; raises Refused."""
        frame = frame_of(data, headers, self._registry, is_key=key is None)
        assert frame is not None
        named = known.naming(columns)
        return named.wrapped(data, frame.begin, frame.message, key, is_key=key is None)

    def _translated(
        self, data: bytes | None, headers: Headers, key: bytes | None, *, is_key: bool
    ) -> tuple[bytes | None, Translation | None]:
        """A key or value as JSON, and what translated it; raises Refused."""
        if data is None:
            return None, None
        if not headers and (known := self._by_begin.get(data[:_FRAME])) is not None:
            try:
                return known.wrapped(data, _FRAME, None, key, is_key=is_key), known
            except Refused:
                pass  # below it is said with the schema's name
        frame = frame_of(data, headers, self._registry, is_key=is_key)
        if frame is None:
            return data, None
        known = self._known.get(frame.schema) or self._made(frame)
        if not headers and frame.begin == _FRAME:
            self._by_begin[data[:_FRAME]] = known
        try:
            text = known.wrapped(data, frame.begin, frame.message, key, is_key=is_key)
        except Refused as refused:
            raise type(refused)(f"schema {frame.schema}: {refused}") from refused
        return text, known

    def _made(self, frame: Frame) -> Translation:
        identity = frame.schema
        schema = self._kept(identity)
        assert self._registry is not None
        if schema.kind == "PROTOBUF" and self._registry.kind == "apicurio":
            raise Refused(
                f"schema {identity}: Protobuf as Apicurio's serializer writes it is not read; "
                'Confluent\'s is, by a registry of kind = "confluent"'
            )
        try:
            found = self._known[identity] = translation_of(schema, self._meanings)
        except Refused as refused:
            raise Refused(f"schema {identity}: {refused}") from refused
        return found

    def check_kept(self, values: Sequence[bytes | None]) -> None:
        """Raise SchemaNotKept where a schema that one of these records needs is not kept."""
        if self._registry is not None:
            for identity in needed(values, self._registry) - self._checked:
                self._kept(identity)
                self._checked.add(identity)

    def _kept(self, identity: SchemaId) -> Schema:
        assert self._folder is not None
        try:
            schema = self._folder.get(identity)
        except (ValueError, OSError) as error:
            raise SchemaNotKept(f"its schema {identity} can't be read: {error}") from error
        if schema is None:
            raise SchemaNotKept(
                f"its schema {identity} is not among those that are kept in {self._folder.folder}"
            )
        return schema


def _check_spelling(known: ProtobufTranslation, key: bytes, frame: Frame) -> None:
    """Raise Refused for a key that its producer's next release may spell otherwise."""
    if not known.one_spelling(key, frame.begin, frame.message):
        raise Refused(
            f"schema {frame.schema}: its message index or the order of its fields is not as "
            "serializers write them, so an equal key may be other bytes, in another partition"
        )


def _named(what: str, refused: Refused) -> Refused:
    return type(refused)(f"the {what}: {refused}")
