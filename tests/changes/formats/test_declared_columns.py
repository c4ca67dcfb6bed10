"""Rows of formats that tell no types, in columns whose types the configuration declares."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import BadRecord, Changes, ColumnTypes, FormatOptions, Mode
from tests.changes.formats.canal.messages import message
from tests.changes.formats.debezium.messages import dumps, envelope, structure, typed
from tests.changes.formats.json_messages import Number, maxwell, ogg

ORDERS: ColumnTypes = (
    ("id", "bigint"),
    ("price", "decimal(10,2)"),
    ("paid", "boolean"),
    ("at", "timestamp"),
    ("seen", "timestamptz"),
    ("day", "date"),
    ("rate", "double"),
    ("photo", "blob"),
    ("took", "time"),
)
JSON_ROW: dict[str, Any] = {
    "id": 1,
    "price": Number("1.5"),
    "paid": True,
    "at": "2020-05-13 15:40:06.123",
    "seen": "2020-05-13 15:40:06",
    "day": "2020-05-13",
    "rate": Number("1e3"),
    "photo": "AAH/",
    "took": "-101:02:03",
    "note": "as it stands",
}
LAKE_ROW = {
    "id": 1,
    "price": Decimal("1.50"),
    "paid": True,
    "at": datetime(2020, 5, 13, 15, 40, 6, 123000),
    "seen": datetime(2020, 5, 13, 7, 40, 6, tzinfo=UTC),
    "day": date(2020, 5, 13),
    "rate": 1000.0,
    "photo": b"\x00\x01\xff",
    "took": "-101:02:03",
    "note": "as it stands",
}


def decoded(
    name: str,
    types: ColumnTypes,
    *values: bytes,
    zone: str = "Asia/Shanghai",
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = None,
) -> Changes:
    """Decode by a fresh decoder of these declared types; there must be rows."""
    decoder = FORMATS[name](FormatOptions(zone)).table_decoder(mode, keys, types)
    changes = decoder.decode(0, range(len(values)), values)
    assert changes is not None
    return changes


def only_row(changes: Changes) -> dict[str, Any]:
    """The one decoded row without binlogd's own columns."""
    (row,) = changes.table.to_pylist()
    return {name: value for name, value in row.items() if not name.startswith("__binlogd")}


def test_maxwells_rows_have_the_declared_types() -> None:
    """A table of Maxwell's is typed where the route says so; other columns stay text."""
    found = decoded("maxwell-json", ORDERS, maxwell(data=JSON_ROW))
    assert only_row(found) == LAKE_ROW


def test_goldengates_rows_have_the_declared_types() -> None:
    """The columns are in capitals, the configuration need not be."""
    row = {name.upper(): value for name, value in JSON_ROW.items()}
    found = decoded("ogg-json", ORDERS, ogg(after=row, primary_keys=["ID"]))
    assert only_row(found) == {name.upper(): value for name, value in LAKE_ROW.items()}


def test_flinks_canal_rows_have_the_declared_types() -> None:
    """Canal's shape with typed values and without mysqlType is typed by the route."""
    row = {name: str(value) if isinstance(value, Number) else value for name, value in
           JSON_ROW.items()}  # fmt: skip
    found = decoded("canal-json", ORDERS, message(data=[row], types=None))
    assert only_row(found) == LAKE_ROW


def debezium(row: dict[str, Any], *, key: Any = None) -> bytes:
    """A record without schema, as ``schemas.enable=false`` leaves it."""
    return pack(dumps(key or {"id": 1}), dumps(envelope("c", row)))


def test_debeziums_rows_without_schema_have_the_declared_types() -> None:
    """Plain words read what stands there: numbers, ISO texts, days, base64."""
    row = dict(JSON_ROW, price=1.5, rate=1000.0, took="02:03:04")
    row |= {"seen": "2020-05-13T07:40:06Z", "day": 18395}
    found = decoded("debezium-json", ORDERS, debezium(row))
    assert only_row(found) == LAKE_ROW | {"took": "02:03:04"}


