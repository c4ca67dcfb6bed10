"""Records whose key or headers a format needs travel as one bytes object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.formats.engine.format import VALUE_AT, Packed, pack, packed_header, unpack

PARTS = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=8), PARTS), max_size=4)


@given(PARTS, PARTS, HEADERS)
def test_parts_come_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    """Absent and empty stay apart, headers keep their order and may repeat."""
    told = unpack(pack(key, value, headers))
    assert told == Packed(key, value, told.headers)
    assert list(told.headers) == headers


def test_the_value_can_be_read_in_place() -> None:
    """It begins at a known place, whatever key and headers there are."""
    packed = pack(b"key", b"value", [("h", b"1")])
    assert packed[VALUE_AT:].startswith(b"value")


def test_a_header_alone() -> None:
    """The last of its name; one that is not there is None."""
    packed = pack(b"k", b"v", [("ps", b"1"), ("ps", b"2"), ("none", None)])
    assert packed_header(packed, "ps") == b"2"
    assert packed_header(packed, "none") is None
    assert packed_header(packed, "other") is None
    assert packed_header(pack(b"k", b"v"), "ps") is None


@pytest.mark.parametrize("cut", [b"", b"{}", pack(b"k", b"v")[:-1], pack(b"k", b"v") + b"x"])
def test_what_is_no_packed_record_is_told(cut: bytes) -> None:
    """A record that was not packed, or only part of it, is an error and no other record."""
    with pytest.raises(ValueError, match="packed record"):
        unpack(cut)
