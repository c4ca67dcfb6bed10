"""Debezium's values of every semantic type: what the lake keeps, and what does not fit."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from changes.formats.engine.format import pack, unpack
from changes.model.model import FormatOptions, Mode
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


FAR = {"scale": "2046", "connect.decimal.precision": "5"}
"""Of numeric(5,-2): PostgreSQL keeps a scale in eleven bits."""
UNSIGNED = ("int64", None, {"__debezium.source.column.type": "BIGINT UNSIGNED"})
VARIABLE = ("struct", f"{DATA}VariableScaleDecimal")

VALUES: list[tuple[Any, Any, pa.DataType, Any]] = [
    ("int8", -128, pa.int32(), -128),
    ("int16", 32767, pa.int32(), 32767),
    ("int32", -(2**31), pa.int32(), -(2**31)),
    ("int64", -(2**63), pa.int64(), -(2**63)),
    ("boolean", True, pa.bool_(), True),
    ("float", 3.14, pa.float32(), pa.scalar(3.14, pa.float32()).as_py()),
    ("double", 0.1, pa.float64(), 0.1),
    *(("double", given, pa.float64(), float(given))
      for given in (float("inf"), float("-inf"), "Infinity", "-Infinity")),
    (UNSIGNED, -1, pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (UNSIGNED, 5, pa.decimal128(20, 0), Decimal(5)),
    ("int64", -1, pa.int64(), -1),
    ("string", "ä\n", pa.string(), "ä\n"),
    ("bytes", "AP8=", pa.binary(), b"\x00\xff"),
    (decimal(2, 10), b64(b"\xff\x38"), pa.decimal128(10, 2), Decimal("-2.00")),
    (decimal(2, 10), 12.3, pa.decimal128(10, 2), Decimal("12.30")),
    (decimal(0), b64(b"\x00" + b"\xff" * 8), pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (decimal(-2, 3), b64(b"\x07"), pa.decimal128(5, 0), Decimal(700)),
    (decimal(5, 2), b64(b"\x0c"), pa.decimal128(5, 5), Decimal("0.00012")),
    (decimal(3, 40), b64((10**40 - 1).to_bytes(18, "big")), pa.string(), "9" * 37 + ".999"),
    (decimal(3, 40), b64(b"\xff"), pa.string(), "-0.001"),
    (("bytes", DECIMAL, FAR), b64((12300 * 10**2046).to_bytes(852, "big")), pa.decimal128(7, 0),
     Decimal(12300)),
    (VARIABLE, {"scale": 3, "value": b64(b"\x04\xd2")}, pa.string(), "1.234"),
    (VARIABLE, {"scale": -2, "value": b64(b"\xfb")}, pa.string(), "-500"),
    *((VARIABLE, given, pa.string(), str(given))
      for given in (0, 5, -7, 2**63 - 1, 10**25, 0.5, "NaN", "Infinity", "-Infinity", "12.50",
                    "-1E+3")),
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
    (("string", f"{TIME}IsoTime"), "04:05Z", pa.string(), "04:05:00"),
    *((("string", f"{TIME}IsoTimestamp"), f"2019-07-09T02:28:57.123456{zeros}Z",
       pa.timestamp("us"), moment(2019, 7, 9, 2, 28, 57, 123456)) for zeros in ("", "000")),
    (("string", f"{TIME}IsoTimestamp"), "2019-07-09T02:28Z", pa.timestamp("us"),
     moment(2019, 7, 9, 2, 28)),
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
    ("bytes", "__-_"),
    (decimal(2, 4), b64(b"\x7f\xff")),
    (decimal(2, 4), 1.234),
    (decimal(2, 4), 1e30),
    (decimal(2, 4), ""),
    (bits(3), b64(b"\x08")),
    (UNSIGNED, 2**64),
    (UNSIGNED, -(2**63) - 1),
    *((("int32", f"{TIME}Date"), given) for given in (3_000_000, 2**31, -(2**31) - 1, True)),
    (("int64", f"{TIME}Timestamp"), 2**60),
    (("int64", f"{TIME}Timestamp"), False),
    (("int32", f"{TIME}Time"), 838 * 3600_000 + 3600_000),
    (("int64", f"{TIME}MicroTime"), 2**63),
    (("int64", f"{TIME}NanoTimestamp"), 1),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10"),
    (("string", f"{TIME}IsoDate"), "0044-03-15Z BC"),
    (("string", f"{TIME}IsoTime"), "25"),
    (("struct", f"{TIME}StructuredDate"), {"year": 2020, "month": 2, "day": 30}),
    (("struct", f"{TIME}StructuredTimestamp"),
     {"year": 2020, "month": 1, "day": 1, "nanos": 1}),
    (("struct", f"{TIME}StructuredZonedTimestamp"), {"year": 2020, "month": 1, "day": 1}),
    (VARIABLE, {"value": "AQ=="}),
    (VARIABLE, True),
    (("struct", f"{DATA}geometry.Point"), {"x": 1, "y": 2}),
]  # fmt: skip

TOO_FINE = [
    (("int64", f"{TIME}NanoTimestamp"), 1529501823123456700),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10.1234567Z"),
    (("string", f"{TIME}IsoTimestamp"), "2018-06-20T13:37:03.1234567Z"),
]
"""SQL Server's datetime2(7): the value is fine, but the lake would cut it."""

NO_TEXT = [("bytes", 1234), ("bytes", True), (bits(64), 1234)]
"""Each would be base64 by chance."""

