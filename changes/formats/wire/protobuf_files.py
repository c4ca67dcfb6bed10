"""Makes the message classes of a Protobuf schema: as text, or as a serialized descriptor."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from changes.formats.engine.layout import Refused
from changes.formats.engine.proto_files import Options, ProtoFile, parse_proto
from changes.formats.wire.schemas import Reference, Schema

_BUILT_IN = {
    module.DESCRIPTOR.name: descriptor_pb2.FileDescriptorProto.FromString(
        module.DESCRIPTOR.serialized_pb
    )
    for module in (
        any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2,
        timestamp_pb2, wrappers_pb2,
    )
}  # fmt: skip
_OF_CONFLUENT = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type; message Decimal '
        "{ bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
    "google/type/date.proto": (
        'syntax = "proto3"; package google.type; message Date '
        "{ int32 year = 1; int32 month = 2; int32 day = 3; }"
    ),
    "google/type/timeofday.proto": (
        'syntax = "proto3"; package google.type; message TimeOfDay '
        "{ int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }"
    ),
}
"""What its serializers have built in, so that a registry need not have it."""

_META = (
    'syntax = "proto3"; package binlogd; message Meta { Field field = 1088; '
    "message Field { string doc = 1; map<string, string> params = 2; } }"
)
"""Confluent's options of a field, as a serialized descriptor has them."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+", re.ASCII)
_ERRORS = (ValueError, TypeError, KeyError, RecursionError, message.DecodeError)

Parameters = Mapping[str, str]


class ProtobufFiles:
    """The messages of one schema, and what Confluent's options say of their fields."""

    def __init__(self, schema: Schema) -> None:
        """Raises Refused where it can't be read."""
        self._pool = descriptor_pool.DescriptorPool()
        self._parameters: dict[tuple[str, str], Parameters] = {}
        self._added: set[str] = set()
        try:
            name = self._add(_parsed("schema.proto", schema.text), schema.references)
            self._file = self._pool.FindFileByName(name)
        except _ERRORS as error:
            raise Refused(f"a Protobuf schema that can't be read: {error}") from error

    def _add(self, parsed: ProtoFile, references: Iterable[Reference]) -> str:
        """Add a file behind those that it imports; returns its name."""
        by_name = {each.name: each for each in references}
        file = parsed.file
        for name in file.dependency:
            if name in self._added:
                continue
            if name in by_name:
                reference = by_name[name]
                found = _parsed(name, reference.text)
                found.file.name = name
                self._add(found, (*reference.references, *references))
            elif name in _BUILT_IN:
                self._add(ProtoFile(_BUILT_IN[name]), ())
            elif name in _OF_CONFLUENT:
                self._add(parse_proto(name, _OF_CONFLUENT[name]), ())
            else:
                raise ValueError(f"it imports {name}, which is not there")
        self._pool.Add(file)
        self._added.add(file.name)
        for key, options in parsed.options.items():
            self._parameters[key] = _parameters(options)
        return str(file.name)

    def parameters(self, message_name: str, field: str) -> Parameters:
        """What Confluent's options say of a field."""
        return self._parameters.get((message_name, field), {})

    def message(self, place: tuple[int, ...]) -> Descriptor:
        """The message at a place: its number in the file, then in the one around it. Raises
        Refused."""
        try:
            found = list(self._file.message_types_by_name.values())[place[0]]
            for number in place[1:]:
                found = _nested(found, number)
        except IndexError as error:
            raise Refused(f"its message index {list(place)} is not in its schema") from error
        return found

    def has_presence(self) -> bool:
        """Whether any field of a plain type shows by itself whether it is there."""
        return any(map(_shows_presence, self._file.message_types_by_name.values()))


def _nested(around: Descriptor, number: int) -> Descriptor:
    """The message of that number in another one. Raises IndexError; Refused where a map before it
    makes it another one to some of Confluent's clients: these count the map's entries, too."""
    declared = [each for each in around.nested_types if not each.GetOptions().map_entry]
    found = declared[number]
    if around.nested_types[number] is not found:
        raise Refused(f"its message index counts the messages in {around.name} before or with maps")
    return found


def is_wrapper(found: Descriptor | None) -> bool:
    """Whether a message is one of Google's around a plain value."""
    return found is not None and found.file.name == wrappers_pb2.DESCRIPTOR.name


def _shows_presence(found: Descriptor) -> bool:
    return any(
        is_wrapper(field.message_type)
        or (field.message_type is None and field.has_presence and not _is_a_choice(field))
        for field in found.fields
    ) or any(map(_shows_presence, found.nested_types))


def _is_a_choice(field: FieldDescriptor) -> bool:
    """Whether it is one of several that exclude one another: that says nothing of the others."""
    around = field.containing_oneof
    return around is not None and around.name != f"_{field.name}"  # so is that of ``optional``


def class_of(found: Descriptor) -> type[message.Message]:
    """The class of a message."""
    return message_factory.GetMessageClass(found)


def _parsed(name: str, text: str) -> ProtoFile:
    """A file, from its text or its serialized descriptor; raises ValueError, DecodeError."""
    if not _BASE64.fullmatch(text):
        return parse_proto(name, text)
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    found = ProtoFile(file)
    for each in file.message_type:
        _take_options(found, each, file.package)
    return found


def _take_options(found: ProtoFile, made: descriptor_pb2.DescriptorProto, scope: str) -> None:
    whole = f"{scope}.{made.name}".lstrip(".")
    for field in made.field:
        if field.HasField("options"):
            meta: Any = _meta().FromString(field.options.SerializeToString())
            if params := dict(meta.field.params):
                listed = [[("key", key), ("value", value)] for key, value in params.items()]
                found.options[whole, field.name] = {_FIELD_META: [("params", listed)]}
    for nested in made.nested_type:
        _take_options(found, nested, whole)


@cache
def _meta() -> type[message.Message]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(parse_proto("meta.proto", _META).file)
    return class_of(pool.FindMessageTypeByName("binlogd.Meta"))


_FIELD_META = "(confluent.field_meta)"


def _parameters(options: Options) -> Parameters:
    """The parameters in a field's options: a list of pairs, or each by itself."""
    listed: list[Any] = [*options.get(f"{_FIELD_META}.params", ())]
    for name, value in options.get(_FIELD_META) or ():
        if name == "params":
            listed += value if value and isinstance(value[0], list) else [value]
    pairs = [dict(each) for each in listed]
    return {str(each["key"]): str(each.get("value", "")) for each in pairs if "key" in each}
