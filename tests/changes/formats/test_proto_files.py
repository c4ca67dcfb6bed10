"""The .proto files and the classes made of them."""

from __future__ import annotations

import pytest

from changes.formats.engine.proto_files import messages, read_proto


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
        "package p;",
        'syntax = "proto3"; package p; message M { oneof x { int32 a = 1; } }',
        'syntax = "proto3"; package p; message M { map<string, int32> a = 1; }',
        'syntax = "proto3"; package p; message M { optional int32 a = 1; }',
        'syntax = "proto3"; package p; import "other.proto";',
    ],
)
def test_what_is_not_of_the_subset_is_refused(text: str) -> None:
    """A field that is passed over would be lost in silence."""
    with pytest.raises(ValueError, match=r"x\.proto|not understood"):
        read_proto("x.proto", text)
