"""Debezium's values of every semantic type: what the lake keeps, and what does not fit."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from changes.model.model import FormatOptions
from tests.changes.formats.cases import Case
from tests.changes.formats.debezium.messages import typed

DECIMAL = "org.apache.kafka.connect.data.Decimal"
TIME = "io.debezium.time."
DATA = "io.debezium.data."


def b64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def decimal(scale: int, precision: int | None = None) -> tuple[str, str, dict[str, str]]:
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    return ("bytes", DECIMAL, parameters)


def bits(length: int) -> tuple[str, str, dict[str, str]]:
    return ("bytes", f"{DATA}Bits", {"length": str(length)})


def moment(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]


VALUES: list[tuple[Any, Any, pa.DataType, Any]] = [
    ("int8", -128, pa.int32(), -128),
    ("int16", 32767, pa.int32(), 32767),
    ("int32", -(2**31), pa.int32(), -(2**31)),
    ("int64", -(2**63), pa.int64(), -(2**63)),
    ("boolean", True, pa.bool_(), True),
    ("float", 3.14, pa.float32(), pa.scalar(3.14, pa.float32()).as_py()),
    ("double", 0.1, pa.float64(), 0.1),
    ("string", "ä\n", pa.string(), "ä\n"),
    ("bytes", "AP8=", pa.binary(), b"\x00\xff"),
    (decimal(2, 10), b64(b"\xff\x38"), pa.decimal128(10, 2), Decimal("-2.00")),
    (decimal(2, 10), 12.3, pa.decimal128(10, 2), Decimal("12.30")),
    (decimal(0), b64(b"\x00" + b"\xff" * 8), pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (decimal(-2, 3), b64(b"\x07"), pa.decimal128(5, 0), Decimal(700)),
    (decimal(5, 2), b64(b"\x0c"), pa.decimal128(5, 5), Decimal("0.00012")),
    (decimal(3, 40), b64((10**40 - 1).to_bytes(18, "big")), pa.string(), "9" * 37 + ".999"),
    (decimal(3, 40), b64(b"\xff"), pa.string(), "-0.001"),
    (("struct", f"{DATA}VariableScaleDecimal"), {"scale": 3, "value": b64(b"\x04\xd2")},
     pa.string(), "1.234"),
    (("struct", f"{DATA}VariableScaleDecimal"), {"scale": -2, "value": b64(b"\xfb")},
     pa.string(), "-500"),
    (bits(5), b64(b"\x15"), pa.int64(), 21),
    (bits(64), "xwcAAAAAAAA=", pa.decimal128(20, 0), Decimal(0x07C7)),
    (bits(128), b64(b"\x01\x02"), pa.binary(), b"\x01\x02"),
    (("int32", f"{TIME}Date"), -1, pa.date32(), date(1969, 12, 31)),
    (("int32", f"{TIME}Time"), 36803001, pa.string(), "10:13:23.001000"),
    (("int64", f"{TIME}MicroTime"), -3020399000000, pa.string(), "-838:59:59"),
    (("int64", f"{TIME}NanoTime"), 1, pa.string(), "00:00:00.000000001"),
    (("int64", f"{TIME}Timestamp"), -1, pa.timestamp("us"),
     moment(1969, 12, 31, 23, 59, 59, 999000)),
    (("int64", f"{TIME}MicroTimestamp"), 1679581805123456, pa.timestamp("us"),
     moment(2023, 3, 23, 14, 30, 5, 123456)),
    (("int64", f"{TIME}NanoTimestamp"), 1679581805123456000, pa.timestamp("us"),
     moment(2023, 3, 23, 14, 30, 5, 123456)),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10.123456Z",
     pa.timestamp("us", "UTC"), datetime(2023, 3, 23, 22, 0, 10, 123456, UTC)),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10.100000000+02:00",
     pa.timestamp("us", "UTC"), datetime(2023, 3, 23, 20, 0, 10, 100000, UTC)),
    (("string", f"{TIME}ZonedTime"), "10:00:00.5+02:00", pa.string(), "10:00:00.5+02:00"),
    (("int32", f"{TIME}Year"), 0, pa.int32(), 0),
    (("string", f"{TIME}Interval"), "P1Y2M3DT4H5M6.78S", pa.string(), "P1Y2M3DT4H5M6.78S"),
    (("int64", f"{TIME}MicroDuration"), -5, pa.int64(), -5),
    (("int64", f"{TIME}NanoDuration"), 2**62, pa.int64(), 2**62),
    (("string", f"{TIME}IsoDate"), "2017-09-15Z", pa.date32(), date(2017, 9, 15)),
    (("string", f"{TIME}IsoTime"), "04:05:11.789Z", pa.string(), "04:05:11.789000"),
    (("string", f"{TIME}IsoTimestamp"), "2019-07-09T02:28:57.123456Z", pa.timestamp("us"),
     moment(2019, 7, 9, 2, 28, 57, 123456)),
    (("struct", f"{TIME}StructuredDate"), {"year": 2020, "month": 2, "day": 29},
     pa.date32(), date(2020, 2, 29)),
    (("struct", f"{TIME}StructuredTime"), {"hour": 1, "minute": 2, "second": 3, "nanos": 4000},
     pa.string(), "01:02:03.000004"),
    (("struct", f"{TIME}StructuredTimestamp"),
     {"year": 2020, "month": 1, "day": 2, "hour": 3, "minute": 4, "second": 5,
      "picoseconds": 6000000, "precision": 6}, pa.timestamp("us"), moment(2020, 1, 2, 3, 4, 5, 6)),
    (("struct", f"{TIME}StructuredZonedTimestamp"),
     {"year": 2020, "month": 1, "day": 2, "hour": 0, "offsetSeconds": 3600, "zoneId": "+01:00"},
     pa.timestamp("us", "UTC"), datetime(2020, 1, 1, 23, tzinfo=UTC)),
    (("struct", f"{TIME}StructuredDuration"), {"days": 1}, pa.string(), '{"days":1}'),
    (("int32", "org.apache.kafka.connect.data.Date"), 1, pa.date32(), date(1970, 1, 2)),
    (("int32", "org.apache.kafka.connect.data.Time"), 1000, pa.string(), "00:00:01"),
    (("int64", "org.apache.kafka.connect.data.Timestamp"), 1, pa.timestamp("us"),
     moment(1970, 1, 1, 0, 0, 0, 1000)),
    (("string", f"{DATA}Json"), '{"a":1.50}', pa.string(), '{"a":1.50}'),
    (("string", f"{DATA}Enum", {"allowed": "a,b"}), "", pa.string(), ""),
    (("string", f"{DATA}EnumSet", {"allowed": "a,b"}), "a,b", pa.string(), "a,b"),
    (("string", f"{DATA}Uuid"), "09f1", pa.string(), "09f1"),
    (("struct", f"{DATA}geometry.Point"), {"x": 1.0, "y": 1.0, "wkb": b64(b"\x01"), "srid": 4326},
     pa.binary(), b"\xe6\x10\x00\x00\x01"),
    (("struct", f"{DATA}geometry.Geometry"), {"wkb": b64(b"\x01\x02"), "srid": None},
     pa.binary(), b"\x00\x00\x00\x00\x01\x02"),
    (("array", f"{DATA}FloatVector"), [1.5, 2.25], pa.string(), "[1.5,2.25]"),
    (("struct", f"{DATA}SparseDoubleVector"), {"dimensions": 9, "vector": {"1": 2.5}},
     pa.string(), '{"dimensions":9,"vector":{"1":2.5}}'),
    ("map", {"k": "v"}, pa.string(), '{"k":"v"}'),
    ("array", ["a", None], pa.string(), '["a",null]'),
    ("unheard of", "x", pa.string(), "x"),
]  # fmt: skip
"""A column's schema, a value as it comes, the type and the value that the lake has of it."""

