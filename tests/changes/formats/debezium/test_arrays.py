"""PostgreSQL's arrays: items are read by their own type, then written as JSON."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack
from changes.model.model import HAS_PREFIX, BadRecord, FormatOptions, Mode
from tests.changes.formats.debezium.messages import (
    FORMAT,
    POSTGRES,
    UNAVAILABLE,
    dumps,
    envelope,
    key_with_schema,
    record,
    rows,
    wrapped,
)

TIME = "io.debezium.time."
DECIMAL = "org.apache.kafka.connect.data.Decimal"


def coded(unscaled: int) -> str:
    """A Decimal's bytes in base64."""
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def row(items: dict[str, Any], value: Any, op: str = "c", key: int = 1) -> bytes:
    """A row with an array of such items."""
    after, fields = {"id": key, "v": value}, {"id": "int32", "v": "array"}
    change = wrapped(envelope(op, after, source=POSTGRES), fields)
    for side in change["schema"]["fields"][:2]:
        side["fields"][1]["items"] = items
    return record(change, key_with_schema({"id": key}, {"id": "int32"}))


def item(literal: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    """The schema of items."""
    found: dict[str, Any] = {"type": literal, "optional": True}
    return found | ({"name": name, "version": 1, "parameters": parameters} if name else {})


MONEY = item("bytes", DECIMAL, scale="2", **{"connect.decimal.precision": "10"})
ITEMS: list[tuple[dict[str, Any], Any, str]] = [
    (MONEY, [coded(150), None, coded(-7), coded(0)], "[1.50,null,-0.07,0.00]"),
    (MONEY, [1.5, 2], "[1.50,2.00]"),
    (
        item("struct", "io.debezium.data.VariableScaleDecimal"),
        [{"scale": 3, "value": coded(12345)}, None, "NaN"],
        '[12.345,null,"NaN"]',
    ),
    (item("int32", f"{TIME}Date"), [0, -1, None], '["1970-01-01","1969-12-31",null]'),
    (
        item("int64", f"{TIME}MicroTimestamp"),
        [1529501823123456, 0],
        '["2018-06-20 13:37:03.123456","1970-01-01 00:00:00"]',
    ),
    (item("int64", f"{TIME}Timestamp"), [1529501823123], '["2018-06-20 13:37:03.123000"]'),
    (item("int64", f"{TIME}MicroTime"), [14711123456], '["04:05:11.123456"]'),
    (item("bytes", "io.debezium.data.Bits", length="8"), ["Aw=="], "[3]"),
    (
        {"type": "array", "optional": True, "items": MONEY},
        [[coded(150)], [], None],
        "[[1.50],[],null]",
    ),
    (item("int32"), [1, None], "[1,null]"),
    (item("int64"), [9007199254740993], "[9007199254740993]"),
    (item("string"), ["a", 'q"', "1"], '["a","q\\"","1"]'),
    (item("string", f"{TIME}ZonedTimestamp"), ["2018-06-20T13:37:03Z"], '["2018-06-20T13:37:03Z"]'),
    (item("boolean"), [True, False], "[true,false]"),
    (item("double"), [1.5], "[1.5]"),
    (item("bytes"), ["AQI="], '["AQI="]'),
    (MONEY, [], "[]"),
]


@pytest.mark.parametrize(("items", "given", "wanted"), ITEMS)
def test_items_are_read_by_their_type(items: dict[str, Any], given: Any, wanted: str) -> None:
    """Numeric came as base64, a timestamp as microseconds: nobody could tell what they were."""
    found = rows(row(items, given), row(items, None), *[row(items, given)] * 3)
    assert [each["v"] for each in found] == [wanted, None, wanted, wanted, wanted]
    (told,) = FORMAT.explain(row(items, given))
    assert told.after == {"id": 1, "v": wanted}  # type: ignore[union-attr]


def test_items_that_are_none() -> None:
    """The record is refused, with the column; the place is the record's."""
    with pytest.raises(BadRecord, match=r"shop\.orders: v: '!!' is not an array of d") as error:
        rows(row(MONEY, [coded(1), coded(2)]), row(MONEY, [coded(3), "!!"]))
    assert error.value.index == 1
    with pytest.raises(BadRecord, match=r"v: .* is not an array"):
        rows(row(MONEY, {"a": 1}))


def test_infinite_items_go_the_way_of_zero_dates() -> None:
    """As a column of that type does."""
    days = item("int32", f"{TIME}Date")
    given = row(days, [5, 2147483647])
    assert rows(given)[0]["v"] == '["1970-01-06",null]'
    with pytest.raises(BadRecord, match="v: '2147483647' is not"):
        rows(given, zero_dates="error")


def test_an_array_that_was_not_sent() -> None:
    """Its placeholder is no list of decimals."""
    octets = UNAVAILABLE.encode()
    given = [base64.b64encode(bytes([byte])).decode() for byte in octets]
    (found,) = rows(row(MONEY, given, "u"))
    assert found[f"{HAS_PREFIX}v"] is False


def test_items_whose_type_changes() -> None:
    """Each row by its own schema."""
    cents = item("bytes", DECIMAL, scale="3", **{"connect.decimal.precision": "10"})
    found = rows(row(MONEY, [coded(150)]), row(cents, [coded(150)]), row(MONEY, [coded(150)]))
    assert [each["v"] for each in found] == ["[1.50]", "[0.150]", "[1.50]"]


# --- a negative scale


FAR = {"scale": "2046", "connect.decimal.precision": "5"}
"""Of numeric(5,-2): PostgreSQL keeps a scale in eleven bits."""


@pytest.mark.parametrize("given", [12300, -9999900, 0, None])
@pytest.mark.parametrize("numeric", [False, True])
def test_a_negative_scale(given: int | None, numeric: bool) -> None:
    """decimal(p - s, 0), as documented; the value comes with 2046 digits behind its point."""
    value: Any = None if given is None else coded(given * 10**2046)
    kind = ("bytes", DECIMAL, FAR)
    text = dumps(wrapped(envelope("c", {"id": 1, "v": value}), {"id": "int32", "v": kind}))
    if numeric and given is not None:
        text = text.replace(dumps(value), f"{given}.{'0' * 2046}".encode())
    found = pack(dumps(key_with_schema({"id": 1}, {"id": "int32"})), text)
    decoder = DebeziumJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    changes = decoder.decode(0, [0], [found])
    assert changes is not None
    assert changes.table.schema.field("v").type == pa.decimal128(7, 0)
    assert changes.table["v"].to_pylist() == [None if given is None else Decimal(given)]


def test_a_negative_scale_holds_no_fraction() -> None:
    """Nothing is cut off."""
    kind = ("bytes", DECIMAL, FAR)
    value = wrapped(envelope("c", {"id": 1, "v": coded(1)}), {"id": "int32", "v": kind})
    with pytest.raises(BadRecord, match="v: 'AQ==' is not"):
        rows(record(value, key_with_schema({"id": 1}, {"id": "int32"})))


def test_scales_that_are_not_negative_stay() -> None:
    """PostgreSQL's largest is 1000."""
    kind = ("bytes", DECIMAL, {"scale": "1000", "connect.decimal.precision": "1000"})
    value = wrapped(envelope("c", {"id": 1, "v": coded(5)}), {"id": "int32", "v": kind})
    (found,) = rows(record(value, key_with_schema({"id": 1}, {"id": "int32"})))
    assert found["v"] == f"0.{'0' * 999}5"


def test_arrays_of_a_negative_scale() -> None:
    """Both at once."""
    far = item("bytes", DECIMAL, **FAR)
    assert rows(row(far, [coded(12300 * 10**2046)]))[0]["v"] == "[12300]"
