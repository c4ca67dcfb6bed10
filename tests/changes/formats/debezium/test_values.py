"""Values of every semantic type: what the lake keeps, and what does not fit, named."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.engine.format import pack, unpack
from changes.model.model import OP, BadRecord, Mode
from tests.changes.formats.debezium.messages import (
    FORMAT,
    column,
    decode,
    dumps,
    key_with_schema,
    record,
    rows,
    typed,
)

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


def named(value: Any) -> str:
    """A case's part of its name."""
    return str(value)[:40]


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


@pytest.mark.parametrize(
    ("kind", "given", "arrow", "kept"), VALUES, ids=lambda value: str(value)[:40]
)
def test_every_type(kind: Any, given: Any, arrow: pa.DataType, kept: Any) -> None:
    """The lake's type and value; nulls beside them, and what people are shown."""
    found = column(kind, given, None, given)
    assert found.type == arrow
    assert found.to_pylist() == [kept, None, kept]
    (told,) = FORMAT.explain(typed("c", {"id": "int32", "v": kind}, {"id": 1, "v": given}))
    assert told.misfit is None  # type: ignore[union-attr]
    shown = told.after["v"]  # type: ignore[union-attr, index]
    assert shown == (given if arrow == pa.float32() else kept)


MISFITS: list[tuple[Any, Any, str]] = [
    ("int32", 2**31, "'2147483648' is not an int32"),
    ("int32", 1.5, "'1.5' is not an int32"),
    ("boolean", 2, "'2' is not a boolean"),
    ("double", "x", "is not a double"),
    ("float", 1e300, "is not a float"),
    ("bytes", "A", "'A' is not a value of bytes in base64"),
    (decimal(2, 4), b64(b"\x7f\xff"), f"is not an {DECIMAL}"),
    (decimal(2, 4), 1.234, "1.234"),
    (decimal(2, 4), 1e30, "1e\\+30"),
    (decimal(2, 4), "", f"'' is not an {DECIMAL}"),
    (bits(3), b64(b"\x08"), "is not an io.debezium.data.Bits"),
    (("int32", f"{TIME}Date"), 3_000_000, "'3000000' is not an io.debezium.time.Date"),
    (("int64", f"{TIME}Timestamp"), 2**60, "is not an io.debezium.time.Timestamp"),
    (("int64", f"{TIME}NanoTimestamp"), 1, "'1' is not an io.debezium.time.NanoTimestamp"),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10", "ZonedTimestamp"),
    (("string", f"{TIME}ZonedTimestamp"), "2023-03-23T22:00:10.1234567Z", "ZonedTimestamp"),
    (("string", f"{TIME}IsoDate"), "0044-03-15Z BC", "IsoDate"),
    (("string", f"{TIME}IsoTime"), "25", "IsoTime"),
    (("struct", f"{TIME}StructuredDate"), {"year": 2020, "month": 2, "day": 30}, "StructuredDate"),
    (("struct", f"{TIME}StructuredTimestamp"),
     {"year": 2020, "month": 1, "day": 1, "nanos": 1}, "StructuredTimestamp"),
    (("struct", f"{TIME}StructuredZonedTimestamp"), {"year": 2020, "month": 1, "day": 1}, "Zoned"),
    (("struct", f"{DATA}VariableScaleDecimal"), {"value": "AQ=="}, "VariableScaleDecimal"),
    (("struct", f"{DATA}geometry.Point"), {"x": 1, "y": 2}, "Point"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "said"), MISFITS, ids=named)
def test_what_does_not_fit_is_named(kind: Any, given: Any, said: str) -> None:
    """Table, column, value and type; the records before it are good."""
    fields = {"id": "int32", "v": kind}
    values = [typed("c", fields, {"id": n, "v": None}) for n in range(3)]
    bad = typed("c", fields, {"id": 3, "v": given})
    with pytest.raises(BadRecord, match=rf"^shop\.orders: v: .*({said})") as error:
        decode(*values, bad)
    assert error.value.index == 3
    (told,) = FORMAT.explain(bad)
    assert str(told.misfit).startswith("v: ")  # type: ignore[union-attr]


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


@pytest.mark.parametrize(("kind", "given"), INFINITE, ids=str)
def test_infinite_dates(kind: Any, given: Any) -> None:
    """No date of the lake's: null and counted, or an error, by the option; in a key an error."""
    fields = {"id": "int32", "v": kind}
    value = typed("c", fields, {"id": 1, "v": given})
    found = decode(value)
    assert (found.table["v"].to_pylist(), found.nulled) == ([None], 1)
    with pytest.raises(BadRecord, match=r"shop\.orders: v: "):
        decode(value, zero_dates="error")
    with pytest.raises(BadRecord, match=r"shop\.orders: v: "):
        decode(value, keys=("v",))


