"""Reads Alibaba DTS's records: the head by hand, for routing, and whole records by fastavro."""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from changes.formats.engine.layout import Refused
from changes.model.model import TableName
from settings.counted import counted

# The Avro schema of Alibaba DTS's records, which no message carries.

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

Images = list[Any]
"""A row's values in the order of ``WholeRecord.fields``: None, or a pair of a kind's full name and
its members. Of EmptyObject the symbol, alone or as the second of a pair."""

_LONGEST_LONG = 10
"""The most bytes of a number."""


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The fields of a record before its row."""

    timestamp_s: int
    source: str
    operation: str
    object_name: str | None


@dataclass(frozen=True, slots=True)
class WholeRecord:
    """A whole record; images are a text where the record is a statement."""

    timestamp_s: int
    source: str
    operation: str
    object_name: str | None
    tags: Mapping[str, str]
    fields: tuple[tuple[str, int], ...]
    before: Images | str | None
    after: Images | str | None
    transaction: str
    """Its number at the source, empty or 0 where that is not told."""


class _Cursor:
    """Reads Avro's primitive values one after another; raises Refused at the end."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._at = 0

    def long(self) -> int:
        """Seven bits a byte, the lowest first, the sign in the lowest bit of all."""
        shift = total = 0
        for _ in range(_LONGEST_LONG):
            if self._at >= len(self._value):
                raise Refused("the message ends too early")
            byte = self._value[self._at]
            self._at += 1
            total |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (total >> 1) ^ -(total & 1)
            shift += 7
        raise Refused("a number of more than 10 bytes")

    def skip_text(self) -> None:
        length = self._length()
        self._at += length

    def text(self) -> str:
        length = self._length()
        raw = self._value[self._at : self._at + length]
        self._at += length
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"a text that is not UTF-8: {error.reason}") from error

    def symbol(self, symbols: tuple[str, ...]) -> str:
        number = self.long()
        if not 0 <= number < len(symbols):
            raise Refused(f"{number} is no number of {symbols[0]}, {symbols[1]}…")
        return symbols[number]

    def _length(self) -> int:
        length = self.long()
        if not 0 <= length <= len(self._value) - self._at:
            left = len(self._value) - self._at
            raise Refused(f"a text of {counted(length, 'byte')} where {left} are left")
        return length


def read_head(value: bytes) -> RecordHead:
    """Raises Refused where the value does not begin like a record."""
    cursor = _Cursor(value)
    cursor.long()  # version
    cursor.long()  # id
    timestamp_s = cursor.long()
    for _ in range(3):  # sourcePosition, safeSourcePosition, sourceTxid
        cursor.skip_text()
    source = cursor.symbol(SOURCES)
    cursor.skip_text()
    operation = cursor.symbol(OPERATIONS)
    branch = cursor.long()
    if branch not in (0, 1):
        raise Refused("objectName is neither null nor text")
    return RecordHead(timestamp_s, source, operation, cursor.text() if branch else None)


def read_record(value: bytes) -> WholeRecord:
    """Raises Refused where the value is no record of either layout."""
    source = io.BytesIO(value)
    try:
        raw = _reader()(source)
        fields = raw["fields"]
        columns = [(f["name"], f["dataTypeNumber"]) for f in fields or () if isinstance(f, dict)]
    except (
        EOFError, IndexError, KeyError, OverflowError, StopIteration, TypeError, ValueError,
        struct.error,
    ) as error:  # fmt: skip
        raise Refused(f"not a record of Alibaba DTS: {error or type(error).__name__}") from error
    _check_rest(value[source.tell() :])
    return WholeRecord(
        raw["sourceTimestamp"],
        raw["source"]["sourceType"],
        raw["operation"],
        raw["objectName"],
        raw["tags"],
        tuple(columns),
        raw["beforeImages"],
        raw["afterImages"],
        raw["sourceTxid"],
    )


def _check_rest(rest: bytes) -> None:
    """Refuses all but what one of the layouts has at its end: a time, one number."""
    if not rest:
        return
    if len(rest) > _LONGEST_LONG or rest[-1] >= 0x80 or any(byte < 0x80 for byte in rest[:-1]):
        raise Refused(f"{counted(len(rest), 'byte')} left behind the record: no bornTimestamp")


@functools.cache
def _reader() -> Callable[[io.BytesIO], Any]:
    # Only here: a pipeline that reads JSON need not load it.
    import fastavro

    schema = fastavro.parse_schema(RECORD)

    def read(source: io.BytesIO) -> Any:
        return fastavro.schemaless_reader(source, schema, None, return_record_name=True)

    return read


def table_name(object_name: str | None) -> TableName | None:
    """``database.table``, or with a schema between, which then belongs to the database's name."""
    parts = [_unescaped(part) for part in (object_name or "").split(".")]
    if len(parts) not in (2, 3) or not all(parts):
        return None
    return TableName(".".join(parts[:-1]), parts[-1])


def database_name(object_name: str | None) -> str:
    """The database that a record of a statement names; empty where it names none."""
    return _unescaped((object_name or "").split(".")[0])


def _unescaped(name: str) -> str:
    """Dots inside names are written as the six signs ``\\u002E``."""
    return name.replace("\\u002E", ".").replace("\\u002e", ".")
