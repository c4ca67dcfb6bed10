"""JSON Schemas as Connect's; the payload stays as it is."""

import json
from typing import Any

import pytest

from changes.formats.engine.layout import Refused
from changes.formats.wire.json_schema import JsonTranslation
from changes.formats.wire.schemas import Reference, Schema


def translated(schema: Any, payload: str, *references: Reference) -> Any:
    """The JSON of a payload with its schema, parsed."""
    made = JsonTranslation(Schema("JSON", json.dumps(schema), references))
    return json.loads(made.wrapped(b"\0\0\0\0\1" + payload.encode(), 5, None))


INT = {"type": "int64", "optional": False}
TEXT = {"type": "string", "optional": False}
DOCUMENT = {"type": "struct", "fields": [], "name": "io.confluent.connect.avro.Union"}
DECIMAL = "org.apache.kafka.connect.data.Decimal"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "integer"}, INT),
        ({"type": "integer", "connect.type": "int16"}, {"type": "int16", "optional": False}),
        ({"type": "number", "connect.type": "float32"}, {"type": "float", "optional": False}),
        ({"type": "number"}, {"type": "double", "optional": False}),
        ({"type": "string"}, TEXT),
        ({"type": "string", "enum": ["a", "b"]}, TEXT),
        ({"type": "string", "connect.type": "bytes"}, {"type": "bytes", "optional": False}),
        ({"type": "boolean"}, {"type": "boolean", "optional": False}),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, {**INT, "optional": True}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {**INT, "optional": True}),
        ({"type": ["null", "integer"]}, {**INT, "optional": True}),
        ({"type": ["integer", "string"]}, {**DOCUMENT, "optional": True}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {**DOCUMENT, "optional": False}),
        ({}, {**DOCUMENT, "optional": False}),
        (True, {**DOCUMENT, "optional": False}),
        (
            {"type": "string", "format": "date"},
            {**TEXT, "name": "io.debezium.time.IsoDate", "version": 1},
        ),
        (
            {"type": "string", "format": "date-time"},
            {**TEXT, "name": "io.debezium.time.ZonedTimestamp", "version": 1},
        ),
        ({"type": "string", "format": "uuid"}, TEXT),
        (
            {"oneOf": [{"type": "null"}, {
                "type": "number", "title": DECIMAL, "connect.version": 1, "connect.type": "bytes",
                "connect.parameters": {"scale": "2"}, "default": 1,
            }]},
            {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": {"scale": "2"},
             "optional": True, "default": 1},
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            {"type": "array", "items": INT, "optional": False},
        ),
        ({"type": "object", "connect.type": "map"}, {"type": "map", "optional": False}),
        ({"$ref": "#/definitions/id"}, INT),
        ({"$ref": "other.json"}, TEXT),
        ({"$ref": "other.json#/$defs/a~1b"}, {"type": "boolean", "optional": False}),
    ],
)  # fmt: skip
def test_the_connect_schema_of_a_part(part: Any, expected: dict[str, Any]) -> None:
    """Connect's own properties decide, then types and formats; the rest are documents."""
    schema = {
        "type": "object", "properties": {"a": part}, "definitions": {"id": {"type": "integer"}},
    }  # fmt: skip
    other = Reference("other.json", '{"type": "string", "$defs": {"a/b": {"type": "boolean"}}}')

    (field,) = translated(schema, "{}", other)["schema"]["fields"]

    assert field == {**expected, "field": "a"}


def test_fields_have_the_order_of_connect() -> None:
    """By their numbers, where they have some."""
    schema = {
        "type": "object", "title": "shop.orders.Value",
        "properties": {
            "x": {"type": "string"}, "b": {"type": "integer", "connect.index": 1},
            "a": {"type": "integer", "connect.index": 0},
        },
    }  # fmt: skip
    found = translated(schema, '{"x": "1"}')["schema"]

    assert [each["field"] for each in found["fields"]] == ["a", "b", "x"]
    assert found["name"] == "shop.orders.Value"


def test_a_part_that_holds_itself_is_a_document() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}}

    (field,) = translated(schema, '{"a": {"a": null}}')["schema"]["fields"]

    assert field == {"type": "struct", "fields": [], "optional": False, "field": "a"}


@pytest.mark.parametrize(
    "payload", ['{"a":1}', ' {"a" : 1.50, "b":"\\u00e9"} ', "[1, 2]", "null", '"text"', "12"]
)
def test_the_payload_is_not_touched(payload: str) -> None:
    made = JsonTranslation(Schema("JSON", "{}"))

    assert made.wrapped(payload.encode(), 0, None).endswith(f',"payload":{payload}}}'.encode())


def test_bare_numbers_that_json_does_not_have() -> None:
    """Some converters write them; they are text, as with Debezium's JSON."""
    assert translated({}, '{"a": NaN, "b": -Infinity}')["payload"] == {"a": "NaN", "b": "-Infinity"}


@pytest.mark.parametrize(
    "payload", ["", "{", '{"a":1}}', '{"a":1},"payload":{}', "{} {}", "\x00", "nul", '{"a": 01}']
)
def test_what_is_not_one_json_value_is_refused(payload: str) -> None:
    """Nothing in it can change what stands around it."""
    with pytest.raises(Refused, match="it is not JSON"):
        translated({}, payload)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "a JSON Schema that can't be read"),
        ('{"$ref": "#/nowhere"}', "refers to what is not there: #/nowhere"),
        ('{"$ref": "no.json"}', "refers to what is not there: no.json"),
        ('{"$ref": "#"}', "go round in a circle"),
        ('{"properties": 7, "oneOf": [7]}', ""),
    ],
)
def test_a_schema_that_is_refused(schema: str, why: str) -> None:
    if not why:
        JsonTranslation(Schema("JSON", schema))  # a document: nothing is lost
        return
    with pytest.raises(Refused, match=why):
        JsonTranslation(Schema("JSON", schema))
