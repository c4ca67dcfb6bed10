"""Bad records of registry formats: each is named, by its place and its reason."""

from pathlib import Path

import pytest

from changes.formats.engine.format import pack, unpack
from changes.formats.wire.format import Debezium
from changes.formats.wire.schemas import Schema, SchemaId
from changes.model.model import BadMessage, BadRecord, FormatOptions, Head, Kind, Mode, TableName
from tests.changes.formats.debezium.messages import change
from tests.changes.formats.wire.records import Kept, framed, json_record

ORDERS = TableName("shop", "orders")
VALUE = "__value_schema_id"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_what_has_no_frame_is_read_without_a_registry(kept: Kept) -> None:
    """The name ``debezium`` is for JSON as well."""
    format_ = Debezium(FormatOptions())

    assert format_.peek(change("c", {"id": 1})) == Head(Kind.ROWS, ORDERS)
    with pytest.raises(BadMessage, match="names schema 1 of a schema registry, and no registry"):
        format_.peek(kept.as_avro(json_record("c", {"id": 1, "name": "a"})))


def test_the_first_bad_record_is_named(kept: Kept) -> None:
    """By its place, whatever is wrong with it, and nothing is kept of the call."""
    good = kept.as_avro(json_record("c", {"id": 1, "name": "a"}))
    no_key = pack(None, unpack(good).value)
    cut_off = pack(unpack(good).key, (unpack(good).value or b"")[:-1])
    missing = pack(b'{"id":1}', framed(SchemaId("id", "99"), b"x"))
    decoder = Debezium(kept.options()).table_decoder(Mode.UPSERT, None)
    for values, place, why in (
        ([good, cut_off, no_key], 1, "the value: schema id 2: its bytes are no value"),
        ([good, no_key, cut_off], 1, "the key was"),
        ([good, good, missing], 2, "the value: its schema id 99 is not among those"),
    ):
        with pytest.raises(BadRecord, match=why) as bad:
            decoder.decode(7, range(3), values)
        assert bad.value.index == place
    assert decoder.schema is None
    changes = decoder.decode(7, [0], [good])
    assert changes is not None
    assert changes.count == 1


def test_headers_that_lie(kept: Kept) -> None:
    """A bad record by name, also where its frame would be read."""
    found = unpack(kept.as_avro(json_record("c", {"id": 1, "name": "a"})))
    format_ = Debezium(kept.options())

    with pytest.raises(BadMessage, match="__value_schema_id is no schema's id: 3 bytes"):
        format_.peek(pack(found.key, found.value, [(VALUE, b"\0\0\0")]))
    with pytest.raises(BadMessage, match="its bytes are no value of its Avro schema"):
        format_.peek(pack(found.key, found.value, [(VALUE, (found.value or b"")[:5])]))


def test_a_schema_of_which_the_file_is_damaged(kept: Kept, tmp_path: Path) -> None:
    """It is said, with the schema's name."""
    value = kept.as_avro(json_record("c", {"id": 1, "name": "a"}))
    (tmp_path / "id-1.json").write_text("{")

    with pytest.raises(BadMessage, match="the kept schema id 1 is damaged"):
        Debezium(kept.options()).peek(value)


def test_protobuf_of_apicurios_serializer(tmp_path: Path) -> None:
    """It stands behind another beginning than Confluent's, so it is refused by name."""
    kept = Kept(tmp_path, "apicurio")
    text = 'syntax = "proto3"; message Value { optional int32 n = 1; }'
    identity = kept.keep(Schema("PROTOBUF", text), SchemaId("content", "7"))

    with pytest.raises(BadMessage, match="Protobuf as Apicurio's serializer writes it is not read"):
        Debezium(kept.options()).peek(pack(None, framed(identity, b"\0\x08\1")))