MISFITS: list[tuple[Any, Any]] = [
    ("int32", 2**31),
    ("int32", 1.5),
    ("boolean", 2),
    ("double", "x"),
    ("float", 1e300),
    ("bytes", "A"),
    (decimal(2, 4), b64(b"\x7f\xff")),
    (decimal(2, 4), 1.234),
    (decimal(2, 4), 1e30),
    (decimal(2, 4), ""),
    (bits(3), b64(b"\x08")),
    (("int32", f"{TIME}Date"), 3_000_000),
    (("int64", f"{TIME}Timestamp"), 2**60),
    (("int64", f"{TIME}NanoTimestamp"), 1),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10"),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10.1234567Z"),
    (("string", f"{TIME}IsoDate"), "0044-03-15Z BC"),
    (("string", f"{TIME}IsoTime"), "25"),
    (("struct", f"{TIME}StructuredDate"), {"year": 2020, "month": 2, "day": 30}),
    (("struct", f"{TIME}StructuredTimestamp"),
     {"year": 2020, "month": 1, "day": 1, "nanos": 1}),
    (("struct", f"{TIME}StructuredZonedTimestamp"), {"year": 2020, "month": 1, "day": 1}),
    (("struct", f"{DATA}VariableScaleDecimal"), {"value": "AQ=="}),
    (("struct", f"{DATA}geometry.Point"), {"x": 1, "y": 2}),
]  # fmt: skip

