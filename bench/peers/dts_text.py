"""Tencent DTS's protobuf as Canal's JSON, for programs that read only that.

Spark's own reader of protobuf is not on Maven Central for this release: in Structured Streaming a
Python function is what is left. One message holds one statement's rows in the comparison.
"""

from __future__ import annotations

from typing import Any

import msgspec

from changes.formats.engine.proto_files import messages

_ROWS = 2
_OPS = ("INSERT", "UPDATE", "DELETE")
_STRING = 13


def canal_text(value: bytes | bytearray) -> str | None:
    """Table, type and rows of a message's statement; None where it has none."""
    proto = messages("tencent/dts.proto")
    entries = proto["Entries"].FromString(proto["Envelope"].FromString(bytes(value)).data)
    for entry in entries.items:
        if entry.header.messageType == _ROWS:
            return _text(entry.header.tableName, entry.event.dmlEvent)
    return None


def _text(table: str, event: Any) -> str:
    names = [column.name for column in event.columns]
    rows = [row.newColumns or row.oldColumns for row in event.rows]
    data = [
        {
            name: value.bv.decode() if value.dataType == _STRING else value.sv
            for name, value in zip(names, row, strict=True)
        }
        for row in rows
    ]
    told = {"table": table, "type": _OPS[event.dmlEventType], "data": data}
    return msgspec.json.encode(told).decode()
