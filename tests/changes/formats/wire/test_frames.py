"""Frames of schema registries: which schema a key or value names, and where its payload begins."""

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.formats.engine.format import pack
from changes.formats.engine.layout import Refused
from changes.formats.wire.frames import Frame, frame_of, needed
from changes.formats.wire.schemas import SchemaId
from changes.model.registry import Registry

CONFLUENT = Registry("confluent", Path("schemas"))
APICURIO = Registry("apicurio", Path("schemas"))
GUID = "01234567-89ab-cdef-0123-456789abcdef"
VALUE, KEY = "__value_schema_id", "__key_schema_id"
LONG_7 = (7).to_bytes(8, "big")


@given(id_=st.integers(1, 2**32 - 1), guid=st.uuids(), is_key=st.booleans(), payload=st.binary())
def test_what_confluents_serializers_write(
    id_: int, guid: uuid.UUID, is_key: bool, payload: bytes
) -> None:
    """An id before the payload, or a GUID in the header of the key or value."""
    prefixed = b"\0" + id_.to_bytes(4, "big") + payload
    header = [(KEY if is_key else VALUE, b"\1" + guid.bytes)]

    by_id = frame_of(prefixed, [], CONFLUENT, is_key=is_key)
    by_guid = frame_of(payload, header, CONFLUENT, is_key=is_key)

    assert by_id == Frame(SchemaId("id", str(id_)), 5)
    assert by_guid == Frame(SchemaId("guid", str(guid)), 0, b"")
    assert frame_of(prefixed, header, CONFLUENT, is_key=not is_key) == by_id


@pytest.mark.parametrize(
    ("data", "headers", "registry", "expected"),
    [
        (b"\0\0\0\0\7x", [], APICURIO, Frame(SchemaId("content", "7"), 5)),
        (
            b"\0\0\0\0\7x",
            [],
            Registry("apicurio", Path(), "global"),
            Frame(SchemaId("global", "7"), 5),
        ),
        (b"\0" + LONG_7 + b"x", [], APICURIO, Frame(SchemaId("global", "7"), 9)),
        (
            b"\0x",
            [("apicurio.value.contentId", LONG_7)],
            APICURIO,
            Frame(SchemaId("content", "7"), 0),
        ),
        (b"", [("apicurio.value.globalId", LONG_7)], APICURIO, Frame(SchemaId("global", "7"), 0)),
        (
            b"\0\0\0\0\7x",
            [(VALUE, b"\1" + uuid.UUID(GUID).bytes + b"\2\0\4")],
            CONFLUENT,
            Frame(SchemaId("guid", GUID), 0, b"\2\0\4"),
        ),
        (b"x", [(VALUE, b"\0\0\0\0\7")], CONFLUENT, Frame(SchemaId("id", "7"), 0, b"")),
        (b"{}", [(KEY, b"\0\0\0\0\7")], CONFLUENT, None),
        (b'{"a": 1}', [("other", b"1")], CONFLUENT, None),
        (b"", [], CONFLUENT, None),
        (b"\0", [], None, None),
    ],
)
def test_a_value_that_is_framed_or_plain(
    data: bytes, headers: list[tuple[str, bytes]], registry: Registry | None, expected: Frame | None
) -> None:
    """A header decides, else the first byte; other bytes are plain."""
    assert frame_of(data, headers, registry, is_key=False) == expected