def test_debeziums_own_names_tell_the_units_of_numbers() -> None:
    """A number alone could be milli- or microseconds, base64 a decimal or bytes."""
    types: ColumnTypes = (
        ("id", "bigint"),
        ("price", "org.apache.kafka.connect.data.Decimal(10,2)"),
        ("made", "io.debezium.time.Timestamp"),
        ("changed", "io.debezium.time.MicroTimestamp"),
        ("took", "io.debezium.time.MicroTime"),
        ("flags", "io.debezium.data.Bits(8)"),
        ("any", "io.debezium.data.VariableScaleDecimal"),
    )
    row = {"id": 1, "price": "AJY=", "made": 1589384406123, "changed": 1589384406123456}
    row |= {"took": 7384000000, "flags": "BQ==", "any": {"scale": 1, "value": "Dw=="}}
    assert only_row(decoded("debezium-json", types, debezium(row))) == {
        "id": 1,
        "price": Decimal("1.50"),
        "made": datetime(2020, 5, 13, 15, 40, 6, 123000),
        "changed": datetime(2020, 5, 13, 15, 40, 6, 123456),
        "took": "02:03:04",
        "flags": 5,
        "any": "1.5",
    }


def test_a_number_where_a_plain_timestamp_is_declared_says_what_to_declare() -> None:
    """Guessing its unit could shift it by a factor of a thousand."""
    with pytest.raises(BadRecord, match=r"shop\.orders: at: '1589384406123' is not a timestamp in "
                       r"text \(a number needs io\.debezium\.time\.MicroTimestamp"):  # fmt: skip
        decoded("debezium-json", ORDERS, debezium({"id": 1, "at": 1589384406123}))


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("id", "x", "id: 'x' is not a bigint"),
        ("id", Number("1.5"), "id: '1.5' is not a bigint"),
        ("id", Number("9223372036854775808"), "id: '9223372036854775808' is not a bigint"),
        ("price", Number("1.555"), r"price: '1.555' is not a decimal\(10,2\)"),
        ("price", Number("123456789"), r"price: '123456789' is not a decimal\(10,2\)"),
        ("paid", 2, "paid: '2' is not a boolean"),
        ("at", "2020-05-13T15:40:06Z", "at: '2020-05-13T15:40:06Z' is not a timestamp"),
        ("at", "2020-05-13 15:40:06.1234567", "at: '2020-05-13 15:40:06.1234567' is not"),
        ("seen", "yesterday", "seen: 'yesterday' is not a timestamptz"),
        ("photo", "no base64!", "photo: 'no base64!' is not a blob"),
        ("day", "2023-02-30", "day: '2023-02-30' is not a date"),
        ("day", {"y": 1}, "day: .* is not a date"),
    ],
)
def test_a_value_that_is_none_of_the_declared_type_is_named(
    column: str, value: Any, reason: str
) -> None:
    """Table, column, value and what was expected; the records before it are good."""
    good, bad = maxwell(data={"id": 1}), maxwell(data={"id": 1} | {column: value})
    with pytest.raises(BadRecord, match=f"^shop.orders: {reason}") as caught:
        decoded("maxwell-json", ORDERS, good, bad)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    "text",
    [
        "2020-05-13T15:40:06.5Z",
        "2020-05-13 15:40:06.5 +00:00",
        "2020-05-13T17:40:06.500000000+02:00",
        "2020-05-13 23:40:06.5",
    ],
)
def test_a_point_in_time_is_read_with_its_offset_or_in_the_configured_zone(text: str) -> None:
    """Values of either kind may stand in one column."""
    rows = [maxwell(data={"id": 1, "seen": text}), maxwell(data={"id": 2, "seen": None})]
    found = decoded("maxwell-json", ORDERS, *rows, zone="Asia/Shanghai")
    assert found.table["seen"].to_pylist() == [
        datetime(2020, 5, 13, 15, 40, 6, 500000, tzinfo=UTC), None
    ]  # fmt: skip


def test_keys_and_old_keys_have_the_declared_type() -> None:
    """A changed key ends the typed old one."""
    move = maxwell("update", data={"id": 2, "price": Number("2")}, old={"id": 1})
    found = decoded("maxwell-json", ORDERS, move)
    assert found.table["id"].to_pylist() == [1, 2]
    assert found.schema.columns[0].type == pa.int64()