INFINITE = [
    (("int64", f"{TIME}MicroTimestamp"), 9223372036825200000),
    (("int64", f"{TIME}MicroTimestamp"), -9223372036832400000),
    (("int64", f"{TIME}NanoTimestamp"), 2**63 - 1),
    (("int64", f"{TIME}NanoTimestamp"), -(2**63)),
    (("int64", f"{TIME}Timestamp"), 9223372036825200),
    (("int32", f"{TIME}Date"), 2**31 - 1),
    (("string", f"{TIME}ZonedTimestamp"), "+292278994-08-16T23:00:00Z"),
    (("string", f"{TIME}ZonedTimestamp"), "-292275055-05-16T23:00:00Z"),
    (("struct", f"{TIME}StructuredTimestamp"), {"specialValue": "POSITIVE_INFINITY"}),
]
"""No dates of the lake's: null, or an error by the option, and in a key always one."""


def value(kind: Any, *given: Any) -> list[bytes]:
    """Records of rows with a column v of that schema."""
    return [typed("c", {"id": "int32", "v": kind}, {"id": n, "v": v}) for n, v in enumerate(given)]


def kept(kind: Any, given: Any, expected: Any) -> Case:
    """A value beside a null."""
    found = [("U", {"id": n, "v": v}) for n, v in enumerate((expected, None, expected))]
    return Case(f"{str(kind)[:60]}: {str(given)[:40]}", value(kind, given, None, given), rows=found)


def misfit(says: str, kind: Any, given: Any, **how: Any) -> Case:
    """A value that is refused, with its type."""
    text = given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))
    name = kind if isinstance(kind, str) else kind[1]
    named = "value of bytes in base64" if name == "bytes" else name
    said = f"shop.orders: v: {text!r} is not {'an' if named[0] in 'aeiou' else 'a'} {named}"
    return Case(f"{says}: {str(kind)[:60]}: {text[:40]}", value(kind, given), unfit=said, **how)


CASES = [
    *(kept(kind, given, expected) for kind, given, _, expected in VALUES),
    *(misfit("no such value", *each) for each in MISFITS),
    *(kept(*each, None) for each in INFINITE),
    *(misfit("an error", *each, options=FormatOptions(zero_dates="error")) for each in INFINITE),
    *(misfit("in a key", *each, keys=("v",), good=value(each[0], None)[0]) for each in INFINITE),
]
