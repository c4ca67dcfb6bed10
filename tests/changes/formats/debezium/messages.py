"""Builds Debezium records for the tests, as its documentation describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack
from changes.model.model import Changes, FormatOptions, Mode, ZeroDates

MYSQL = {
    "version": "3.0.0.Final", "connector": "mysql", "name": "s", "ts_ms": 1589373515000,
    "snapshot": "false", "db": "shop", "sequence": None, "table": "orders", "server_id": 1,
    "gtid": None, "file": "bin.000003", "pos": 154, "row": 0, "thread": 7, "query": None,
}  # fmt: skip
POSTGRES = {
    "version": "3.0.0.Final", "connector": "postgresql", "name": "s", "ts_ms": 1589373515000,
    "snapshot": "false", "db": "postgres", "sequence": '["1","2"]', "schema": "shop",
    "table": "orders", "txId": 5, "lsn": 34078720, "xmin": None,
}  # fmt: skip
ORACLE = {**POSTGRES, "connector": "oracle", "db": "ORCL"}
FORMAT = DebeziumJson(FormatOptions())
UNAVAILABLE = "__debezium_unavailable_value"
NAMED = {"default_database": "shop", "default_table": "orders"}
"""The options by which records that name no table are of this one."""

Fields = Mapping[str, Any]
"""Columns of a schema: literal type, or (literal type, semantic name), or that with parameters."""


def field(name: str, told: Any) -> dict[str, Any]:
    """A column of a Connect schema."""
    literal, semantic, parameters = (*((told,) if isinstance(told, str) else told), None, None)[:3]
    found: dict[str, Any] = {"type": literal, "optional": True, "field": name}
    if semantic is not None:
        found |= {"name": semantic, "version": 1}
    if parameters is not None:
        found["parameters"] = parameters
    return found


def structure(name: str, fields: Fields, **others: Any) -> dict[str, Any]:
    """A Connect structure, such as a key's or a row's."""
    told = [field(column, kind) for column, kind in fields.items()]
    return {"type": "struct", "fields": told, "optional": True, "name": name, **others}


def dumps(value: Any) -> bytes:
    """JSON as Kafka Connect writes it: compact, NaN as a bare word."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def envelope(
    op: str, after: Any = None, before: Any = None, source: Any = MYSQL, **others: Any
) -> dict[str, Any]:
    """The payload of a row's change."""
    return {
        "before": before, "after": after, "source": source, "op": op, "ts_ms": 1589373515477,
        "transaction": None, **others,
    }  # fmt: skip


def wrapped(payload: Any, fields: Fields, name: str = "s.shop.orders") -> dict[str, Any]:
    """A payload with its schema."""
    schema = {
        "type": "struct",
        "fields": [
            structure(f"{name}.Value", fields, field="before"),
            structure(f"{name}.Value", fields, field="after"),
            structure("io.debezium.connector.mysql.Source", {"db": "string"}, field="source"),
            field("op", "string"),
        ],
        "optional": False,
        "name": f"{name}.Envelope",
    }
    return {"schema": schema, "payload": payload}


def key_with_schema(key: Any, fields: Fields, name: str = "s.shop.orders") -> dict[str, Any]:
    """A record key with its schema."""
    return {"schema": structure(f"{name}.Key", fields), "payload": key}


def record(value: Any, key: Any = None, headers: Sequence[tuple[str, bytes | None]] = ()) -> bytes:
    """A whole record; None is an absent key or value."""
    return pack(
        None if key is None else dumps(key), None if value is None else dumps(value), headers
    )


def change(
    op: str,
    after: Any = None,
    before: Any = None,
    *,
    key: Any = ...,
    source: Any = MYSQL,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """A change of a row without schema; its key is ``id`` unless given."""
    if key is ...:
        key = {"id": (after or before)["id"]}
    return record(envelope(op, after, before, source), key, headers)


BARE = change("c", {"id": 99})
"""A record without a schema."""


def typed(
    op: str, fields: Fields, after: Any = None, before: Any = None, source: Any = MYSQL
) -> bytes:
    """A change of a row with schemas; its key is ``id``."""
    key = key_with_schema({"id": (after or before)["id"]}, {"id": fields["id"]})
    return record(wrapped(envelope(op, after, before, source), fields), key)


def decode(
    *values: bytes,
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = None,
    zero_dates: ZeroDates = "null",
    extra: dict[str, str] | None = None,
) -> Changes:
    """Decode records at offsets 0, 1, … of partition 7 by a fresh decoder; there must be rows."""
    format_ = DebeziumJson(FormatOptions(zero_dates=zero_dates, extra=extra or {}))
    changes = format_.table_decoder(mode, keys).decode(7, range(len(values)), values)
    assert changes is not None
    return changes


def rows(*values: bytes, **options: Any) -> list[dict[str, Any]]:
    """The decoded rows as Python values."""
    return decode(*values, **options).table.to_pylist()


def column(kind: Any, *given: Any, zero_dates: ZeroDates = "null") -> pa.ChunkedArray:
    """One column's values with a schema, each in a record of its own."""
    fields = {"id": "int32", "v": kind}
    values = [typed("c", fields, {"id": n, "v": value}) for n, value in enumerate(given)]
    return decode(*values, zero_dates=zero_dates).table["v"]
