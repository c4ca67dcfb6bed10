"""Frames: how a key or value names the schema that it was written with.

Confluent's serializers put a zero byte and the schema's id before the payload, or its GUID into a
header. Apicurio's put a content id of four bytes there (an older form: a global id of eight), or
either into a header. A header decides where there is one: such a payload may begin with any byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from changes.formats.engine.format import VALUE_AT, Headers, packed_headers, sizes
from changes.formats.engine.layout import Refused
from changes.formats.wire.schemas import SchemaFolder, SchemaId
from changes.model.registry import Registry
from settings.counted import counted

_CONFLUENT = {True: "__key_schema_id", False: "__value_schema_id"}
_APICURIO = {True: "apicurio.key.", False: "apicurio.value."}
_BY_ID, _BY_GUID = 0, 1
"""The first byte of Confluent's frame and header: an id of four bytes follows, or a GUID."""

_ID, _LONG_ID, _GUID = 5, 9, 17
"""Bytes of a frame with its first one."""

_GLUE, _GLUE_SIZE = 3, 18
_GLUE_COMPRESSIONS = (0, 5)
_NUMBERS: dict[str, Literal["content", "global"]] = {"contentId": "content", "globalId": "global"}
_UNREAD = ("encoding", "groupId", "artifactId", "version", "contentHash")
"""What Apicurio's headers also say, beside or instead of a number."""


class Frame(NamedTuple):
    """The schema of a key or value, and where its payload begins."""

    schema: SchemaId
    begin: int
    message: bytes | None = None
    """Which message of a Protobuf schema it is, where a header says so."""


def frame_of(
    data: bytes, headers: Headers, registry: Registry | None, *, is_key: bool
) -> Frame | None:
    """The frame of a key or value, None where it is plain: JSON, text, any other bytes.

    Raises Refused for a frame or header that is damaged or not read; where no registry is
    configured, for each frame that a registry's client can have made.
    """
    if headers and (found := _in_headers(headers, registry, is_key)) is not None:
        return found
    if not data:
        return None
    first = data[0]
    if first == _GLUE and len(data) >= _GLUE_SIZE and data[1] in _GLUE_COMPRESSIONS:
        raise Refused("a record of AWS Glue's schema registry, which is not read")
    if first != 0:
        return None
    if registry is None:
        if len(data) > _ID and any(data[1:_ID]):
            raise _without_registry(_number(data[1:_ID]))
        return None
    return _prefixed(data[:_LONG_ID], registry)


@lru_cache(maxsize=4096)
def _prefixed(begin: bytes, registry: Registry) -> Frame:
    """The frame in the first bytes of a payload."""
    if len(begin) < _ID:
        raise Refused(f"a schema registry's frame of {counted(len(begin), 'byte')}: it is cut off")
    if registry.kind == "confluent":
        return Frame(SchemaId("id", _number(begin[1:_ID])), _ID)
    if any(begin[1:_ID]):
        return Frame(SchemaId(registry.ids, _number(begin[1:_ID])), _ID)
    if len(begin) < _LONG_ID:  # No schema has the number 0.
        raise Refused(f"a schema registry's frame of {counted(len(begin), 'byte')}: it is cut off")
    return Frame(SchemaId("global", _number(begin[1:_LONG_ID])), _LONG_ID)


def _in_headers(headers: Headers, registry: Registry | None, is_key: bool) -> Frame | None:
    name, prefix = _CONFLUENT[is_key], _APICURIO[is_key]
    mine = {(key, value) for key, value in headers if key == name or key.startswith(prefix)}
    if not mine:
        return None
    found = dict(mine)
    if len(found) < len(mine):
        twice = min(key for key in found if sum(key == other for other, _ in mine) > 1)
        raise Refused(f"header {twice} stands there with two values")
    kind = "confluent" if name in found else "apicurio"
    frame = _of_confluent(name, found[name]) if name in found else _of_apicurio(prefix, found)
    if registry is None:
        raise _without_registry(str(frame.schema))
    if kind != registry.kind:
        raise Refused(
            f"its header names schema {frame.schema} of {_WHOSE[kind]}, and the pipeline's "
            f'registry is one of kind "{registry.kind}"'
        )
    return frame


