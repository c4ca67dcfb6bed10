"""JSON Schema as Connect's converter writes it, and as anybody else does: the payload is JSON.

So only the schema is translated. What Connect's own properties don't say, JSON Schema's types
and formats do; what has no single type is a document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from changes.formats.engine.json_text import why_not, with_text_for_bare_numbers
from changes.formats.engine.layout import Refused
from changes.formats.wire.connect import UNION, ZONED, ConnectSchema, prefix_of, structure
from changes.formats.wire.schemas import Reference, Schema

_TYPES = {"boolean": "boolean", "integer": "int64", "number": "double", "string": "string"}
_CONNECT = {"float32": "float", "float64": "double"}
_FORMATS = {"date": "io.debezium.time.IsoDate", "date-time": ZONED}
_MOST_REFERENCES = 64
"""References that follow one another: more only come of a circle."""

JsonSchema = Any
_read = msgspec.json.Decoder(Raw).decode


class JsonTranslation:
    """Puts the Connect schema of one JSON Schema before its payloads."""

    def __init__(self, schema: Schema) -> None:
        """Raises Refused for a schema that can't be read."""
        try:
            root = json.loads(schema.text)
            files = dict(_files(schema.references))
        except (ValueError, RecursionError) as error:
            raise Refused(f"a JSON Schema that can't be read: {error}") from error
        try:
            self._prefix = prefix_of(_ConnectSchemas(root, files).of(root))
        except (AttributeError, TypeError, RecursionError) as error:
            raise Refused(f"a JSON Schema that can't be read: {type(error).__name__}") from error

    @property
    def columns(self) -> Mapping[str, str]:
        """None: its names are those of the fields."""
        return {}

    def naming(self, columns: Mapping[str, str]) -> JsonTranslation:
        """See ``translation.Translation``."""
        return self

    def wrapped(
        self, data: bytes, begin: int, message: bytes | None, key: bytes | None = None,
        *, is_key: bool = False,
    ) -> bytes:  # fmt: skip
        """See ``translation.Translation``."""
        if message:
            raise Refused("its header names a message, and the schema is one of JSON")
        return b"%b%b}" % (self._prefix, _one_value(data[begin:]))


def _one_value(text: bytes) -> bytes:
    """The text, where it is one JSON value; raises Refused."""
    try:
        _read(text)
        return text
    except msgspec.DecodeError:
        pass
    fixed = with_text_for_bare_numbers(text)
    try:
        _read(fixed)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"it is not JSON: {why_not(text, error)}") from error
    return fixed


def _files(references: tuple[Reference, ...]) -> Mapping[str, JsonSchema]:
    found: dict[str, JsonSchema] = {}
    for each in references:
        found |= _files(each.references)
        found[each.name] = json.loads(each.text)
    return found


class _ConnectSchemas:
    """Makes Connect schemas of the parts of one JSON Schema."""

    def __init__(self, root: JsonSchema, files: Mapping[str, JsonSchema]) -> None:
        self._root = root
        self._files = files
        self._open: list[int] = []

    def of(self, schema: JsonSchema) -> ConnectSchema:
        """The schema of a part; a part that holds itself is a document."""
        schema = self._resolved(schema)
        if id(schema) in self._open:
            return structure([], None)
        self._open.append(id(schema))
        try:
            return self._of(schema)
        finally:
            self._open.pop()

    def _resolved(self, schema: JsonSchema) -> JsonSchema:
        """The part that a reference names; raises Refused where there is none."""
        root = self._root
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema
            file, _, path = schema["$ref"].partition("#")
            found = root = self._files.get(file) if file else root
            for step in filter(None, path.split("/")):
                step = step.replace("~1", "/").replace("~0", "~")
                found = found.get(step) if isinstance(found, dict) else None
            if found is None:
                raise Refused(f"a JSON Schema that refers to what is not there: {schema['$ref']}")
            schema = found
        raise Refused("a JSON Schema whose references go round in a circle")

    def _of(self, schema: JsonSchema) -> ConnectSchema:
        if not isinstance(schema, dict):
            return _document()
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list):
                return self._one_of(schema, schema[name])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            others = [kind for kind in kinds if kind != "null"]
            if len(others) != 1:
                return {**_document(), "optional": True}
            return {**self._of({**schema, "type": others[0]}), "optional": "null" in kinds}
        found = {"optional": False, **self._of_kind(kinds, schema), **_said(schema)}
        if "default" in schema and schema["default"] is not None:
            found["default"] = schema["default"]
        if "name" in found:  # the last member: it tells beginnings of records apart
            found["name"] = found.pop("name")
        return found

    def _one_of(self, schema: JsonSchema, branches: list[JsonSchema]) -> ConnectSchema:
        """Null and one other is an optional value; more are a document."""
        others = [each for each in branches if each != {"type": "null"}]
        optional = len(others) < len(branches)
        if len(others) != 1:
            return {**_document(), "optional": optional}
        found = self.of(others[0])
        if schema.get("default") is not None:
            found.setdefault("default", schema["default"])
        return {**found, "optional": optional or found["optional"]}

    def _of_kind(self, kind: object, schema: JsonSchema) -> ConnectSchema:
        told = schema.get("connect.type")
        if told == "map":
            return {"type": "map"}
        if isinstance(told, str):
            return {"type": _CONNECT.get(told, told)}
        if kind == "object" and isinstance(schema.get("properties"), dict):
            return structure(self._fields(schema["properties"]), None)
        if kind == "array" and isinstance(schema.get("items"), dict):
            return {"type": "array", "items": self.of(schema["items"])}
        if not isinstance(kind, str) or kind not in _TYPES:
            return _document()
        format_ = schema.get("format")
        if kind == "string" and isinstance(format_, str) and format_ in _FORMATS:
            return {"type": "string", "name": _FORMATS[format_], "version": 1}
        return {"type": _TYPES[kind]}

    def _fields(self, properties: Mapping[str, JsonSchema]) -> list[ConnectSchema]:
        """The fields in Connect's order; those without a number keep theirs, behind."""
        found = [
            (_index(each), {**self.of(each), "field": name}) for name, each in properties.items()
        ]
        return [field for _, field in sorted(found, key=lambda each: each[0])]


def _index(schema: JsonSchema) -> float:
    index = schema.get("connect.index") if isinstance(schema, dict) else None
    return index if isinstance(index, int) else float("inf")


def _document() -> ConnectSchema:
    """What has no one type: its JSON is kept."""
    return {**structure([], UNION), "optional": False}


def _said(schema: JsonSchema) -> ConnectSchema:
    """What a part says of its Connect schema by itself."""
    found: ConnectSchema = {}
    if isinstance(parameters := schema.get("connect.parameters"), dict):
        found["parameters"] = parameters
    if isinstance(version := schema.get("connect.version"), int):
        found["version"] = version
    if isinstance(title := schema.get("title"), str):
        found["name"] = title
    return found
