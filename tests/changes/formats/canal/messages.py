"""Builds Canal messages for the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from changes.formats.canal.json import CanalJson
from changes.model.model import Changes, FormatOptions, Mode, ZeroDates
from changes.model.records import Values

TYPES = {"id": "int(11)", "name": "varchar(64)", "price": "decimal(10,2)"}


def message(
    kind: str = "INSERT",
    data: Any = ({"id": "1", "name": "a", "price": "1.50"},),
    old: Any = None,
    *,
    types: Any = TYPES,
    keys: Any = ("id",),
    drop: Sequence[str] = (),
    **others: Any,
) -> bytes:
    """One message as Canal writes it; ``drop`` names members to leave out."""
    members = {
        "data": data,
        "database": "shop",
        "es": 1589373515000,
        "id": 3,
        "isDdl": False,
        "mysqlType": types,
        "old": old,
        "pkNames": keys,
        "sql": "",
        "sqlType": None,
        "table": "orders",
        "ts": 1589373515477,
        "type": kind,
    } | others
    return json.dumps({k: v for k, v in members.items() if k not in drop}).encode()


def row(id: str | None = "1", name: str | None = "a", price: str | None = "1.50") -> dict[str, Any]:
    return {"id": id, "name": name, "price": price}


def update(data: Any, old: Any = None, **others: Any) -> bytes:
    return message("UPDATE", data, old, **others)


def decode(
    *values: bytes,
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = None,
    time_zone: str = "UTC",
    zero_dates: ZeroDates = "null",
) -> Changes:
    """Decode messages at offsets 0, 1, … of partition 7 by a fresh decoder; there must be rows.

    As the daemon gives them: in one piece of memory.
    """
    decoder = CanalJson(FormatOptions(time_zone, zero_dates)).table_decoder(mode, keys)
    changes = decoder.decode(7, range(len(values)), Values.of(values))
    assert changes is not None
    return changes


def column(text_type: str, *texts: str | None, time_zone: str = "UTC") -> pa.ChunkedArray:
    """Decode one column's values, each a row of one message."""
    rows = [{"id": str(place), "v": text} for place, text in enumerate(texts)]
    value = message(data=rows, types={"id": "int", "v": text_type})
    return decode(value, time_zone=time_zone).table["v"]