@pytest.mark.parametrize(
    ("data", "headers", "registry", "why"),
    [
        (b"\0\0\0\7", [], CONFLUENT, "a schema registry's frame of 4 bytes: it is cut off"),
        (b"\0\0\0\0\0\0", [], APICURIO, "of 6 bytes: it is cut off"),
        (b"\3\0" + b"g" * 16, [], CONFLUENT, "AWS Glue's schema registry, which is not read"),
        (b"\3\5" + b"g" * 20, [], None, "AWS Glue's schema registry, which is not read"),
        (b"\0\0\0\0\7x", [], None, "names schema 7 of a schema registry, and no registry is"),
        (b"x", [(VALUE, b"\0\0\0\0\7")], None, "schema id 7 of a schema registry, and no registry"),
        (
            b"x",
            [(VALUE, b"\0\0\0\7")],
            CONFLUENT,
            "__value_schema_id is no schema's id: 4 bytes 00",
        ),
        (b"x", [(VALUE, b"\1" + b"g" * 15)], CONFLUENT, "is no schema's id: 16 bytes 01 67"),
        (b"x", [(VALUE, b"\2" + b"g" * 16)], CONFLUENT, "is no schema's id: 17 bytes 02"),
        (b"x", [(VALUE, None)], CONFLUENT, "is no schema's id: null"),
        (b"x", [(VALUE, b"")], CONFLUENT, "is no schema's id: 0 bytes"),
        (b"x", [(VALUE, b"\0\0\0\0\7"), (VALUE, b"\0\0\0\0\x08")], CONFLUENT, "with two values"),
        (
            b"x",
            [("apicurio.value.contentId", b"\0\0\0\7")],
            APICURIO,
            "no schema's number: 4 bytes",
        ),
        (
            b"x",
            [("apicurio.value.contentId", LONG_7), ("apicurio.value.globalId", LONG_7)],
            APICURIO,
            "name a schema by two numbers",
        ),
        (b"x", [("apicurio.value.artifactId", b"orders")], APICURIO, "no contentId or globalId"),
        (
            b"x",
            [("apicurio.value.contentId", LONG_7), ("apicurio.value.encoding", b"JSON")],
            APICURIO,
            "only BINARY is read",
        ),
        (b"x", [("apicurio.value.contentId", LONG_7)], CONFLUENT, 'one of kind "confluent"'),
        (b"x", [(VALUE, b"\0\0\0\0\7")], APICURIO, "Confluent's registry, and the pipeline's"),
    ],
)
def test_a_frame_that_is_refused(
    data: bytes, headers: list[tuple[str, bytes | None]], registry: Registry | None, why: str
) -> None:
    """Headers that lie, frames that are cut off or of other registries are refused by name."""
    with pytest.raises(Refused, match=why.replace("…", ".")):
        frame_of(data, headers, registry, is_key=False)


def test_the_schemas_that_records_need() -> None:
    """Those of keys and values, by frame and by header; damaged frames are left out."""
    values = [
        pack(b"\0\0\0\0\1k", b"\0\0\0\0\2v"),
        pack(b"\0\0\0\0\1k", None),
        pack(None, b"\0\0\0\0\3v"),
        pack(b"plain", b'{"a": 1}'),
        pack(b"\0\0", b"\0\0\0"),
        pack(b"k", b"\0", [(VALUE, b"\1" + uuid.UUID(GUID).bytes), ("trace", b"\0")]),
        pack(b"\0\0\0\0\4k", None, [("trace", b"\0")]),
        pack(b"k", b"v", [(VALUE, b"lies")]),
        pack(b"", b""),
        None,
        b"not packed",
    ]

    assert needed(values, CONFLUENT) == {
        *(SchemaId("id", each) for each in "1234"),
        SchemaId("guid", GUID),
    }


@given(
    st.binary(max_size=40),
    st.lists(
        st.tuples(
            st.sampled_from([VALUE, KEY, "apicurio.value.contentId", "x"]),
            st.binary(max_size=20) | st.none(),
        ),
        max_size=3,
    ),
)
def test_any_bytes(data: bytes, headers: list[tuple[str, bytes | None]]) -> None:
    """Any bytes are framed, plain or refused, and a payload never begins behind the end."""
    for registry in (None, CONFLUENT, APICURIO):
        try:
            found = frame_of(data, headers, registry, is_key=False)
        except Refused:
            continue
        assert found is None or found.begin <= len(data)
