"""Protobuf's schemas as Connect's, and its bytes as JsonConverter's JSON."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from changes.formats.engine.layout import Refused
from changes.formats.engine.proto_files import parse_proto
from changes.formats.wire.protobuf import ProtobufTranslation
from changes.formats.wire.protobuf_files import ProtobufFiles, class_of
from changes.formats.wire.schemas import Reference, Schema

META = """[(confluent.field_meta) = {
  params: [{key: "precision", value: "9"}, {key: "scale", value: "2"}]}]"""
TEXT = f"""
syntax = "proto3";
package shop;
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
message Row {{
  int32 id = 1;
  optional int32 i = 2; optional sint64 l = 3; optional uint64 u = 4; optional bool b = 5;
  optional float f = 6; optional double g = 7; optional string s = 8; optional bytes x = 9;
  google.protobuf.Int32Value w = 10;
  confluent.type.Decimal d = 11 {META};
  confluent.type.Decimal free = 12;
  google.type.Date da = 13;
  google.type.TimeOfDay t = 14;
  google.protobuf.Timestamp ts = 15;
  optional Color c = 16;
  repeated int32 many = 17;
  map<string, int32> by_name = 18;
  map<int32, string> by_number = 19;
  Row inner = 20;
  optional int32 small = 21
    [(confluent.field_meta).params = {{key: "connect.type", value: "int16"}}];
  oneof either {{ string one = 22; int32 other = 23; }}
  enum Color {{ RED = 0; BLUE = 2; }}
  message Nested {{ int32 n = 1; }}
}}
message Second {{ int32 z = 1;
  message Nested {{ int32 n = 1; message Deep {{ string s = 1; }} }}
}}
"""
ROW = b"\0"
ZERO = {"zero": True}


def message_of(text: str, place: tuple[int, ...], values: dict[str, Any]) -> bytes:
    """The bytes of a message."""
    made = class_of(ProtobufFiles(Schema("PROTOBUF", text)).message(place))
    return made(**values).SerializeToString()


def translated(
    text: str, payload: bytes, *, key: bytes | None = None, **meanings: bool
) -> dict[str, Any]:
    """The JSON of a payload with its schema, parsed."""
    made = ProtobufTranslation(Schema("PROTOBUF", text), **meanings)
    found: dict[str, Any] = json.loads(made.wrapped(payload, 0, None, key))
    return found


NULLS = {
    "i": None, "l": None, "u": None, "b": None, "f": None, "g": None, "s": None, "x": None,
    "w": None, "d": None, "free": None, "da": None, "t": None, "ts": None, "c": None, "many": [],
    "by_name": {}, "by_number": [], "inner": None, "small": None, "one": None, "other": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({}, {}),
        ({"i": 0}, {"i": 0}),
        (
            {"i": -(2**31), "l": -(2**63), "u": 2**64 - 1},
            {"i": -(2**31), "l": -(2**63), "u": 2**64 - 1},
        ),
        ({"b": False, "s": "", "x": b""}, {"b": False, "s": "", "x": ""}),
        ({"f": 1.100000023841858, "g": 0.1}, {"f": 1.1, "g": 0.1}),
        ({"f": float("nan"), "g": -float("inf")}, {"f": "NaN", "g": "-Infinity"}),
        ({"x": b"\xff\0"}, {"x": "/wA="}),
        ({"w": {"value": 0}}, {"w": 0}),
        ({"d": {"value": b"\1\2", "precision": 9, "scale": 2}}, {"d": "AQI="}),
        ({"free": {"value": b"\1", "scale": 3}}, {"free": {"scale": 3, "value": "AQ=="}}),
        ({"da": {"year": 1970, "month": 1, "day": 2}}, {"da": 1}),
        ({"t": {"hours": 23, "minutes": 59, "seconds": 59, "nanos": 5}}, {"t": 86399000000005}),
        ({"ts": {"seconds": -1, "nanos": 5000}}, {"ts": "1969-12-31T23:59:59.000005000Z"}),
        ({"c": 2}, {"c": "BLUE"}),
        ({"many": [0, 1]}, {"many": [0, 1]}),
        ({"by_name": {"k": 0}}, {"by_name": {"k": 0}}),
        ({"by_number": {2: "b", 1: "a"}}, {"by_number": [[1, "a"], [2, "b"]]}),
        ({"one": ""}, {"one": ""}),
        ({"inner": {"id": 7}}, {"inner": {"id": 7, **NULLS}}),
    ],
)
def test_a_value(given_: dict[str, Any], expected: dict[str, Any]) -> None:
    """What JsonConverter writes of it; what shows that it is not there is null."""
    payload = message_of(TEXT, (0,), {"id": 1, **given_})

    assert translated(TEXT, ROW + payload, **ZERO)["payload"] == {"id": 1, **NULLS, **expected}


def test_the_connect_schema() -> None:
    """Types, what Confluent's options say, and the logical types of Connect."""
    fields = {
        each.pop("field"): each
        for each in translated(TEXT, ROW + b"\x08\1", **ZERO)["schema"]["fields"]
    }
    connect, time = "org.apache.kafka.connect.data.", "io.debezium.time."
    assert fields["id"] == {"type": "int32", "optional": False}
    assert fields["w"] == {"type": "int32", "optional": True}
    assert fields["small"] == {"type": "int16", "optional": True}
    assert fields["d"] == {
        "type": "bytes", "name": f"{connect}Decimal", "version": 1, "optional": True,
        "parameters": {"scale": "2", "connect.decimal.precision": "9"},
    }  # fmt: skip
    assert fields["da"]["name"] == f"{connect}Date"
    assert fields["t"]["name"] == f"{time}NanoTime"
    assert fields["ts"]["name"] == f"{time}IsoTimestamp"
    assert fields["free"]["name"] == "io.debezium.data.VariableScaleDecimal"
    assert fields["c"]["parameters"] == {"allowed": "RED,BLUE"}
    assert fields["many"]["type"] == "array"
    assert fields["inner"] == {"type": "struct", "fields": [], "optional": True}
    instants = translated(TEXT, ROW + b"\x08\1", zero=True, instants=True)["schema"]["fields"]
    assert instants[14]["name"] == f"{time}ZonedTimestamp"


