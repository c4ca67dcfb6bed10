"""The Avro schema of Alibaba DTS's records, which no message carries.

There are two layouts: some writers end a record with ``bornTimestamp``. The rest of a message
behind the common fields shows which one it is.
"""

from __future__ import annotations

from typing import Any

_NAMESPACE = "com.alibaba.dts.formats.avro"


def _record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    members = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": members}


_MAYBE_INT = ["null", "int"]

_DATE_TIME = _record(
    "DateTime",
    ("year", _MAYBE_INT),
    ("month", _MAYBE_INT),
    ("day", _MAYBE_INT),
    ("hour", _MAYBE_INT),
    ("minute", _MAYBE_INT),
    ("second", _MAYBE_INT),
    ("millis", _MAYBE_INT),
)

_VALUES: list[Any] = [
    "null",
    _record("Integer", ("precision", "int"), ("value", "string")),
    _record("Character", ("charset", "string"), ("value", "bytes")),
    _record("Decimal", ("value", "string"), ("precision", "int"), ("scale", "int")),
    _record("Float", ("value", "double"), ("precision", "int"), ("scale", "int")),
    _record("Timestamp", ("timestamp", "long"), ("millis", "int")),
    _DATE_TIME,
    _record("TimestampWithTimeZone", ("value", "DateTime"), ("timezone", "string")),
    _record("BinaryGeometry", ("type", "string"), ("value", "bytes")),
    _record("TextGeometry", ("type", "string"), ("value", "string")),
    _record("BinaryObject", ("type", "string"), ("value", "bytes")),
    _record("TextObject", ("type", "string"), ("value", "string")),
    {"type": "enum", "name": "EmptyObject", "symbols": ["NULL", "NONE"]},
]

SOURCES = (
    "MySQL", "Oracle", "SQLServer", "PostgreSQL", "MongoDB", "Redis", "DB2", "PPAS", "DRDS",
    "HBASE", "HDFS", "FILE", "OTHER",
)  # fmt: skip

OPERATIONS = (
    "INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT", "HEARTBEAT",
    "CHECKPOINT", "COMMAND", "FILL", "FINISH", "CONTROL", "RDB", "NOOP", "INIT",
)  # fmt: skip

_SOURCE = _record(
    "Source",
    ("sourceType", {"type": "enum", "name": "SourceType", "symbols": list(SOURCES)}),
    ("version", "string"),
)

_FIELD = _record("Field", ("name", "string"), ("dataTypeNumber", "int"))

COMMON: tuple[tuple[str, Any], ...] = (
    ("version", "int"),
    ("id", "long"),
    ("sourceTimestamp", "long"),
    ("sourcePosition", "string"),
    ("safeSourcePosition", "string"),
    ("sourceTxid", "string"),
    ("source", _SOURCE),
    ("operation", {"type": "enum", "name": "Operation", "symbols": list(OPERATIONS)}),
    ("objectName", ["null", "string"]),
    ("processTimestamps", ["null", {"type": "array", "items": "long"}]),
    ("tags", {"type": "map", "values": "string"}),
    ("fields", ["null", "string", {"type": "array", "items": _FIELD}]),
    ("beforeImages", ["null", "string", {"type": "array", "items": _VALUES}]),
    ("afterImages", ["null", "string", {"type": "array", "items": [
        kind if isinstance(kind, str) else kind["name"] for kind in _VALUES
    ]}]),
)  # fmt: skip
"""The fields of both layouts, in order."""

RECORD: dict[str, Any] = _record("Record", *COMMON) | {"namespace": _NAMESPACE}
"""The schema of what both layouts have."""