def test_a_type_that_the_message_tells_must_fit_the_declared_one() -> None:
    """int goes into a declared bigint, bigint widens a declared int, text is refused by name."""

    def n_of(declared: str, told: str) -> pa.DataType:
        value = message(data=[{"id": "1", "n": "5"}], types={"id": "int", "n": told})
        return decoded("canal-json", (("n", declared),), value).table["n"].type

    assert n_of("bigint", "int") == n_of("int", "bigint") == pa.int64()
    with pytest.raises(BadRecord, match=r"n: the type bigint \(int64\) can't become varchar\(9\)"):
        n_of("bigint", "varchar(9)")


def test_a_schema_that_comes_later_must_fit_the_declared_type() -> None:
    """Debezium's schemas may be turned on at any time."""
    schema = structure("e", {"op": "string"})
    rows = {"type": "struct", "optional": True, "field": "after",
            "fields": [{"type": "int32", "optional": True, "field": "id"}]}  # fmt: skip
    schema["fields"].append(rows)
    wrapped = {"schema": schema, "payload": envelope("c", {"id": 2})}
    told = pack(dumps({"id": 2}), json.dumps(wrapped).encode())
    found = decoded("debezium-json", (("id", "bigint"),), debezium({"id": 1}), told)
    assert found.table["id"].to_pylist() == [1, 2]
    assert found.table["id"].type == pa.int64()


def test_a_changelog_has_the_declared_types_too() -> None:
    """Without a key the rows are typed all the same."""
    row = maxwell(data=JSON_ROW, primary_key_columns=[])
    found = decoded("maxwell-json", ORDERS, row)
    assert found.mode is Mode.APPEND
    assert found.table["price"].to_pylist() == [Decimal("1.50")]


@pytest.mark.parametrize("op", ["I", "U", "D"])
def test_a_configured_key_is_found_whatever_its_case(op: str) -> None:
    """Oracle spells its columns in capitals; configurations need not."""
    image = {"ID": 1, "NAME": "a"}
    before, after = (image, None) if op == "D" else (None, image)
    flat = pack(None, dumps(envelope(op.lower().replace("i", "c"), after, image)))
    for name, value in (("ogg-json", ogg(op, after, before)), ("debezium-json", flat)):
        found = decoded(name, (), value, keys=("id",))
        assert found.schema.keys == ("ID",)
        assert found.table["ID"].to_pylist() == ["1"]


def canal_values(declared: str, *told: tuple[str, str]) -> list[Any]:
    """The values of one column, each with the type that its message tells."""
    values = [
        message(data=[{"id": str(place), "v": text}], types={"id": "int", "v": kind})
        for place, (kind, text) in enumerate(told)
    ]
    found: list[Any] = decoded("canal-json", (("v", declared),), *values).table["v"].to_pylist()
    return found


def test_a_column_that_is_declared_as_text_takes_whatever_type_the_source_makes_of_it() -> None:
    """The way out for a column whose types no lake type holds together: the texts as they come."""
    told = [("int", "5"), ("varchar(9)", "x"), ("datetime", "0000-00-00 00:00:00")]
    enum = ("enum('a','b')", "2")
    assert canal_values("string", *told, enum) == ["5", "x", "0000-00-00 00:00:00", "b"]


def test_a_column_that_is_declared_with_more_digits_takes_a_scale_that_grows() -> None:
    """Iceberg can't change a stored scale; a table that is made with the larger one holds both."""
    told = [("decimal(10,2)", "1.50"), ("decimal(12,4)", "1.2345"), ("int", "7")]
    expected = [Decimal("1.5000"), Decimal("1.2345"), Decimal("7.0000")]
    assert canal_values("decimal(20,4)", *told) == expected


def test_bytes_are_never_taken_as_declared_text() -> None:
    """Which text they are is not told."""
    with pytest.raises(BadRecord, match=r"v: the type string \(string\) can't become blob"):
        canal_values("string", ("blob", "a"))


TIME = "io.debezium.time"
ZONED = "2018-06-20T13:37:03.1234567+02:00"