@pytest.mark.parametrize(
    ("index", "place", "expected"),
    [
        (b"\0", (0,), None),
        (b"\2\2", (1,), {"z": 5}),
        (b"\4\2\0", (1, 0), {"n": 5}),
        (b"\6\2\0\0", (1, 0, 0), {"s": "x"}),
    ],
)
def test_the_message_index(index: bytes, place: Sequence[int], expected: Any) -> None:
    """A number for each level; a zero alone is the first message of the file."""
    values = {"s": "x"} if expected == {"s": "x"} else {"z" if place == (1,) else "n": 5}
    payload = message_of(TEXT, tuple(place), values if expected else {"id": 1})
    made = ProtobufTranslation(Schema("PROTOBUF", TEXT), zero=True)

    in_payload = json.loads(made.wrapped(index + payload, 0, None))["payload"]
    in_header = json.loads(made.wrapped(payload, 0, index))["payload"]

    assert in_payload == in_header == (expected or {"id": 1, **NULLS})


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "message index is cut off"),
        (b"\2", "message index is cut off"),
        (b"\1", "message index is damaged"),
        (b"\2\1", "message index is damaged"),
        (b"\xfe\xff\xff\xff\xff\1", "message index is damaged"),
        (b"\2\x08", r"message index \[4\] is not in its schema"),
        (ROW + b"\x08", "are no message of its Protobuf schema"),
        (ROW + b"\x08\1\x08\1", "that takes 2 bytes of 4"),
        (ROW + b"\x08\1\xf8\x07\1", "that takes 2 bytes of 5"),
        (ROW + b"\x08\x81\0", "that takes 2 bytes of 3"),
        (ROW + b"\x0a\1a", "that takes 0 bytes of 3"),
        (ROW + b"\x42\1\xff", "are no message of its Protobuf schema"),
        (ROW + b"\x80\1\7", "column c: its enumeration has no number 7"),
        (ROW + b"\x6a\4\x08\xd0\x0f\x10", "are no message of its Protobuf schema"),
        (ROW + b"\x6a\5\x08\xd0\x0f\x10\x0d", "2000-13-0 is no date"),
        (ROW + b"\x5a\2\x18\3", "a decimal of scale 3 in a column of scale 2"),
        (ROW + b"\x7a\x08\x08\xff\xff\xff\xff\xff\xff\x7f", "which no date has"),
        (b"\4\0\0\x08\5", "counts the messages in Row before or with maps"),
    ],
)
def test_damage_is_found(payload: bytes, why: str) -> None:
    """Every byte is of a field of the schema, which stands there once."""
    with pytest.raises(Refused, match=why):
        translated(TEXT, payload, **ZERO)


@given(st.binary(max_size=60))
def test_any_bytes(payload: bytes) -> None:
    """They are refused, or they are the bytes of the value that is read: none is left out."""
    try:
        found = translated(TEXT, ROW + payload, **ZERO)["payload"]
    except Refused:
        return
    assert found.keys() == {"id", *NULLS}


PLAIN = 'syntax = "proto3"; message Value { int32 id = 1; int32 n = 2; string s = 3; }'


