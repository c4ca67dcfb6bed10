"""Builds Maxwell's and GoldenGate's records for the tests, and decodes them."""

from __future__ import annotations

import json
from typing import Any

from changes.formats import FORMATS
from changes.formats.engine.format import Format, pack
from changes.model.model import Changes, FormatOptions, Mode

RECORD_KEY = b'{"database":"shop","table":"orders","pk.id":1}'


def maxwell(
    kind: str = "insert",
    data: Any = None,
    old: Any = None,
    *,
    key: bytes | None = None,
    **members: Any,
) -> bytes:
    """One packed record; ``old`` and the key's columns are left out where they are None."""
    told: dict[str, Any] = {"database": "shop", "table": "orders", "type": kind, "ts": 1477053217}
    told |= {"primary_key_columns": ["id"]} | members
    told["data"] = {"id": 1, "name": "a"} if data is None else data
    if old is not None:
        told["old"] = old
    return pack(key, as_json({k: v for k, v in told.items() if v is not None}))


def ogg(op: str = "I", after: Any = None, before: Any = None, **members: Any) -> bytes:
    """One message; images that are None are left out."""
    told: dict[str, Any] = {"table": "SHOP.ORDERS", "op_type": op}
    told |= {"op_ts": "2020-05-13 15:40:06.000000", "pos": "00000000000000000143"}
    told |= {"primary_keys": ["id"]} | members
    told |= {k: v for k, v in (("before", before), ("after", after)) if v is not None}
    return as_json({k: v for k, v in told.items() if v is not None})


class Number(str):
    """Digits that stand in a message as they are."""


def as_json(value: Any) -> bytes:
    """Like ``json.dumps``, but a ``Number`` is written digit by digit."""
    match value:
        case Number():
            return value.encode()
        case dict():
            return b"{" + b",".join(as_json(k) + b":" + as_json(v) for k, v in value.items()) + b"}"
        case list() | tuple():
            return b"[" + b",".join(map(as_json, value)) + b"]"
        case _:
            return json.dumps(value).encode()


def made(name: str, **extra: str) -> Format:
    """The format of that name with default options."""
    return FORMATS[name](FormatOptions(extra=extra))


def decode(
    name: str,
    *values: bytes,
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = None,
    **extra: str,
) -> Changes:
    """Decode at offsets 0, 1, … of partition 7 by a fresh decoder; there must be rows."""
    changes = made(name, **extra).table_decoder(mode, keys).decode(7, range(len(values)), values)
    assert changes is not None
    return changes


def rows(name: str, *values: bytes, **options: Any) -> list[dict[str, Any]]:
    """The decoded rows as dictionaries."""
    found: list[dict[str, Any]] = decode(name, *values, **options).table.to_pylist()
    return found
