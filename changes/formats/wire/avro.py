"""Avro as Connect's converters write it, and as anybody else does: schemas and payloads.

Values keep their form on the wire; what they mean is in the Connect schema. So logical types are
read by that alone, and decimals of any length are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from changes.formats.engine.layout import Refused
from changes.formats.wire.avro_blocks import AvroBlocks
from changes.formats.wire.avro_bytes import ERRORS
from changes.formats.wire.avro_heads import AvroHead, head_reader
from changes.formats.wire.avro_reader import (
    AvroSchema,
    branch_name,
    compiled,
    is_entries,
    type_of,
)
from changes.formats.wire.connect import (
    COUNTED,
    DECIMAL,
    INSTANTS,
    UNION,
    ZONED,
    ConnectSchema,
    column_name,
    decimal,
    default_of,
    own_name,
    prefix_of,
    structure,
)
from changes.formats.wire.schemas import Reference, Schema
from settings.counted import counted

_TYPES = {
    "boolean": "boolean", "int": "int32", "long": "int64", "float": "float", "double": "double",
    "bytes": "bytes", "fixed": "bytes", "string": "string", "enum": "string",
}  # fmt: skip


class AvroTranslation:
    """Turns the payloads of one Avro schema into JSON as Connect's JsonConverter writes it."""

    def __init__(self, schema: Schema, columns: Mapping[str, str] | None = None) -> None:
        """``columns``: what fields are called that are not what their schema says.

        Raises Refused for a schema that can't be read.
        """
        parsed, named = _parsed(schema)
        made = _ConnectSchemas(named, columns or {})
        self._schema = schema
        self._prefix = prefix_of(made.of(parsed))
        self._read = compiled(parsed, named, made.renamed)
        self._read_head = head_reader(parsed, named)
        self._blocks = AvroBlocks(parsed, named)
        self._named: dict[frozenset[tuple[str, str]], AvroTranslation] = {}
        self.columns = {field: called for (_, field), called in made.renamed.items()}

    def naming(self, columns: Mapping[str, str]) -> AvroTranslation:
        """See ``translation.Translation``."""
        wanted = frozenset(columns.items())
        if wanted not in self._named:
            self._named[wanted] = AvroTranslation(self._schema, columns)
        return self._named[wanted]

    def value(self, data: bytes, begin: int) -> Any:
        """The value that begins there; raises Refused where it does not end with the data."""
        try:
            found, end = self._read(data, begin)
        except ERRORS as error:
            raise Refused(f"its bytes are no value of its Avro schema: {error}") from error
        if end != len(data):
            raise Refused(
                f"its bytes are no value of its Avro schema: it takes "
                f"{counted(end - begin, 'byte')} of {len(data) - begin}"
            )
        return found

    def head(self, data: bytes, begin: int) -> AvroHead | None:
        """What the head of an envelope says, None where it has to be read whole."""
        if self._read_head is None:
            return None
        try:
            found, end = self._read_head(data, begin)
        except ERRORS:
            return None
        return found if end == len(data) else None

    def wrapped(
        self, data: bytes, begin: int, message: bytes | None, key: bytes | None = None,
        *, is_key: bool = False,
    ) -> bytes:  # fmt: skip
        """See ``translation.Translation``."""
        if message:
            raise Refused("its header names a message, and the schema is one of Avro")
        return b"%b%b}" % (self._prefix, msgspec.json.encode(self.value(data, begin)))

    def wrapped_all(self, values: Sequence[bytes], begin: int) -> list[bytes] | None:
        """The same of many at once, None where that is not certain of each; raises nothing."""
        texts = None if self.columns else self._blocks.texts(values, begin)
        prefix = self._prefix
        return None if texts is None else [b"%b%b}" % (prefix, text) for text in texts]


def _parsed(schema: Schema) -> tuple[AvroSchema, Mapping[str, AvroSchema]]:
    """A schema with whole names, and its named types; raises Refused."""
    named: dict[str, Any] = {}
    try:
        for reference in schema.references:
            _take_in(reference, named)
        return parse_schema(_readable(json.loads(schema.text)), named_schemas=named), named
    except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError) as error:
        raise Refused(f"an Avro schema that can't be read: {error}") from error
    except (RecursionError, AttributeError) as error:
        raise Refused(f"an Avro schema that can't be read: {type(error).__name__}") from error


def _take_in(reference: Reference, named: dict[str, Any]) -> None:
    for inner in reference.references:
        _take_in(inner, named)
    if reference.name not in named:
        parse_schema(_readable(json.loads(reference.text)), named_schemas=named)


