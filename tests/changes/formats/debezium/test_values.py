"""Values of every semantic type beside others: types in the lake, types that change, NaN."""

from __future__ import annotations

from datetime import UTC, date
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
from tests.changes.formats.debezium.values import INFINITE, TIME, VALUES, b64, decimal, value


@pytest.mark.parametrize(("kind", "given", "arrow", "kept"), VALUES, ids=lambda v: str(v)[:40])
def test_every_type(kind: Any, given: Any, arrow: pa.DataType, kept: Any) -> None:
    """The lake's type; people are shown a 32-bit number by its shortest digits."""
    assert column(kind, given).type == arrow
    (told,) = FORMAT.explain(*value(kind, given))
    assert told.after["v"] == (given if arrow == pa.float32() else kept)  # type: ignore[union-attr, index]


@pytest.mark.parametrize(("kind", "given"), INFINITE, ids=str)
def test_infinite_dates(kind: Any, given: Any) -> None:
    """What is null for want of a date is counted."""
    assert decode(*value(kind, given)).nulled == 1


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
