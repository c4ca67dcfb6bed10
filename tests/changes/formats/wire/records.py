"""Writes Debezium's records as Confluent's Avro converter does, and keeps their schemas."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import msgspec

from changes.formats.engine.format import pack, unpack
from changes.formats.wire.avro import AvroTranslation
from changes.formats.wire.schemas import Reference, Schema, SchemaId
from changes.model.model import FormatOptions
from changes.model.registry import Registry, RegistryKind
from tests.changes.formats.debezium.messages import (
    MYSQL,
    envelope,
    key_with_schema,
    record,
    structure,
)

_AVRO = {
    "boolean": "boolean", "int8": "int", "int16": "int", "int32": "int", "int64": "long",
    "float": "float", "double": "double", "string": "string", "bytes": "bytes",
}  # fmt: skip
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}


def avro_schema(schema: Mapping[str, Any], seen: dict[str, Any] | None = None) -> Any:
    """A Connect schema (JsonConverter's form) as AvroData makes it."""
    seen = {} if seen is None else seen
    made = _not_null(schema, seen)
    return ["null", made] if schema.get("optional") else made


def _not_null(schema: Mapping[str, Any], seen: dict[str, Any]) -> Any:
    name, told = schema.get("name"), schema["type"]
    if told == "struct":
        full = name or f"Struct{len(seen)}"
        if full in seen:
            assert seen[full] == [each["field"] for each in schema["fields"]], full
            return full
        seen[full] = [each["field"] for each in schema["fields"]]
        fields = [_field(each, seen) for each in schema["fields"]]
        made = {"type": "record", "name": full, "fields": fields}
    elif told == "array":
        made = {"type": "array", "items": avro_schema(schema["items"], seen)}
    elif told == "map":
        made = {"type": "map", "values": avro_schema(schema["values"], seen)}
    else:
        made = {"type": _AVRO[told]}
        if told in ("int8", "int16"):
            made["connect.type"] = told
    if name is not None:
        made["connect.name"] = name
    if "version" in schema:
        made["connect.version"] = schema["version"]
    if "parameters" in schema:
        made["connect.parameters"] = schema["parameters"]
    return made


def _field(schema: Mapping[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": schema["field"], "type": avro_schema(schema, seen)}
    if schema.get("optional"):
        made["default"] = None
    return made


def avro_value(schema: Mapping[str, Any], value: Any) -> Any:
    """A value of JsonConverter's as fastavro writes it."""
    if value is None:
        return None
    told = schema["type"]
    if told == "bytes":
        return base64.b64decode(value)
    if told in ("float", "double"):
        return _FLOATS.get(value, value)
    if told == "struct":
        return {
            each["field"]: avro_value(each, value.get(each["field"])) for each in schema["fields"]
        }
    if told == "array":
        return [avro_value(schema["items"], each) for each in value]
    if told == "map":
        return {key: avro_value(schema["values"], each) for key, each in value.items()}
    return value


def avro_bytes(schema: Any, value: Any) -> bytes:
    """A value without a frame."""
    into = io.BytesIO()
    fastavro.schemaless_writer(into, fastavro.parse_schema(schema), value)
    return into.getvalue()


class Kept:
    """A registry's folder, and what writes records with schemas that are kept there."""

    def __init__(self, folder: Path, kind: RegistryKind = "confluent") -> None:
        self.registry = Registry(kind, folder)
        self._ids: dict[Schema, str] = {}
        self._written: dict[SchemaId, Schema] = {}

    def options(self, **extra: str) -> FormatOptions:
        """A pipeline's, with this registry."""
        return FormatOptions(extra=extra, registry=self.registry)

    def keep(self, schema: Schema, identity: SchemaId | None = None) -> SchemaId:
        """Keep a schema, by default under the next id."""
        if identity is None:
            identity = SchemaId("id", self._ids.setdefault(schema, str(len(self._ids) + 1)))
        if self._written.get(identity) != schema:
            self.registry.folder.mkdir(exist_ok=True)
            (self.registry.folder / identity.file_name).write_bytes(msgspec.json.encode(schema))
            self._written[identity] = schema
        return identity

    def avro(self, schema: Any, value: Any, references: Sequence[Any] = ()) -> bytes:
        """A framed Avro value."""
        identity = self.keep(Schema("AVRO", json.dumps(schema)))
        return framed(identity, avro_bytes(schema, value))

    def as_avro(self, packed: bytes) -> bytes:
        """A record of Debezium's JSON with schemas as the Avro converter writes it."""
        found = unpack(packed)
        key, value = (None if each is None else self._avro(each) for each in found[:2])
        return pack(key, value, found.headers)

    def _avro(self, text: bytes) -> bytes:
        wrapped = json.loads(text)
        schema = wrapped["schema"]
        return self.avro(avro_schema(schema), avro_value(schema, wrapped["payload"]))


def framed(identity: SchemaId, payload: bytes) -> bytes:
    """A payload behind its id of four bytes."""
    return b"\0" + int(identity.value).to_bytes(4, "big") + payload


STRUCTURES = {
    "v": {"scale": "int32", "value": "bytes"},
    "p": dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "nanos"), "int32"),
}
"""The members of the structures among the columns: Avro has to know them."""

SOURCE = structure(
    "io.debezium.connector.mysql.Source",
    {name: "string" if isinstance(each, str) else "int64" for name, each in MYSQL.items()},
)


def envelope_schema(fields: dict[str, Any], name: str = "s.shop.orders") -> dict[str, Any]:
    """The schema of an envelope, whole: with that of its source."""
    row = structure(f"{name}.Value", fields)
    for each in row["fields"]:
        if each["field"] in STRUCTURES:
            each |= structure(each["name"], STRUCTURES[each["field"]])
            each["version"] = 1
    members = [{**row, "field": "before"}, {**row, "field": "after"}]
    members += [{**SOURCE, "field": "source", "optional": False}]
    members += [{"type": "string", "optional": False, "field": "op"}]
    members += [{"type": "int64", "optional": True, "field": "ts_ms"}]
    return {"type": "struct", "fields": members, "optional": False, "name": f"{name}.Envelope"}


def record_of(*types: Any, name: str = "r") -> dict[str, Any]:
    """The schema of a record with fields a, b, …"""
    fields = [{"name": name, "type": type_} for name, type_ in zip("abcdefgh", types, strict=False)]
    return {"type": "record", "name": name, "fields": fields}


def translated(schema: Any, data: bytes, references: tuple[Reference, ...] = ()) -> Any:
    """The JSON of a payload, parsed."""
    made = AvroTranslation(Schema("AVRO", json.dumps(schema), references))
    return json.loads(made.wrapped(data, 0, None))


FIELDS = {"id": "int32", "name": "string"}


def json_record(op: str, row: Any, before: Any = None, fields: Mapping[str, Any] = FIELDS) -> bytes:
    """A change as JSON with schemas; columns in their order, absent ones null."""
    row, before = (
        None if each is None else {name: each.get(name) for name in fields}
        for each in (row, before)
    )
    return record(
        {"schema": envelope_schema(fields), "payload": envelope(op, row, before)},
        key_with_schema({"id": (row or before or {})["id"]}, {"id": "int32"}),
    )


def json_schema_of(**columns: str) -> dict[str, Any]:
    """A JSON Schema of columns of these types."""
    return {"type": "object", "properties": {n: {"type": kind} for n, kind in columns.items()}}