def test_a_field_that_is_not_there_may_be_null() -> None:
    """Where no field of the schema shows whether it is there, a zero is refused, but in the key."""
    whole = message_of(PLAIN, (0,), {"id": 0, "n": 1, "s": "x"})
    short = message_of(PLAIN, (0,), {"id": 1, "n": 1})

    assert translated(PLAIN, b"\0" + whole, key=b'{"id":0}')["payload"]["id"] == 0
    assert translated(PLAIN, b"\0" + whole, key=b'{"schema":null,"payload":{"id":0}}')
    with pytest.raises(Refused, match=r"column id is not there, so it is zero or NULL"):
        translated(PLAIN, b"\0" + whole, key=b'{"x":0}')
    with pytest.raises(Refused, match=r"column s is .*set optional\.for\.nullables=true in the"):
        translated(PLAIN, b"\0" + short, key=b'{"id":1}')
    assert translated(PLAIN, b"\0" + short, zero=True)["payload"] == {"id": 1, "n": 1, "s": ""}


def test_a_marked_schema_means_what_it_says() -> None:
    """One field that shows it, and the plain ones are zero where they are not there."""
    marked = PLAIN.replace("int32 n", "optional int32 n")

    assert translated(marked, b"\0")["payload"] == {"id": 0, "n": None, "s": ""}


def test_a_list_that_is_not_there_may_be_null() -> None:
    """No schema can mark it."""
    text = 'syntax = "proto3"; message Value { optional int32 n = 1; repeated int32 many = 2; }'

    assert translated(text, b"\0\x12\1\0")["payload"] == {"n": None, "many": [0]}
    with pytest.raises(Refused, match="column many is not there"):
        translated(text, b"\0")


ENVELOPE = """
syntax = "proto3"; package a.shop.orders;
message Envelope { Value before = 1; Value after = 2; string op = 3; int64 ts_ms = 4;
  message Value { int32 id = 1; string s = 2; } }
"""


def test_only_rows_have_nulls() -> None:
    """The members of an envelope may be zero."""
    payload = message_of(ENVELOPE, (0,), {"after": {"id": 1, "s": "x"}, "op": "c"})
    lacking = message_of(ENVELOPE, (0,), {"after": {"id": 1}, "op": "c"})

    assert translated(ENVELOPE, b"\0" + payload, key=b'{"id":1}')["payload"]["ts_ms"] == 0
    with pytest.raises(Refused, match="column s is not there"):
        translated(ENVELOPE, b"\0" + lacking, key=b'{"id":1}')


def test_a_serialized_descriptor() -> None:
    """As a registry gives it with format=serialized, options included."""
    file = parse_proto("row.proto", TEXT).file
    params = descriptor_pb2.FieldOptions()
    pairs = (b"\n\tprecision\x12\x019", b"\n\x05scale\x12\x012")
    meta = b"".join(b"\x12" + bytes([len(pair)]) + pair for pair in pairs)
    params.MergeFromString(b"\x82\x44" + bytes([len(meta)]) + meta)
    next(f for f in file.message_type[0].field if f.name == "d").options.CopyFrom(params)
    text = base64.b64encode(file.SerializeToString()).decode()
    payload = message_of(TEXT, (0,), {"id": 1, "d": {"value": b"\1", "scale": 2}})

    found = translated(text, ROW + payload, **ZERO)

    assert found["payload"]["d"] == "AQ=="
    assert found["schema"]["fields"][10]["parameters"]["scale"] == "2"


def test_imports() -> None:
    """Of references, and of theirs; what is not there is named."""
    inner = Reference("id.proto", 'syntax = "proto3"; package p; message Id { int32 n = 1; }')
    outer = Reference(
        "key.proto",
        'syntax = "proto3"; package p; import "id.proto"; message K { Id id = 1; }',
        (inner,),
    )
    text = """syntax = "proto3"; import "key.proto"; import "id.proto";
        message Key { p.K k = 1; p.Id i = 2; }"""
    made = ProtobufTranslation(Schema("PROTOBUF", text, (outer, inner)))

    found = json.loads(made.wrapped(b"\0\n\4\n\2\x08\5\x12\2\x08\6", 0, None))

    assert found["payload"] == {"k": {"id": {"n": 5}}, "i": {"n": 6}}
    with pytest.raises(Refused, match=r"it imports key\.proto, which is not there"):
        ProtobufTranslation(Schema("PROTOBUF", text))


@pytest.mark.parametrize("text", ["message", "message M { X x = 1; }", "AAAA", "\0"])
def test_a_schema_that_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="a Protobuf schema that can't be read"):
        ProtobufTranslation(Schema("PROTOBUF", text))