def debezium_texts(*told: tuple[Any, Any]) -> list[Any]:
    """The values of a column that is declared as text, each with the type of its own schema."""
    values = [
        typed("c", {"id": "int32", "v": kind}, {"id": place, "v": value})
        for place, (kind, value) in enumerate(told)
    ]
    found = decoded("debezium-json", (("v", "string"),), *values).table["v"]
    assert found.type == pa.string()
    texts: list[Any] = found.to_pylist()
    return texts


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (("int64", f"{TIME}.NanoTimestamp"), 1529501823123456700, "2018-06-20 13:37:03.123456700"),
        (("int64", f"{TIME}.NanoTimestamp"), 1529501823123456000, "2018-06-20 13:37:03.123456"),
        (("int64", f"{TIME}.NanoTimestamp"), -1, "1969-12-31 23:59:59.999999999"),
        (("int64", f"{TIME}.MicroTimestamp"), 1529501823000000, "2018-06-20 13:37:03"),
        (("int64", f"{TIME}.Timestamp"), 1529501823120, "2018-06-20 13:37:03.120000"),
        (("string", f"{TIME}.ZonedTimestamp"), ZONED, ZONED),
        (
            ("string", f"{TIME}.IsoTimestamp"),
            "2018-06-20T13:37:03.1234567Z",
            "2018-06-20T13:37:03.1234567Z",
        ),
        (("int32", f"{TIME}.Date"), -719162, "0001-01-01"),
        (("int64", f"{TIME}.NanoTime"), 3661000000001, "01:01:01.000000001"),
        (("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "3"}), "AJY=", "0.150"),
        (("bytes", "io.debezium.data.Bits", {"length": "8"}), "BQ==", "5"),
        ("int64", 9007199254740993, "9007199254740993"),
        ("double", 0.1, "0.1"),
        ("boolean", True, "true"),
        ("string", "as it stands", "as it stands"),
        ("string", None, None),
    ],
)
def test_a_column_of_debeziums_that_is_declared_as_text_keeps_every_digit(
    kind: Any, given: Any, text: Any
) -> None:
    """The way out for SQL Server's datetime2(7): no lake type has so many digits of a second."""
    assert debezium_texts((kind, given)) == [text]


def test_a_structured_timestamp_that_is_declared_as_text_is_the_json_that_came() -> None:
    """It may hold more digits than any text of ours shows."""
    given = {"year": 2018, "month": 6, "day": 20, "picoseconds": 1}
    (text,) = debezium_texts((("struct", f"{TIME}.StructuredTimestamp"), given))
    assert json.loads(text) == given


def test_text_declared_for_debezium_takes_whatever_type_its_schemas_make_of_it() -> None:
    """Also records that come without a schema, before or between."""
    told = [(("int64", f"{TIME}.MicroTimestamp"), 1), ("string", "x"), ("int32", 5)]
    assert debezium_texts(*told) == ["1970-01-01 00:00:00.000001", "x", "5"]
    bare = debezium({"id": 7, "v": "plain"}, key={"id": 7})
    moment = typed(
        "c", {"id": "int32", "v": ("int64", f"{TIME}.NanoTimestamp")}, {"id": 8, "v": 700}
    )
    found = decoded("debezium-json", (("id", "int"), ("v", "string")), bare, moment)
    assert found.table["v"].to_pylist() == ["plain", "1970-01-01 00:00:00.000000700"]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (("int64", f"{TIME}.NanoTimestamp"), "yesterday"),
        (("int64", f"{TIME}.MicroTimestamp"), 9223372036825200000),
        (("int32", f"{TIME}.Date"), 2_932_897),
    ],
)
def test_what_is_no_moment_is_none_as_text_either(kind: Any, given: Any) -> None:
    """A year beyond 9999, or no number."""
    format_ = FORMATS["debezium-json"](FormatOptions(zero_dates="error"))
    decoder = format_.table_decoder(Mode.UPSERT, None, (("v", "string"),))
    value = typed("c", {"id": "int32", "v": kind}, {"id": 1, "v": given})
    with pytest.raises(BadRecord, match=r"v: '[\w]+' is not an io\.debezium\.time"):
        decoder.decode(0, [0], [value])


def test_bytes_of_debeziums_are_never_taken_as_declared_text() -> None:
    """Which text they are is not told."""
    with pytest.raises(BadRecord, match=r"v: the type string \(string\) can't become value of byt"):
        debezium_texts(("bytes", "AAH/"))
