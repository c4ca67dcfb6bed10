"""Avro's schemas as Connect's, and its bytes as JsonConverter's JSON; damage is never a value."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from changes.formats.engine.layout import Refused
from changes.formats.wire.avro import AvroTranslation
from changes.formats.wire.schemas import Reference, Schema
from tests.changes.formats.wire.records import avro_bytes, record_of, translated


def field_of(type_: Any) -> Mapping[str, Any]:
    """The Connect schema of a field of that type."""
    made = AvroTranslation(Schema("AVRO", json.dumps(record_of(type_))))
    found: Mapping[str, Any] = json.loads(made._prefix + b"null}")["schema"]["fields"][0]
    return {name: each for name, each in found.items() if name != "field"}


TIME = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
FIXED = {"type": "fixed", "size": 4, "name": "f"}


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("int", {"type": "int32"}),
        ("long", {"type": "int64"}),
        ({"type": "int", "connect.type": "int16"}, {"type": "int16"}),
        ("boolean", {"type": "boolean"}),
        ("float", {"type": "float"}),
        ("double", {"type": "double"}),
        ("string", {"type": "string"}),
        ({"type": "string", "avro.java.string": "String"}, {"type": "string"}),
        ("bytes", {"type": "bytes"}),
        (FIXED, {"type": "bytes"}),
        (["null", "int"], {"type": "int32", "optional": True}),
        (["int", "null"], {"type": "int32", "optional": True}),
        (["int"], {"type": "int32"}),
        (
            {"type": "int", "logicalType": "date"},
            {"type": "int32", "name": f"{CONNECT}Date", "version": 1},
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            {"type": "int32", "name": f"{CONNECT}Time", "version": 1},
        ),
        (
            {"type": "long", "logicalType": "time-micros"},
            {"type": "int64", "name": f"{TIME}MicroTime", "version": 1},
        ),
        *(
            (
                {"type": "long", "logicalType": f"timestamp-{unit}"},
                {"type": "string", "name": f"{TIME}ZonedTimestamp", "version": 1},
            )
            for unit in ("millis", "micros", "nanos")
        ),
        *(
            (
                {"type": "long", "logicalType": f"local-timestamp-{unit}"},
                {"type": "int64", "name": f"{TIME}{name}", "version": 1},
            )
            for unit, name in (
                ("millis", "Timestamp"),
                ("micros", "MicroTimestamp"),
                ("nanos", "NanoTimestamp"),
            )
        ),
        ({"type": "string", "logicalType": "uuid"}, {"type": "string"}),
        ({**FIXED, "size": 16, "logicalType": "uuid"}, {"type": "string"}),
        *(
            (
                {**base, "logicalType": "decimal", "precision": 9, "scale": 2},
                {
                    "type": "bytes",
                    "name": f"{CONNECT}Decimal",
                    "version": 1,
                    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
                },
            )
            for base in ({"type": "bytes"}, FIXED)
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
            {"type": "string", "parameters": {"allowed": "a,b"}},
        ),
        # Connect's own name says more than a logical type.
        (
            {
                "type": "long", "logicalType": "timestamp-millis",
                "connect.name": f"{CONNECT}Timestamp", "connect.version": 1,
            },
            {"type": "int64", "name": f"{CONNECT}Timestamp", "version": 1},
        ),
        # PostgreSQL has scales that Avro's decimals don't have; Connect's parameters say them.
        *(
            (
                {
                    "type": "bytes", "logicalType": "decimal", "precision": 3, "scale": scale,
                    "connect.name": f"{CONNECT}Decimal",
                    "connect.parameters": {"scale": str(scale)},
                },
                {
                    "type": "bytes", "name": f"{CONNECT}Decimal",
                    "parameters": {"scale": str(scale)},
                },
            )
            for scale in (-2, 5)
        ),
        (
            {
                "type": "string", "connect.name": "io.debezium.data.Enum",
                "connect.parameters": {"allowed": "x,y"},
            },
            {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "x,y"}},
        ),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": {"type": "int32", "optional": False}},
        ),
        (
            {"type": "map", "values": "long"},
            {
                "type": "map",
                "keys": {"type": "string", "optional": False},
                "values": {"type": "int64", "optional": False},
            },
        ),
        ({"type": "bytes", "connect.default": "\u00ff"}, {"type": "bytes", "default": "/w=="}),
    ],
)  # fmt: skip
def test_the_connect_schema_of_a_type(type_: Any, expected: dict[str, Any]) -> None:
    """Connect's own properties decide; where there are none, Avro's logical type does."""
    assert field_of(type_) == {"optional": False, **expected}


ENTRIES = {"type": "array", "items": {
    "type": "record", "name": "io.confluent.connect.avro.MapEntry",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
}}  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("bytes", b"\xff\x00", "/wA="),
        ("float", 1.100000023841858, 1.1),
        ("double", float("nan"), "NaN"),
        ("double", float("inf"), "Infinity"),
        ("float", -float("inf"), "-Infinity"),
        ("long", -(2**63), -(2**63)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("int", -(2**31), -(2**31)),
        ("string", 'a"\\\n\u0001é🐟', 'a"\\\n\u0001é🐟'),
        ({"type": "long", "logicalType": "timestamp-millis"}, 0, "1970-01-01T00:00:00.000Z"),
        ({"type": "long", "logicalType": "timestamp-micros"}, -1, "1969-12-31T23:59:59.999999Z"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 1, "1970-01-01T00:00:00.000000001Z"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            -62135596800000,
            "0001-01-01T00:00:00.000Z",
        ),
        (
            {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"},
            bytes(range(16)),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        (["null", "int", "string"], "x", {"string": "x"}),
        (["null", "int", "string"], 5, {"int": 5}),
        (["null", "int", "string"], None, None),
        ({"type": "array", "items": ["null", "double"]}, [1.5, None], [1.5, None]),
        ({"type": "map", "values": "int"}, {"k": 1, "l": 2}, {"k": 1, "l": 2}),
        (ENTRIES, [{"key": 1, "value": "x"}, {"key": 2, "value": None}], [[1, "x"], [2, None]]),
        (
            record_of("int", ["null", "bytes"], name="inner"),
            {"a": 1, "b": b"x"},
            {"a": 1, "b": "eA=="},
        ),
    ],
)
def test_a_value(type_: Any, value: Any, expected: Any) -> None:
    """What JsonConverter writes of it; a union of several names its branch."""
    bare = json.loads(json.dumps(record_of(type_)).replace("logicalType", "was"))
    data = avro_bytes(bare, {"a": value})

    assert translated(record_of(type_), data)["payload"] == {"a": expected}


def test_a_schema_that_holds_itself() -> None:
    """It is read, and is a document from the second level on."""
    tree = record_of("int", ["null", "tree"], name="tree")
    data = avro_bytes(tree, {"a": 1, "b": {"a": 2, "b": None}})

    found = translated(tree, data)

    assert found["payload"] == {"a": 1, "b": {"a": 2, "b": None}}
    assert found["schema"]["fields"][1] == {
        "type": "struct", "fields": [], "optional": True, "field": "b",
    }  # fmt: skip


def test_schemas_that_others_refer_to() -> None:
    """Names come from the references, and from those of these."""
    inner = Reference("shop.Id", json.dumps(record_of("long", name="shop.Id")))
    outer = Reference("shop.Row", json.dumps(record_of("shop.Id", name="shop.Row")), (inner,))
    whole = record_of(record_of(record_of("long", name="shop.Id"), name="shop.Row"), "shop.Id")
    data = avro_bytes(whole, {"a": {"a": {"a": 7}}, "b": {"a": 8}})

    found = translated(record_of("shop.Row", "shop.Id"), data, (outer,))

    assert found["payload"] == {"a": {"a": {"a": 7}}, "b": {"a": 8}}
    with pytest.raises(Refused, match=r"can't be read: shop\.Row"):
        translated(record_of("shop.Row"), data)


@pytest.mark.parametrize(
    ("field", "source", "expected"),
    [
        ("a_b", "a-b", "a-b"),
        ("_1st", "1st", "1st"),
        ("a_b", "a_b", "a_b"),
        ("renamed", "a-b", "renamed"),
        ("a__", "a é", "a é"),
    ],
)
def test_a_column_whose_name_avro_does_not_have(field: str, source: str, expected: str) -> None:
    """It has its source's name where the field's is just that, spelled for Avro."""
    parameters = {"__debezium.source.column.name": source}
    schema = record_of()
    schema["fields"] = [{"name": field, "type": {"type": "int", "connect.parameters": parameters}}]

    found = translated(schema, b"\x02")

    assert found["payload"] == {expected: 1}
    assert found["schema"]["fields"][0]["field"] == expected


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "can't be read"),
        ('"unheard"', "can't be read"),
        ("7", "can't be read"),
        (json.dumps(record_of("null")), "has no column: null"),
        (json.dumps(record_of({"type": "array", "items": "null"})), "has no column: null"),
        (
            json.dumps(record_of({"type": "array", "items": record_of(name="empty")})),
            "items take no bytes",
        ),
    ],
)
def test_a_schema_that_is_refused(schema: str, why: str) -> None:
    """By its reason, and never by an error of ours."""
    with pytest.raises(Refused, match=why):
        AvroTranslation(Schema("AVRO", schema))


WHOLE = record_of(
    ["null", "string"], {"type": "enum", "name": "e", "symbols": ["x", "y"]}, "boolean",
    "int", {"type": "array", "items": "int"}, {"type": "long", "logicalType": "timestamp-millis"},
)  # fmt: skip
GOOD = {"a": "q", "b": "y", "c": True, "d": 300, "e": [1, 2], "f": 5}
DATA = b"\2\2q\2\1\xd8\4\4\2\4\0\n"


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (DATA[:-1], "index out of range"),
        (DATA + b"\0", "it takes 12 bytes of 13"),
        (b"", "index out of range"),
        (b"\1" + DATA[1:], "a branch that the union does not have"),
        (b"\4" + DATA[1:], "a branch that the union does not have"),
        (b"\2\1" + DATA[2:], "a negative length"),
        (b"\2\x40" + DATA[2:], "can't decode byte 0xd8"),
        (b"\2\2\xff" + DATA[3:], "can't decode byte 0xff"),
        (DATA[:3] + b"\1" + DATA[4:], "a negative label"),
        (DATA[:3] + b"\4" + DATA[4:], "index out of range"),
        (DATA[:4] + b"\2" + DATA[5:], "index out of range"),
        (DATA[:5] + b"\xff\xff\xff\xff\x7f" + DATA[7:], "a number of too many digits"),
        (DATA[:5] + b"\xd8\x84\0" + DATA[7:], "a number of too many digits"),
        (DATA[:7] + b"\xfe\x7f" + DATA[8:], "more items than bytes"),
        (DATA[:11] + b"\xff" * 9 + b"\1", "which no date has"),
    ],
)
def test_damage_is_found(damaged: bytes, why: str) -> None:
    """Each byte is looked at: what no writer writes is no value."""
    assert avro_bytes(json.loads(json.dumps(WHOLE).replace("logicalType", "was")), GOOD) == DATA
    with pytest.raises(Refused, match=why):
        translated(WHOLE, damaged)
