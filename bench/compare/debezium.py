"""A workload's changes as Debezium's records: JSON with schemas, of MySQL's connector.

What the connector writes with its defaults, but for tombstones (``tombstones.on.delete=false``):
each column in a type of its own, the whole block of the source, the schema in each record.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from bench.compare.job import NAMESPACE, Column
from bench.compare.rows import CITIES
from bench.compare.workloads import Change, Group

PREFIX = "source"
"""The connector's ``topic.prefix``."""
_MS = 1_767_225_600_000
_BORN = datetime(2026, 1, 1, tzinfo=UTC)
_OPS = {"I": "c", "U": "u", "D": "d"}

_DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}
_TYPES: dict[str, dict[str, Any]] = {
    "bigint": {"type": "int64"},
    "int": {"type": "int32"},
    "varchar": {"type": "string"},
    "decimal": _DECIMAL,
    "datetime": {"type": "int64", "name": "io.debezium.time.Timestamp", "version": 1},
}
_SOURCE = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "int64",
    "snapshot": "snapshot", "db": "string", "sequence": "string?", "ts_us": "int64?",
    "ts_ns": "int64?", "table": "string?", "server_id": "int64", "gtid": "string?",
    "file": "string", "pos": "int64", "row": "int32", "thread": "int64?", "query": "string?",
}  # fmt: skip
"""The block of the source: its members' types, optional ones with a question mark."""
_SNAPSHOT = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,"
        "incremental"
    },
    "default": "false",
}

Row = Callable[[int, int], dict[str, Any]]
"""A row's values by its key and version."""


def row(key: int, version: int) -> dict[str, Any]:
    """A row as Connect's JSON has it: the decimal's bytes in base64, the time in ms."""
    values = connect_row(key, version)
    return {**values, "amount": base64.b64encode(values["amount"]).decode()}


def connect_row(key: int, version: int) -> dict[str, Any]:
    """A row as the connector hands it to a converter: the decimal as bytes, the time in ms."""
    cents = version % 10_000_000
    created = _BORN.replace(
        day=key % 28 + 1, hour=key % 24, minute=key % 60, second=key % 59
    ).timestamp()
    return {
        "id": key,
        "name": f"customer {key}",
        "email": f"u{key}@example.com",
        "city": CITIES[key & 7],
        "amount": cents.to_bytes(cents.bit_length() // 8 + 1, "big", signed=True),
        "qty": version % 1000,
        "created": int(created) * 1000,
    }


def key_of(names: list[str]) -> Callable[[Group], bytes]:
    """How a record's key is written."""
    schemas = [_encode(key_schema(name)) for name in names]

    def key(group: Group) -> bytes:
        (one,) = group.rows
        schema = msgspec.Raw(schemas[group.table])
        return _encode({"schema": schema, "payload": {"id": one.key}})

    return key


def debezium_json(
    names: list[str], columns: tuple[Column, ...]
) -> Callable[[int, Group, int | None], bytes]:
    """How a record's value is written, about 3.3 kB: one row, both images of an update."""
    schemas = [msgspec.Raw(_encode(envelope_schema(name, columns))) for name in names]

    def message(number: int, group: Group, sent_ms: int | None) -> bytes:
        payload = envelope(number, names[group.table], group, sent_ms, row)
        return _encode({"schema": schemas[group.table], "payload": payload})

    return message


def envelope(
    number: int, table: str, group: Group, sent_ms: int | None, row: Row
) -> dict[str, Any]:
    """What a record says: one row, both images of an update."""
    (one,) = group.rows
    return {
        "before": _image(one, one.before, sent_ms, row),
        "after": _image(one, one.after, sent_ms, row),
        "source": _source(number, table),
        "transaction": None,
        "op": _OPS[group.op],
        "ts_ms": _MS,
        "ts_us": _MS * 1000,
        "ts_ns": _MS * 1_000_000,
    }


def _image(
    change: Change, version: int | None, sent_ms: int | None, row: Row
) -> dict[str, Any] | None:
    if version is None:
        return None
    values = row(change.key, version)
    return values if sent_ms is None else {**values, "sent": sent_ms}


def _source(number: int, table: str) -> dict[str, Any]:
    return {
        "version": "3.4.0.Final", "connector": "mysql", "name": PREFIX, "ts_ms": _MS,
        "snapshot": "false", "db": NAMESPACE, "sequence": None, "ts_us": _MS * 1000,
        "ts_ns": _MS * 1_000_000, "table": table, "server_id": 1, "gtid": None,
        "file": "bin.000001", "pos": 1000 + number, "row": 0, "thread": 7, "query": None,
    }  # fmt: skip


def key_schema(table: str) -> dict[str, Any]:
    """Connect's schema of a record's key."""
    fields = [{"type": "int64", "optional": False, "field": "id"}]
    return _struct(f"{PREFIX}.{NAMESPACE}.{table}.Key", fields)


def envelope_schema(name: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    """Connect's schema of a record's value."""
    of_table = f"{PREFIX}.{NAMESPACE}.{name}"
    fields = [
        {
            **_TYPES[column.mysql.partition("(")[0]],
            "optional": column.name != "id",
            "field": column.name,
        }
        for column in columns
    ]
    image = {**_struct(f"{of_table}.Value", fields), "optional": True}
    told = [_member(member, type_) for member, type_ in _SOURCE.items()]
    source = {**_struct("io.debezium.connector.mysql.Source", told), "version": 1}
    order = ("id", "string"), ("total_order", "int64"), ("data_collection_order", "int64")
    block = _struct("event.block", [_member(member, type_) for member, type_ in order])
    return _struct(
        f"{of_table}.Envelope",
        [
            {**image, "field": "before"},
            {**image, "field": "after"},
            {**source, "field": "source"},
            {**block, "optional": True, "version": 1, "field": "transaction"},
            _member("op", "string"),
            *(_member(member, "int64?") for member in ("ts_ms", "ts_us", "ts_ns")),
        ],
    )


def _member(name: str, type_: str) -> dict[str, Any]:
    if type_ == "snapshot":
        return {**_SNAPSHOT, "field": name}
    return {"type": type_.rstrip("?"), "optional": type_.endswith("?"), "field": name}


def _struct(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, "optional": False, "name": name}


_encode = msgspec.json.Encoder().encode