INFINITE = [
    (("int64", f"{TIME}MicroTimestamp"), 9223372036825200000),
    (("int64", f"{TIME}MicroTimestamp"), -9223372036832400000),
    (("int64", f"{TIME}NanoTimestamp"), 2**63 - 1),
    (("int64", f"{TIME}NanoTimestamp"), -(2**63)),
    (("int64", f"{TIME}Timestamp"), 9223372036825200),
    *((("int32", f"{TIME}Date"), days)
      for days in (2**31 - 1, -(2**31), -2147472691, -2147472690)),
    (("string", f"{TIME}ZonedTimestamp"), "+292278994-08-16T23:00:00Z"),
    (("string", f"{TIME}ZonedTimestamp"), "-292275055-05-16T23:00:00Z"),
    (("string", f"{TIME}IsoTimestamp"), "+294247-01-10T04:00:25.2Z"),
    (("string", f"{TIME}IsoTimestamp"), "-infinity"),
    (("string", f"{TIME}IsoDate"), "+999999999-12-31Z"),
    (("struct", f"{TIME}StructuredTimestamp"), {"specialValue": "POSITIVE_INFINITY"}),
]  # fmt: skip
"""No dates of the lake's: null, or an error by the option, and in a key always one."""


def value(kind: Any, *given: Any) -> list[bytes]:
    """Records of rows with a column v of that schema."""
    return [typed("c", {"id": "int32", "v": kind}, {"id": n, "v": v}) for n, v in enumerate(given)]


def kept(kind: Any, given: Any, expected: Any) -> Case:
    """A value beside a null."""
    found = [("U", {"id": n, "v": v}) for n, v in enumerate((expected, None, expected))]
    return Case(f"{str(kind)[:60]}: {str(given)[:40]}", value(kind, given, None, given), rows=found)


def misfit(says: str, kind: Any, given: Any, beside: str = "", then: str = "", **how: Any) -> Case:
    """A value that is refused, with its type. ``beside`` and ``then`` stand behind each."""
    text = given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))
    name = kind if isinstance(kind, str) else kind[1] or kind[0]
    named = "value of bytes in base64" if name == "bytes" else name
    article = "an" if named[0] in "aeiou" else "a"
    return Case(f"{says}: {str(kind)[:60]}: {text[:40]}", value(kind, given),
                unfit=f"shop.orders: v: {text + beside!r} is not {article} {named}{then}",
                good=value(kind, None)[0], **how)  # fmt: skip


def drift(says: str, *values: tuple[Any, Any, Any]) -> Case:
    """Values of one column, each with its own schema: that, as it comes, as it is kept."""
    messages = [typed("c", {"id": "int32", "v": kind}, {"id": n, "v": given})
                for n, (kind, given, _) in enumerate(values)]  # fmt: skip
    rows = [("U", {"id": n, "v": kept}) for n, (_, _, kept) in enumerate(values)]
    return Case(says, messages, rows=rows)


ONCE = ("int16", 1, 1), ("boolean", False, 0)
WIDENED = ("int32", 1, 1), ("int64", 2**40, 2**40), ("int32", 1, 1)
MS = (("int64", f"{TIME}Timestamp"), 1_000_000, moment(1970, 1, 1, 0, 16, 40))
US = (("int64", f"{TIME}MicroTimestamp"), 1_000_000, moment(1970, 1, 1, 0, 0, 1))
DRIFTS = [
    drift("TINYINT(1): numbers of the snapshot, booleans of the stream", *ONCE * 2),
    drift("TINYINT(1): booleans, then numbers", *ONCE[::-1] * 2),
    drift("decimals of both forms, as when the converter's setting was changed",
          *((decimal(2, 20), given, Decimal(kept))
            for given, kept in ((b64(b"\x01"), "0.01"), (100000000000000000.25, "1e17"),
                                (b64(b"\x64"), "1.00"), (7, "7")))),
    Case("a decimal that comes as a number keeps its digits",
         pack(b'{"id":0}', (unpack(value(decimal(2, 20), 0)[0]).value or b"").replace(
             b'"v":0', b'"v":123456789012345678.91')),
         rows=[("U", {"id": 0, "v": Decimal("123456789012345678.91")})]),
    drift("a type that widens stays wide when an older schema comes again", *WIDENED),
    Case("a text that is no number of any scale", value(VARIABLE, "abc"),
         unfit=f"""shop.orders: v: '"abc"' is not an {VARIABLE[1]}"""),
    Case("a number's column does not become text",
         [*(value(kind, given)[0] for kind, given, _ in WIDENED[:2]), value("string", "x")[0]],
         unfit="shop.orders: v: the type int64 (int64) can't become string"),
    drift("units are those of each record", MS, US, MS, US, MS),
    Case("a changelog has the same types", mode=Mode.APPEND,
         messages=typed("u", {"id": "int32", "v": "bytes"}, {"id": 1, "v": "AQ=="},
                        {"id": 1, "v": None}),
         changelog=[("U", {"id": 1, "v": b"\x01"})]),
]  # fmt: skip

CASES = [
    *(kept(kind, given, expected) for kind, given, _, expected in VALUES),
    *(misfit("no such value", *each) for each in MISFITS),
    *(misfit("no text", *each, " (no text)") for each in NO_TEXT),
    *(misfit("the lake keeps microseconds", *each, then=": the lake keeps microseconds")
      for each in TOO_FINE),
    *(kept(*each, None) for each in INFINITE),
    *(misfit("an error", *each, options=FormatOptions(zero_dates="error")) for each in INFINITE),
    *(misfit("in a key", *each, keys=("v",)) for each in INFINITE),
    *DRIFTS,
]  # fmt: skip
