"""PostgreSQL's arrays, whose items are read by their own type, then written as JSON; its numeric of
a negative scale."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from tests.changes.formats.cases import Case
from tests.changes.formats.debezium.messages import (
    POSTGRES,
    UNAVAILABLE,
    dumps,
    envelope,
    key_with_schema,
    record,
    wrapped,
)
from tests.changes.formats.debezium.values import DECIMAL, FAR, TIME

KEY = key_with_schema({"id": 1}, {"id": "int32"})


def coded(unscaled: int) -> str:
    """A Decimal's bytes in base64."""
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def row(items: dict[str, Any], value: Any, op: str = "c") -> bytes:
    """A row with an array of such items."""
    after, fields = {"id": 1, "v": value}, {"id": "int32", "v": "array"}
    change = wrapped(envelope(op, after, source=POSTGRES), fields)
    for side in change["schema"]["fields"][:2]:
        side["fields"][1]["items"] = items
    return record(change, KEY)


def item(literal: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    """The schema of items."""
    found: dict[str, Any] = {"type": literal, "optional": True}
    return found | ({"name": name, "version": 1, "parameters": parameters} if name else {})


def money(scale: int) -> dict[str, Any]:
    return item("bytes", DECIMAL, scale=str(scale), **{"connect.decimal.precision": "10"})


MONEY = money(2)
DAYS = item("int32", f"{TIME}Date")
ITEMS: list[tuple[dict[str, Any], Any, str]] = [
    (MONEY, [coded(150), None, coded(-7), coded(0)], "[1.50,null,-0.07,0.00]"),
    (MONEY, [1.5, 2], "[1.50,2.00]"),
    (item("struct", "io.debezium.data.VariableScaleDecimal"),
     [{"scale": 3, "value": coded(12345)}, None, "NaN"], '[12.345,null,"NaN"]'),
    (DAYS, [0, -1, None], '["1970-01-01","1969-12-31",null]'),
    (DAYS, [5, 2147483647], '["1970-01-06",null]'),
    (item("int64", f"{TIME}MicroTimestamp"), [1529501823123456, 0],
     '["2018-06-20 13:37:03.123456","1970-01-01 00:00:00"]'),
    (item("int64", f"{TIME}Timestamp"), [1529501823123], '["2018-06-20 13:37:03.123000"]'),
    (item("int64", f"{TIME}MicroTime"), [14711123456], '["04:05:11.123456"]'),
    (item("bytes", "io.debezium.data.Bits", length="8"), ["Aw=="], "[3]"),
    ({"type": "array", "optional": True, "items": MONEY}, [[coded(150)], [], None],
     "[[1.50],[],null]"),
    (item("int32"), [1, None], "[1,null]"),
    (item("int64"), [9007199254740993], "[9007199254740993]"),
    (item("string"), ["a", 'q"', "1"], '["a","q\\"","1"]'),
    (item("string", f"{TIME}ZonedTimestamp"), ["2018-06-20T13:37:03Z"], '["2018-06-20T13:37:03Z"]'),
    (item("boolean"), [True, False], "[true,false]"),
    (item("double"), [1.5], "[1.5]"),
    (item("bytes"), ["AQI="], '["AQI="]'),
    (MONEY, [], "[]"),
    (item("bytes", DECIMAL, **FAR), [coded(12300 * 10**2046)], "[12300]"),
]  # fmt: skip


def far(value: Any, scale: dict[str, str] = FAR) -> bytes:
    """A row whose ``v`` is numeric of that scale; a number stands in the text as it is."""
    fields = {"id": "int32", "v": ("bytes", DECIMAL, scale)}
    text = dumps(wrapped(envelope("c", {"id": 1, "v": value}), fields))
    if isinstance(value, int):
        text = text.replace(b'"v":%d' % value, b'"v":%d.%s' % (value, b"0" * 2046))
    return pack(dumps(KEY), text)


def kept(*values: Any) -> list[Any]:
    return [("U", {"id": 1, "v": value}) for value in values]


ARRAYS = [
    *(
        Case(f"an array of {items.get('name', items['type'])}: {str(given)[:40]}",
             [row(items, given), row(items, None), *[row(items, given)] * 3],
             rows=kept(wanted, None, wanted, wanted, wanted))
        for items, given, wanted in ITEMS
    ),
    Case("an item that is none", row(MONEY, [coded(3), "!!"]), good=row(MONEY, [coded(1)]),
         unfit="shop.orders: v: '!!' is not an array of d"),
    Case("an array that is none", row(MONEY, {"a": 1}),
         unfit="""shop.orders: v: '{"a":1}' is not an array"""),
    Case("an infinite item goes the way of zero dates", row(DAYS, [5, 2147483647]),
         options=FormatOptions(zero_dates="error"), unfit="v: '2147483647' is not"),
    Case("the placeholder of an array that was not sent is no list of decimals",
         row(MONEY, [base64.b64encode(bytes([byte])).decode() for byte in UNAVAILABLE.encode()],
             "u"), rows=[("U", {"id": 1})]),
    Case("items whose type changes: each row by its own schema",
         [row(money(scale), [coded(150)]) for scale in (2, 3, 2)],
         rows=kept("[1.50]", "[0.150]", "[1.50]")),
    *(
        Case(f"a negative scale comes with 2046 digits behind its point: {given} {how}",
             far(value), rows=kept(None if given is None else Decimal(given)))
        for given in (12300, -9999900, 0, None)
        for how, value in (("in base64", None if given is None else coded(given * 10**2046)),
                           ("as a number", given))
        if given is not None or how == "as a number"
    ),
    Case("a negative scale holds no fraction: nothing is cut off", far(coded(1)),
         unfit="v: 'AQ==' is not"),
    Case("PostgreSQL's largest scale is 1000",
         far(coded(5), {"scale": "1000", "connect.decimal.precision": "1000"}),
         rows=kept(f"0.{'0' * 999}5")),
]  # fmt: skip
