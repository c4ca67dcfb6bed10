"""The .proto files and the classes made of them."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pool, message_factory, timestamp_pb2

from changes.formats.engine.proto_files import messages, parse_proto


def test_two_files_of_one_package_may_share_a_name() -> None:
    """Canal's two both have a value HEARTBEAT: in one pool that is an error."""
    packets, entries = messages("canal/packet.proto"), messages("canal/entry.proto")
    kinds = packets["Packet"].DESCRIPTOR.fields_by_name["type"].enum_type
    assert kinds.values_by_name["HEARTBEAT"].number == 11
    types = entries["Entry"].DESCRIPTOR.fields_by_name["entryType"].enum_type
    assert types.values_by_name["HEARTBEAT"].number == 4


@pytest.mark.parametrize("name", ["canal/packet.proto", "canal/entry.proto", "tencent/dts.proto"])
def test_no_number_is_used_twice(name: str) -> None:
    """Neither among a message's fields nor an enumeration's values."""
    for made in messages(name).values():
        fields = made.DESCRIPTOR.fields
        assert len({field.number for field in fields}) == len(fields)
        for field in fields:
            values = [] if field.enum_type is None else field.enum_type.values
            assert len({value.number for value in values}) == len(values)


@pytest.mark.parametrize(
    "text",
    [
        "package p",
        "message M { int32 a = 1 }",
        "message M { int32 a = 1;",
        "message M { optional group A = 1 { } }",
        "message M { map<string int32> a = 1; }",
        "import other;",
        "what = 1;",
        "message M { int32 a = 1; } ?",
        'option a = "b',
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    """A field that is passed over would be lost in silence."""
    with pytest.raises(ValueError, match=r"x\.proto|not understood"):
        parse_proto("x.proto", text)


WHOLE = """
// A file with all that there is.
syntax = "proto3";
package p.q; /* more; { */
import public "google/protobuf/timestamp.proto";
option java_package = "a;b";
message M {
  option deprecated = true;
  reserved 9, 20 to 30; reserved "old";
  N n = 1; repeated E es = 2 [packed = true, (x.field_meta) = { doc: "a" "b",
    params: [ { key: "k", value: "v" }, { key: "l" value: "w" } ] }];
  oneof one { int32 i = 3; string s = 4; }
  optional string o = 5; map<string, N> by_name = 6; google.protobuf.Timestamp ts = 7;
  message N { sint64 big = 0x1; }
}
enum E { option allow_alias = true; A = 0 [deprecated = true]; B = -1; C = -1; }
extend google.protobuf.FieldOptions { string x = 50000; }
service S { rpc Do (M) returns (M) { option idempotent = true; } }
"""


def test_a_whole_file() -> None:
    """Its messages work in a pool, with their fields, presence and scopes."""
    found = parse_proto("x.proto", WHOLE)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(found.file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.q.M"))

    message = made(n={"big": -1}, es=[0, -1], s="x", o="", by_name={"a": {"big": 2}})

    assert made.FromString(message.SerializeToString()) == message
    fields = made.DESCRIPTOR.fields
    assert {each.name for each in fields if each.has_presence} == {"n", "i", "s", "o", "ts"}
    options = found.options["p.q.M", "es"]
    assert options["packed"] == "true"
    assert options["(x.field_meta)"] == [
        ("doc", "ab"),
        ("params", [[("key", "k"), ("value", "v")], [("key", "l"), ("value", "w")]]),
    ]
