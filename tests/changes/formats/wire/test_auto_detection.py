"""Under ``auto`` frames are looked into where a registry is configured, and named where not."""

from pathlib import Path

import pytest

from changes.formats import TopicFormats
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Packed, pack, unpack
from changes.formats.recognise import recognised, why_not_read
from changes.formats.wire.format import Debezium
from changes.formats.wire.schemas import SchemaId
from changes.model.model import BadMessage, Head, Kind, Mode, TableName
from tests.changes.formats.debezium.messages import change
from tests.changes.formats.wire.records import Kept, framed, json_record

ROW = {"id": 1, "name": "a"}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def detected(auto: AutoFormat, record: Packed) -> str | None:
    return recognised(auto.confidences(record))


def test_debezium_in_a_frame_is_debezium(kept: Kept) -> None:
    """Rows and tombstones, by what their schemas say, and its JSON as well."""
    packed = kept.as_avro(json_record("c", ROW))
    auto = AutoFormat(kept.options(), TopicFormats({"t": "debezium"}))

    assert detected(auto, unpack(packed)) == "debezium"
    assert detected(auto, unpack(packed)._replace(value=None)) == "debezium"
    assert detected(auto, unpack(change("c", ROW))) == "debezium"
    assert why_not_read(unpack(packed), kept.registry) is None
    marked = auto.marked("t", packed)
    assert auto.peek(marked) == Head(Kind.ROWS, TableName("shop", "orders"))
    changes = auto.table_decoder(Mode.UPSERT, None).decode(0, [1], [marked])
    assert changes is not None
    assert changes.table["name"].to_pylist() == ["a"]


def test_what_a_frame_does_not_show(kept: Kept) -> None:
    """A flat row may be anybody's, and a schema that is not kept says nothing."""
    auto = AutoFormat(kept.options())
    row = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}

    assert detected(auto, Packed(None, kept.avro(row, {"id": 1}))) in (None, "debezium")
    assert detected(auto, Packed(None, framed(SchemaId("id", "99"), b"x"))) is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\0\0\0\0\7x", "it names schema 7 of a schema registry, and no registry is configured"),
        (b"\3\0" + bytes(16), "AWS Glue's schema registry, which is not read"),
        (b"\0\0\0\0\0xyz", None),
        (b'{"a":1}', None),
        (b"\0\0", None),
    ],
)
def test_a_frame_without_a_registry_is_named(value: bytes, why: str | None) -> None:
    """Also where nobody asks for a format: ``init`` and ``decode`` say it."""
    found = why_not_read(Packed(None, value), None)

    assert (found is None) if why is None else (found is not None and why in found)


def test_a_bad_record_of_a_marked_topic(kept: Kept) -> None:
    """Its own reason stands: the frame is no other writer's."""
    packed = kept.as_avro(json_record("c", ROW))
    auto = AutoFormat(kept.options(), TopicFormats({"t": "debezium"}))
    found = unpack(packed)
    bad = pack(found.key, (found.value or b"")[:-1])

    with pytest.raises(BadMessage, match="its bytes are no value of its Avro schema"):
        auto.peek(auto.marked("t", bad))


def test_a_topic_that_turned_from_json_names_the_way_out(kept: Kept) -> None:
    """It was detected before there was a registry, and stays so; the named format reads both."""
    framed_, plain = kept.as_avro(json_record("c", ROW)), change("c", ROW)
    auto = AutoFormat(kept.options(), TopicFormats({"t": "debezium-json"}))

    heads = auto.heads([auto.marked("t", plain), auto.marked("t", framed_)])
    assert next(heads) == Head(Kind.ROWS, TableName("shop", "orders"))
    with pytest.raises(BadMessage, match='format = "debezium", registry = "NAME"'):
        next(heads)
    named = Debezium(kept.options())
    assert list(named.heads([plain, framed_])) == [Head(Kind.ROWS, TableName("shop", "orders"))] * 2