_WHOSE = {"confluent": "Confluent's registry", "apicurio": "an Apicurio registry"}


def _of_confluent(name: str, value: bytes | None) -> Frame:
    """By id or GUID; Protobuf's serializer puts its message index behind them."""
    if value and value[0] == _BY_GUID and len(value) >= _GUID:
        return Frame(SchemaId("guid", _hyphened(value[1:_GUID].hex())), 0, value[_GUID:])
    if value and value[0] == _BY_ID and len(value) >= _ID:
        return Frame(SchemaId("id", _number(value[1:_ID])), 0, value[_ID:])
    raise Refused(f"header {name} is no schema's id: {_shown(value)}")


def _of_apicurio(prefix: str, found: dict[str, bytes | None]) -> Frame:
    names = {key.removeprefix(prefix): value for key, value in found.items()}
    if (encoding := names.get("encoding")) not in (None, b"BINARY"):
        raise Refused(f"header {prefix}encoding is {_shown(encoding)}; only BINARY is read")
    numbers = [name for name in _NUMBERS if name in names]
    if len(numbers) != 1:
        what = "two numbers" if numbers else "no contentId or globalId"
        raise Refused(f"the headers {prefix}… name a schema by {what}")
    value = names[numbers[0]]
    if value is None or len(value) != _LONG_ID - 1:
        raise Refused(f"header {prefix}{numbers[0]} is no schema's number: {_shown(value)}")
    return Frame(SchemaId(_NUMBERS[numbers[0]], _number(value)), 0)


def _without_registry(identity: str) -> Refused:
    return Refused(
        f"it names schema {identity} of a schema registry, and no registry is configured for the "
        "pipeline"
    )


def _number(octets: bytes) -> str:
    return str(int.from_bytes(octets, "big"))


def _hyphened(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _shown(value: bytes | None) -> str:
    return (
        "null" if value is None else f"{counted(len(value), 'byte')} {value[:20].hex(' ')}".rstrip()
    )


def needed(values: Iterable[bytes | None], registry: Registry) -> set[SchemaId]:
    """The schemas that packed records need, of keys and values.

    Damaged frames are left out: their records are refused by name when they are read.
    """
    frames: set[bytes] = set()
    found: set[SchemaId] = set()
    for packed in values:
        if packed is None or len(packed) < VALUE_AT:
            continue
        size, key_size, headers_size = sizes(packed)
        end = VALUE_AT + max(size, 0)
        if headers_size:
            found.update(_needed_by(packed, size, key_size, registry))
            continue
        if size > 0 and packed[VALUE_AT] == 0:
            frames.add(packed[VALUE_AT : min(end, VALUE_AT + _LONG_ID)])
        if key_size > 0 and packed[end : end + 1] == b"\0":
            frames.add(packed[end : end + min(key_size, _LONG_ID)])
    for begin in frames:
        found.update(_schema(begin, (), registry, is_key=False))
    return found


def schemas_shown(packed: bytes, registry: Registry) -> list[str]:
    """The schemas that a record names, for people: those that are not kept are marked."""
    folder, named = SchemaFolder(registry.folder), sorted(needed((packed,), registry))
    return [str(each) if folder.get(each) else f"{each} (not kept)" for each in named]


def _needed_by(packed: bytes, size: int, key_size: int, registry: Registry) -> set[SchemaId]:
    """Those of one record with headers."""
    headers, end = packed_headers(packed), VALUE_AT + max(size, 0)
    found: set[SchemaId] = set()
    if size >= 0:
        begin = packed[VALUE_AT : min(end, VALUE_AT + _LONG_ID)]
        found.update(_schema(begin, headers, registry, is_key=False))
    if key_size >= 0:
        begin = packed[end : end + min(key_size, _LONG_ID)]
        found.update(_schema(begin, headers, registry, is_key=True))
    return found


def _schema(
    begin: bytes, headers: Headers, registry: Registry, *, is_key: bool
) -> Sequence[SchemaId]:
    try:
        frame = frame_of(begin, headers, registry, is_key=is_key)
    except Refused:
        return ()
    return () if frame is None else (frame.schema,)
