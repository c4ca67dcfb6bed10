"""What Debezium's connectors write besides plain rows, and rows that only look like that."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from datetime import date
from typing import Any

from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from tests.changes.formats.cases import Case
from tests.changes.formats.debezium.messages import (
    BARE,
    NAMED,
    POSTGRES,
    UNAVAILABLE,
    dumps,
    envelope,
    record,
    structure,
    typed,
    wrapped,
)

LOOK_ALIKE: list[dict[str, Any]] = [
    {"id": 1, "status": "open", "event_count": 4},
    {"id": 1, "status": "END", "event_count": 4, "note": "x"},
    {"id": 1, "ts_ms": 5},
    {"id": 1, "op": "x", "source": "web"},
    {"id": 1, "op": "c", "source": None},
    {"id": 1, "op": "c", "source": {"a": 1}},
    {"id": 1, "op": "u", "before": "x", "after": "y"},
    {"id": 1, "aggregate_type": "x", "type": "y"},
]
TICKS = structure("s.shop.ticks.Value", {"ts_ms": "int64"})


def text_of(value: Any) -> str | None:
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    return None if value is None else str(value)


def tick(ts_ms: int) -> bytes:
    return record({"schema": TICKS, "payload": {"ts_ms": ts_ms}})


def of_schema(schema: Any, place: str) -> Case:
    """A schema that can't be read."""
    value = wrapped(envelope("c", {"id": 1, "d": 5}), {"id": "int32"})
    said = f"the schema of the {place} can't be read"
    says = f"numbers of days would be kept as text: the {place}'s schema is {schema}"
    if place == "key":
        key = {"schema": schema, "payload": {"id": 1}}
        return Case(says, record(value, key), unfit=said)
    return Case(says, record(value | {"schema": schema}, {"id": 1}), unreadable=said)


def printed_whole() -> bytes:
    """A record whose schema has each member, also those that are not there."""
    days = ("int32", "io.debezium.time.Date")
    value = wrapped(envelope("c", {"id": 1, "d": 5}), {"id": "int32", "d": days})
    value["schema"] |= {"field": None, "parameters": None, "default": None, "doc": None}
    return record(value, {"id": 1})


OCTETS = UNAVAILABLE.encode()
GEOMETRY = "io.debezium.data.geometry."
PLACEHOLDERS: dict[str, tuple[Any, Any]] = {
    "float[]": ("array", [float(byte) for byte in OCTETS]),
    "numeric[]": ("array", [base64.b64encode(bytes([byte])).decode() for byte in OCTETS]),
    "numeric[] of any scale": (
        "array",
        [{"scale": 0, "value": base64.b64encode(bytes([byte])).decode()} for byte in OCTETS],
    ),
    "uuid[]": ("array", [str(uuid.UUID(bytes=hashlib.md5(OCTETS).digest(), version=3))]),
    "binary.handling.mode=hex": ("string", OCTETS.hex()),
    "geometry": (
        ("struct", f"{GEOMETRY}Geometry"),
        {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326},
    ),
    "geography": (
        ("struct", f"{GEOMETRY}Geography"),
        {"wkb": "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==", "srid": 4326},
    ),
}


def point() -> bytes:
    """A point that was not sent: Java prints its coordinates with an exponent."""
    point = b'{"x":-9.9999999E7,"y":-9.9999999E7,"wkb":"AQEAAAAAAAD8g9eXwQAAAPyD15fB","srid":null}'
    value = wrapped(envelope("u", {"id": 1, "v": "POINT"}, source=POSTGRES),
                    {"id": "int32", "v": ("struct", f"{GEOMETRY}Point")})  # fmt: skip
    return pack(b'{"id":1}', dumps(value).replace(b'"POINT"', point))


def digits(kind: str, number: str) -> Case:
    """A number that is too large for a float, and no infinity."""
    good = dumps(wrapped(envelope("c", {"id": 1, "v": 1.25}), {"id": "int32", "v": kind}))
    return Case(f"too large for a {kind}: {number[:20]}",
                pack(b'{"id":1}', good.replace(b"1.25", number.encode())),
                unfit=f"shop.orders: v: '{number[:60]}' is not a {kind}",
                good=pack(b'{"id":1}', good))  # fmt: skip


QUIRKS = [
    *(
        Case(f"columns may be called as members of other records are: {row}",
             record(row | {"__deleted": "false"}, {"id": 1}),
             rows=[("U", {name: text_of(value) for name, value in row.items()})],
             options=FormatOptions(extra=NAMED), good=BARE)
        for row in LOOK_ALIKE
    ),
    Case("a schema's name tells a table's row from a heartbeat", tick(5), keys=("ts_ms",),
         rows=[("U", {"ts_ms": 5})], table="shop.ticks", good=tick(9)),
    Case("a record of CloudEvents: its members are no columns", unreadable="a CloudEvents record",
         messages=record({"id": "x", "source": "/debezium", "specversion": "1.0",
                          "data": {"op": "c"}})),
    *(
        of_schema(schema, place)
        for schema in ("text", {"type": "struct", "fields": "x"}, [], 5)
        for place in ("value", "key")
    ),
    Case("a schema may print each member, also those that are not there", printed_whole(),
         rows=[("U", {"id": 1, "d": date(1970, 1, 6)})]),
    *(
        Case(f"what was not sent has a placeholder of its type's form, and what is stored stays: "
             f"{says}",
             typed("u", {"id": "int32", "v": kind}, {"id": 1, "v": given}, source=POSTGRES),
             rows=[("U", {"id": 1})])
        for says, (kind, given) in PLACEHOLDERS.items()
    ),
    Case("a point that was not sent", point(), rows=[("U", {"id": 1})]),
    *(digits(kind, number) for kind in ("double", "float")
      for number in ("1e400", "-1e999", "9" * 400)),
]  # fmt: skip