def _readable(schema: AvroSchema) -> AvroSchema:
    """A schema without the logical types of Connect's decimals, which have names and parameters of
    their own. Their scale may be one that Avro does not have: PostgreSQL's numeric(2,-3)."""
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bare = schema.get("connect.name") == DECIMAL
    return {
        name: _readable(part) if name in ("type", "items", "values", "fields") else part
        for name, part in schema.items()
        if not (bare and name == "logicalType")
    }


class _ConnectSchemas:
    """Makes the Connect schemas of an Avro schema's types.

    ``renamed`` are the fields that get their column's name in the source, by record and name.
    """

    def __init__(self, named: Mapping[str, AvroSchema], columns: Mapping[str, str]) -> None:
        self._named = named
        self._columns = columns
        self._open: set[str] = set()
        self.renamed: dict[tuple[str, str], str] = {}

    def of(self, schema: AvroSchema, default: object = None) -> ConnectSchema:
        """The schema of a type. ``default`` is its field's."""
        kind = type_of(schema)
        if kind in self._named:
            schema = self._named[kind]
            kind = type_of(schema)
        if kind == "union":
            return self._of_union(schema, default)
        given = schema if isinstance(schema, dict) else {}
        if isinstance(given.get("type"), dict | list):
            return self.of(given["type"], default)
        found = {"optional": False, **self._of_kind(kind, given)}
        said = _said(given)
        if "name" in found:  # a logical type's, beside another writer's name or none
            parameters = {**said.get("parameters", {}), **found.get("parameters", {})}
            said = {"parameters": parameters} if parameters else {}
        found |= said
        if (default := given.get("connect.default", default)) is not None:
            found["default"] = default_of(default, found["type"])
        if "name" in found:  # the last member: it tells beginnings of records apart
            found["name"] = found.pop("name")
        return found

    def _of_kind(self, kind: str, given: AvroSchema) -> ConnectSchema:
        if kind == "record":
            return self._of_record(given)
        if kind == "array":
            return self._of_array(given)
        if kind == "map":
            return {"type": "map", "keys": _TEXT, "values": self.of(given["values"])}
        if kind not in _TYPES:
            raise Refused(f"a type of Avro that has no column: {kind}")
        if own_name(given) is None and (found := _logical(kind, given)) is not None:
            return found
        return {"type": given.get("connect.type", _TYPES[kind])}

    def _of_record(self, given: AvroSchema) -> ConnectSchema:
        name = given["name"]
        if name in self._open:
            return structure([], None)  # it holds itself, so it is a document
        self._open.add(name)
        fields = []
        for field in given["fields"]:
            made = self.of(field["type"], field.get("default"))
            called = column_name(field["name"], made.get("parameters") or {})
            called = self._columns.get(called, called)
            if called != field["name"]:
                self.renamed[name, field["name"]] = called
            fields.append({**made, "field": called})
        self._open.remove(name)
        return structure(fields, None)

    def _of_array(self, given: AvroSchema) -> ConnectSchema:
        if not is_entries(given):
            return {"type": "array", "items": self.of(given["items"])}
        key, value = (self.of(each["type"]) for each in given["items"]["fields"])
        return {"type": "map", "keys": key, "values": value}

    def _of_union(self, branches: list[AvroSchema], default: object) -> ConnectSchema:
        """Null and one other is an optional value; more are a document that names the branch."""
        others = [each for each in branches if each != "null"]
        if len(others) == 1:
            return {**self.of(others[0], default), "optional": "null" in branches}
        if not others:
            raise Refused("a type of Avro that has no column: null")
        fields = [
            {**self.of(each), "optional": True, "field": branch_name(each)} for each in others
        ]
        return {**structure(fields, UNION), "optional": "null" in branches}


_TEXT: ConnectSchema = {"type": "string", "optional": False}


def _said(given: AvroSchema) -> ConnectSchema:
    """What a type says of its Connect schema by itself."""
    found: ConnectSchema = {}
    parameters = given.get("connect.parameters")
    if isinstance(parameters, dict):
        found["parameters"] = parameters
    elif given.get("type") == "enum":
        found["parameters"] = {"allowed": ",".join(given["symbols"])}
    if isinstance(version := given.get("connect.version"), int):
        found["version"] = version
    if isinstance(name := given.get("connect.name"), str):
        found["name"] = name
    return found


def _logical(kind: str, given: AvroSchema) -> ConnectSchema | None:
    """The Connect schema of a logical type of Avro's, None where it adds nothing."""
    logical = given.get("logicalType", "")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return decimal(given.get("precision"), given.get("scale"))
    if kind == "long" and logical in INSTANTS:
        return {"type": "string", "name": ZONED, "version": 1}
    if logical == "uuid" and kind == "fixed":
        return {"type": "string"}
    if kind in ("int", "long") and logical in COUNTED:
        return {"type": _TYPES[kind], "name": COUNTED[logical], "version": 1}
    return None
