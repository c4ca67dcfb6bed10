"""The same records in Avro, as Confluent's AvroConverter writes them with a schema registry.

A frame of five bytes with the schema's id, then the value. Connect's schemas become Avro's as the
converter makes them; what it adds for types of Connect's own is there, too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from fastavro import parse_schema, schemaless_writer

from bench.compare.debezium import connect_row, envelope, envelope_schema, key_schema
from bench.compare.job import Column
from bench.compare.workloads import Group

Register = Callable[[str, str], int]
"""Gives the id of a schema under a subject."""

_TYPES = {"int32": "int", "int64": "long", "string": "string", "bytes": "bytes"}
_SAID = ("version", "parameters", "default", "name")
"""What a type says of its Connect schema."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_DECIMALS = ("scale", "connect.decimal.precision")


def unregistered(_subject: str, _schema: str) -> int:
    """An id of nobody's: for records that are read without a registry."""
    return 1


def registered(url: str) -> Register:
    """Writes schemas into the registry whose Confluent API has this address."""
    client = SchemaRegistryClient({"url": url})
    return lambda subject, schema: client.register_schema(subject, Schema(schema, "AVRO"))


def avro_key_of(topics: Iterable[tuple[str, str]], register: Register) -> Callable[[Group], bytes]:
    """How a record's key is written. ``topics``: of each table its topic and its name."""
    writers = [
        _writer(f"{topic}-key", avro_schema(key_schema(table)), register) for topic, table in topics
    ]
    return lambda group: writers[group.table]({"id": group.rows[0].key})


def debezium_avro(
    topics: Iterable[tuple[str, str]], columns: tuple[Column, ...], register: Register
) -> Callable[[int, Group, int | None], bytes]:
    """How a record's value is written, about 200 bytes."""
    named = list(topics)
    writers = [
        _writer(f"{topic}-value", value_schema(table, columns), register) for topic, table in named
    ]

    def message(number: int, group: Group, sent_ms: int | None) -> bytes:
        table = named[group.table][1]
        return writers[group.table](envelope(number, table, group, sent_ms, connect_row))

    return message


def value_schema(table: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    """The Avro schema of a table's envelopes."""
    return avro_schema(envelope_schema(table, columns))


def _writer(
    subject: str, schema: dict[str, Any], register: Register
) -> Callable[[dict[str, Any]], bytes]:
    frame = b"\0" + register(subject, json.dumps(schema)).to_bytes(4, "big")
    parsed = parse_schema(schema)

    def write(value: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        out.write(frame)
        schemaless_writer(out, parsed, value)
        return out.getvalue()

    return write


def avro_schema(connect: dict[str, Any]) -> dict[str, Any]:
    """A Connect schema of a structure as the converter writes it in Avro."""
    made: dict[str, Any] = _type_of(connect, set())
    return made


def _type_of(connect: dict[str, Any], known: set[str]) -> Any:
    """``known``: records that are written out already, and are named from there on."""
    if connect["type"] == "struct":
        return _record(connect, known)
    said = {f"connect.{name}": connect[name] for name in _SAID if name in connect}
    if not said:
        return _TYPES[connect["type"]]
    found = {"type": _TYPES[connect["type"]], **said}
    if connect.get("name") == _DECIMAL:
        scale, precision = (connect["parameters"][name] for name in _DECIMALS)
        found |= {"scale": int(scale), "precision": int(precision), "logicalType": "decimal"}
    return found


def _record(connect: dict[str, Any], known: set[str]) -> Any:
    if connect["name"] in known:
        return connect["name"]
    known.add(connect["name"])
    namespace, _, name = connect["name"].rpartition(".")
    fields = [_field(field, known) for field in connect["fields"]]
    said = {f"connect.{name}": connect[name] for name in ("version", "name") if name in connect}
    return {"type": "record", "name": name, "namespace": namespace, "fields": fields, **said}


def _field(field: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """A union's first branch is that of its default."""
    type_, default = _type_of(field, known), field.get("default")
    if not field["optional"]:
        return {"name": field["field"], "type": type_}
    type_ = ["null", type_] if default is None else [type_, "null"]
    return {"name": field["field"], "type": type_, "default": default}