def test_nan_and_infinity() -> None:
    """As bare words, which JSON does not have, or as text; also in records beside good ones."""
    infinite = float("inf")
    found = column("double", 1.5, infinite, -infinite, "Infinity", "-Infinity").to_pylist()
    assert found == [1.5, infinite, -infinite, infinite, -infinite]
    assert repr(column("float", float("nan"), "NaN").to_pylist()) == "[nan, nan]"
    value = typed("c", {"id": "int32", "v": "double"}, {"id": 1, "v": float("nan")})
    assert FORMAT.peek(value).table is not None
    (told,) = FORMAT.explain(value)
    assert str(told.after["v"]) == "nan"  # type: ignore[union-attr, index]


def test_words_in_text_are_left_alone() -> None:
    """NaN inside of a string is text."""
    fields = {"id": "int32", "v": "double", "t": "string"}
    row = {"id": 1, "v": float("nan"), "t": 'a NaN "Infinity" \\'}
    assert rows(typed("c", fields, row))[0]["t"] == row["t"]


def test_unsigned_integers_that_wrapped() -> None:
    """Where the source's type is told, they are what they were; else what came."""
    told = ("int64", None, {"__debezium.source.column.type": "BIGINT UNSIGNED"})
    found = column(told, -1, 5)
    assert (found.type, found.to_pylist()) == (pa.decimal128(20, 0), [2**64 - 1, 5])
    assert column("int64", -1).to_pylist() == [-1]


@pytest.mark.parametrize("numbers_first", [True, False])
def test_a_column_that_turns_from_numbers_to_booleans(numbers_first: bool) -> None:
    """TINYINT(1): 0 and 1 of the snapshot, true and false of the stream are one column."""
    number = typed("c", {"id": "int32", "v": "int16"}, {"id": 1, "v": 1})
    boolean = typed("c", {"id": "int32", "v": "boolean"}, {"id": 2, "v": False})
    values = [number, boolean] if numbers_first else [boolean, number]
    found = {row["id"]: row["v"] for row in rows(*values, *values)}
    assert found == {1: 1, 2: 0}


def test_decimals_of_both_forms_in_one_column() -> None:
    """Base64 and numbers, as when the converter's setting was changed; digits of both stay."""
    found = column(decimal(2, 20), b64(b"\x01"), 100000000000000000.25, b64(b"\x64"), 7)
    assert found.to_pylist()[::2] == [Decimal("0.01"), Decimal("1.00")]
    text = dumps({"id": 1, "v": 0}).replace(b":0", b":123456789012345678.91")
    value = typed("c", {"id": "int32", "v": decimal(2, 20)}, {"id": 1, "v": "@"})
    exact = pack(dumps(key_with_schema({"id": 1}, {"id": "int32"})), _with(value, text))
    assert rows(exact)[0]["v"] == Decimal("123456789012345678.91")


def _with(packed: bytes, row: bytes) -> bytes:
    """The value of a record with another row."""
    value = unpack(packed).value
    assert value is not None
    return value.replace(b'{"id":1,"v":"@"}', row)


def test_types_only_grow() -> None:
    """int32 becomes int64 and stays it when an older schema comes again; text is refused."""
    small = typed("c", {"id": "int32", "v": "int32"}, {"id": 1, "v": 1})
    large = typed("c", {"id": "int32", "v": "int64"}, {"id": 2, "v": 2**40})
    found = decode(small, large, small).table
    assert found.schema.field("v").type == pa.int64()
    assert found["v"].to_pylist() == [1, 2**40, 1]
    text = typed("c", {"id": "int32", "v": "string"}, {"id": 3, "v": "x"})
    with pytest.raises(
        BadRecord, match=r"v: the type int64 \(int64\) can't become string"
    ) as error:
        decode(small, large, text)
    assert error.value.index == 2


def test_units_are_those_of_each_record() -> None:
    """A column that went from milliseconds to microseconds: each value by its own schema."""
    ms, us = ("int64", f"{TIME}Timestamp"), ("int64", f"{TIME}MicroTimestamp")
    values = [
        typed("c", {"id": "int32", "v": kind}, {"id": n, "v": 1_000_000})
        for n, kind in enumerate((ms, us, ms, us, ms))
    ]
    seconds = [row["v"].timestamp() for row in _utc(rows(*values))]
    assert seconds == [1000, 1, 1000, 1, 1000]


def _utc(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"v": row["v"].replace(tzinfo=UTC)} for row in found]


def test_a_record_without_schema_among_others() -> None:
    """Its values are read by the types that are known."""
    fields = {"id": "int32", "v": ("int32", f"{TIME}Date")}
    bare = record(
        {"op": "c", "source": {"db": "shop", "table": "orders"}, "after": {"id": 2, "v": 2}},
        {"id": 2},
    )
    found = rows(typed("c", fields, {"id": 1, "v": 1}), bare)
    assert [row["v"] for row in found] == [date(1970, 1, 2), date(1970, 1, 3)]
    assert found[1][OP] == "U"


def test_columns_of_a_changelog() -> None:
    """The same types, behind the bookkeeping columns."""
    found = decode(
        typed("u", {"id": "int32", "v": "bytes"}, {"id": 1, "v": "AQ=="}, {"id": 1, "v": None}),
        mode=Mode.APPEND,
    ).table
    assert found.column_names == ["_op", "_partition", "_offset", "_index", "id", "v"]
    assert found["v"].to_pylist() == [b"\x01"]
