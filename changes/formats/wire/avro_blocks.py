"""Reads many Avro values of one schema at once, by Arrow's kernels: the same JSON, far cheaper.

The values lie behind each other in one buffer, and each has a cursor. A field is read of all of
them before the next one, so a call of Python is for a column, not for a cell. Cursors only move on,
and in the end each must be where its value ends: so no value takes a byte of its neighbour.

It judges nothing. Where any of the values is not certain, all of them are left to be read one by
one, and the bad one is refused there.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.wire.avro_bytes import ERRORS
from changes.formats.wire.avro_cursors import (
    BITS_OF_INT,
    BYTE,
    Cursors,
    Uncertain,
    all_of,
    any_of,
    certain,
)
from changes.formats.wire.avro_reader import AvroSchema, compiled, type_of
from changes.formats.wire.connect import INSTANTS

Text = Any
"""A column of JSON texts: an array, or a scalar where all are the same."""

_encode = msgspec.json.encode
_SPECIAL = bytes(range(0x20)) + b'"\\\x7f'
"""What JSON has to escape in a text, and one more."""

_NULL, _TRUE, _FALSE = (pa.scalar(text) for text in ("null", "true", "false"))
_END_OF_RECORD = pa.scalar("}")


class AvroBlocks:
    """The reader of one schema. Any thread may use it."""

    def __init__(self, schema: AvroSchema, named: Mapping[str, AvroSchema]) -> None:
        self._schema = schema
        self._named = named
        self._by_value: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {}
        """What reads the values of a type that has no way here, by the type's ``id``."""
        self.usable = not self._is_recursive(schema, frozenset())

    def texts(self, values: Sequence[bytes], begin: int) -> list[bytes] | None:
        """The JSON of each value, which begins at that place of its bytes and ends with them.

        None where that is not certain of all.
        """
        if not self.usable:
            return None
        try:
            block = Cursors(values, begin)
            text = self._text(block, self._schema)
            if not block.at.equals(block.ends):
                return None
            if not isinstance(text, pa.Array):
                text = pa.repeat(text, len(values))
            found: list[bytes] = text.cast(pa.binary()).to_pylist()
            return found
        except (Uncertain, pa.ArrowException, *ERRORS):
            return None

    def _is_recursive(self, schema: AvroSchema, inside: frozenset[str]) -> bool:
        """Whether a record holds itself."""
        kind = type_of(schema)
        if kind in self._named:
            schema = self._named[kind]
            kind = type_of(schema)
        if kind == "union":
            return any(self._is_recursive(each, inside) for each in schema)
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self._is_recursive(schema["type"], inside)
        if kind != "record":
            return False  # what arrays and maps hold is read one by one
        name = schema["name"]
        fields = [field["type"] for field in schema["fields"]]
        return name in inside or any(self._is_recursive(f, inside | {name}) for f in fields)

    def _text(self, block: Cursors, schema: AvroSchema) -> Text:
        kind = type_of(schema)
        if kind in self._named:
            schema = self._named[kind]
            kind = type_of(schema)
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self._text(block, schema["type"])
        if kind == "record":
            return self._record(block, schema)
        if kind == "union" and len(schema) == 2 and "null" in schema:
            return self._optional(block, schema)
        if kind == "long" and isinstance(schema, dict) and schema.get("logicalType") in INSTANTS:
            return self._one_by_one(block, schema)
        simple = _SIMPLE.get(kind)
        return self._one_by_one(block, schema) if simple is None else simple(block)

    def _record(self, block: Cursors, schema: AvroSchema) -> Text:
        parts: list[Text] = []
        for place, field in enumerate(schema["fields"]):
            name = _encode(field["name"]).decode()
            parts.append(pa.scalar(f"{',' if place else '{'}{name}:"))
            parts.append(self._text(block, field["type"]))
        return _joined([*parts, _END_OF_RECORD]) if parts else pa.scalar("{}")

    def _optional(self, block: Cursors, branches: AvroSchema) -> Text:
        null = branches.index("null")
        branch = block.byte()
        is_null = pc.equal(branch, pa.scalar(2 * null, BYTE))
        known = pc.or_(is_null, pc.equal(branch, pa.scalar(2 - 2 * null, BYTE)))
        certain(all_of(known))
        if all_of(is_null):
            return _NULL
        if not any_of(is_null):
            return self._text(block, branches[1 - null])
        with block.without(is_null):
            text = self._text(block, branches[1 - null])
        return pc.if_else(is_null, _NULL, text)

    def _one_by_one(self, block: Cursors, schema: AvroSchema) -> Text:
        """By the functions that read single values: the rest of the block is still quick."""
        read = self._by_value.get(id(schema))
        if read is None:
            read = self._by_value[id(schema)] = compiled(schema, self._named, {})
        pairs = [read(block.data, at) for at in block.at.to_pylist()]
        block.at = pa.array([end for _, end in pairs], pa.int64())
        return pa.array([_encode(value).decode() for value, _ in pairs], pa.string())


def _integer(block: Cursors, bits: int = 64) -> Text:
    return block.signed(bits).cast(pa.string())


def _string(block: Cursors) -> Text:
    texts = block.octets().cast(pa.string())  # raises for what is no UTF-8
    held = texts.buffers()[2]
    octets = b"" if held is None else held.to_pybytes()
    if len(octets.translate(None, _SPECIAL)) < len(octets):
        return pa.array([_encode(text).decode() for text in texts.to_pylist()], pa.string())
    quote = pa.scalar('"')
    return _joined([quote, texts, quote])


def _bytes(block: Cursors) -> Text:
    coded = [b2a_base64(octets, newline=False) for octets in block.octets().to_pylist()]
    quote = pa.scalar('"')
    return _joined([quote, pa.array(coded, pa.binary()).cast(pa.string()), quote])


def _boolean(block: Cursors) -> Text:
    byte = block.byte()
    certain(not any_of(pc.greater(byte, pa.scalar(1, BYTE))))
    return pc.if_else(pc.equal(byte, pa.scalar(1, BYTE)), _TRUE, _FALSE)


_SIMPLE: Mapping[str, Callable[[Cursors], Text]] = {
    "boolean": _boolean,
    "bytes": _bytes,
    "int": lambda block: _integer(block, BITS_OF_INT),
    "long": _integer,
    "null": lambda _block: _NULL,
    "string": _string,
}


def _joined(parts: Sequence[Text]) -> Text:
    return pc.binary_join_element_wise(*parts, pa.scalar(""))
