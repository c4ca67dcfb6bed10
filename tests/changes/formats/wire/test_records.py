"""Records of several schemas and wires, one after another in one topic, and such as are bad."""

import json
from pathlib import Path
from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack, unpack
from changes.formats.wire.format import Debezium
from changes.formats.wire.schemas import Schema, SchemaId
from changes.model.model import BadRecord, Kind, Mode, TableName
from changes.model.places import Place
from tests.changes.formats.debezium.messages import (
    MYSQL,
    dumps,
    envelope,
    key_with_schema,
    record,
)
from tests.changes.formats.wire.records import (
    FIELDS,
    Kept,
    avro_bytes,
    avro_schema,
    avro_value,
    envelope_schema,
    framed,
    json_record,
)

ORDERS = TableName("shop", "orders")
VALUE = "__value_schema_id"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def rows_of(kept: Kept, *values: bytes, **extra: str) -> list[dict[str, Any]]:
    """The rows of records that a fresh decoder reads in one call."""
    decoder = Debezium(kept.options(**extra)).table_decoder(Mode.UPSERT, None)
    changes = decoder.decode(7, range(len(values)), values)
    assert changes is not None
    return changes.table.drop_columns(["__binlogd_op"]).to_pylist()


def test_a_topic_that_turns_from_json_to_avro(kept: Kept) -> None:
    """Each record by its own frame; the columns go on with their types."""
    values = [json_record("c", {"id": n, "name": "é" * n}) for n in range(4)]
    mixed = [*values[:2], *map(kept.as_avro, values[2:])]

    assert rows_of(kept, *mixed) == [{"id": n, "name": "é" * n} for n in range(4)]
    assert [head.table for head in Debezium(kept.options()).heads(mixed)] == [ORDERS] * 4


def test_two_schemas_in_one_batch(kept: Kept) -> None:
    """A column that came in between, and fields in another order: each by its writer's schema."""
    wider = {"name": "string", "more": "int64", "id": "int32"}
    values = [
        json_record("c", {"id": 1, "name": "a"}),
        json_record("c", {"id": 2, "name": "b", "more": 5}, fields=wider),
        json_record("c", {"id": 3, "name": "c"}),
    ]

    found = rows_of(kept, *map(kept.as_avro, values))

    assert [(row["id"], row["name"], row["more"]) for row in found] == [
        (1, "a", None), (2, "b", 5), (3, "c", None),
    ]  # fmt: skip
    assert [row["__binlogd_has_more"] for row in found] == [False, True, False]


def test_two_hundred_schemas_in_one_topic(kept: Kept) -> None:
    """Each names one column more than the one before."""
    fields: dict[str, Any] = {"id": "int32"}
    values = []
    for n in range(200):
        fields = {**fields, f"c{n}": "int32"}
        values.append(kept.as_avro(json_record("c", dict.fromkeys(fields, n), fields=fields)))

    found = rows_of(kept, *values)

    assert all(row["id"] == n and row[f"c{n}"] == n for n, row in enumerate(found))
    assert found[0]["__binlogd_has_c199"] is False


def test_a_field_that_avro_could_fill_from_a_default(kept: Kept) -> None:
    """A later schema's default is no value of the source's: the writer's schema alone is used, so
    the row lacks the column."""
    schema = avro_schema(envelope_schema({**FIELDS, "more": "int32"}))
    row = schema["fields"][0]["type"][1]
    row["fields"][2] |= {"default": 7, "type": ["int", "null"]}
    kept.keep(Schema("AVRO", json.dumps(schema)))

    found = rows_of(kept, kept.as_avro(json_record("c", {"id": 1, "name": "a"})))

    assert found == [{"id": 1, "name": "a"}]


def test_a_default_that_may_stand_for_null(kept: Kept) -> None:
    """Connect's converters write the default of an optional column for NULL: it is reported, as
    with JSON."""
    schema = avro_schema(envelope_schema(FIELDS))
    name = schema["fields"][0]["type"][1]["fields"][1]
    name |= {"type": [{"type": "string", "connect.default": "x"}, "null"], "default": "x"}
    payload = envelope("c", {"id": 1, "name": "x"})
    value = kept.avro(schema, avro_value(envelope_schema(FIELDS), payload))
    decoder = Debezium(kept.options()).table_decoder(Mode.UPSERT, None)

    decoder.decode(7, [0], [pack(dumps({"id": 1}), value)])

    (found,) = decoder.take_column_changes()
    assert "name" in str(found)


@pytest.mark.parametrize("key", [None, b'{"id":1}', b"1", b"order-1", b"\xff\xfe"])
def test_a_key_on_another_wire(kept: Kept, key: bytes | None) -> None:
    """With a configured key the record's own may be anything."""
    value = unpack(kept.as_avro(json_record("c", {"id": 1, "name": "a"}))).value
    decoder = Debezium(kept.options()).table_decoder(Mode.UPSERT, ("id",))

    changes = decoder.decode(7, [0], [pack(key, value)])

    assert changes is not None
    assert changes.table["name"].to_pylist() == ["a"]


def test_an_avro_key_beside_a_value_in_json(kept: Kept) -> None:
    """Each by its own frame."""
    packed = json_record("c", {"id": 1, "name": "a"})
    key = unpack(kept.as_avro(packed)).key

    assert rows_of(kept, pack(key, unpack(packed).value)) == [{"id": 1, "name": "a"}]


def test_a_key_whose_schema_changes(kept: Kept) -> None:
    """Another name is the same key, other columns are another one, which is refused by name."""
    first = json_record("c", {"id": 1, "name": "a"})
    renamed = key_with_schema({"id": 2}, {"id": "int32"}, name="s2.shop.orders")
    second = record(
        json.loads(unpack(json_record("c", {"id": 2, "name": "b"})).value or b""), renamed
    )
    other = record(
        json.loads(unpack(first).value or b""), key_with_schema({"name": "a"}, {"name": "string"})
    )

    assert [row["id"] for row in rows_of(kept, kept.as_avro(first), kept.as_avro(second))] == [1, 2]
    with pytest.raises(BadRecord, match=r"the key was \(id\) and is now \(name\)") as bad:
        rows_of(kept, kept.as_avro(first), kept.as_avro(second), kept.as_avro(other))
    assert bad.value.index == 2


def test_identities_in_headers(kept: Kept) -> None:
    """By GUID, for key and value each; the payloads begin as they like."""
    packed = json_record("c", {"id": 0, "name": "a"})
    schema = envelope_schema(FIELDS)
    guid = "00000000-0000-0000-0000-000000000007"
    kept.keep(Schema("AVRO", json.dumps(avro_schema(schema))), SchemaId("guid", guid))
    payload = avro_bytes(
        avro_schema(schema), avro_value(schema, envelope("c", {"id": 0, "name": "a"}))
    )
    header = [(VALUE, b"\1" + bytes(15) + b"\7"), ("trace", None)]

    found = rows_of(kept, pack(unpack(kept.as_avro(packed)).key, payload, header))

    assert payload.startswith(b"\0")
    assert found == [{"id": 0, "name": "a"}]


def test_apicurios_records(tmp_path: Path) -> None:
    """Content ids of four bytes, global ids of eight, both beside one another, and headers."""
    kept = Kept(tmp_path, "apicurio")
    schema = envelope_schema(FIELDS)
    avro = avro_schema(schema)
    kept.keep(Schema("AVRO", json.dumps(avro)), SchemaId("content", "7"))
    kept.keep(Schema("AVRO", json.dumps(avro)), SchemaId("global", "8"))

    def payload(id_: int) -> bytes:
        return avro_bytes(avro, avro_value(schema, envelope("c", {"id": id_, "name": "a"})))

    values = [
        pack(b'{"id":1}', framed(SchemaId("content", "7"), payload(1))),
        pack(b'{"id":2}', b"\0" + (8).to_bytes(8, "big") + payload(2)),
        pack(b'{"id":3}', payload(3), [("apicurio.value.contentId", (7).to_bytes(8, "big"))]),
        pack(b'{"id":4}', payload(4), [("apicurio.value.globalId", (8).to_bytes(8, "big"))]),
    ]

    assert [row["id"] for row in rows_of(kept, *values)] == [1, 2, 3, 4]


def test_a_record_of_five_megabytes(kept: Kept) -> None:
    """It is one like any other."""
    text = "é" * (5 << 19)

    assert rows_of(kept, kept.as_avro(json_record("c", {"id": 1, "name": text})))[0]["name"] == text


def test_an_enumeration_that_grows(kept: Kept) -> None:
    """Labels are by number on the wire: each schema has its own."""
    values = []
    for symbols in (["new", "paid"], ["new", "sent", "paid"]):
        fields = {
            "id": "int32",
            "name": ("string", "io.debezium.data.Enum", {"allowed": ",".join(symbols)}),
        }
        schema = avro_schema(envelope_schema(fields))
        text = json.dumps(schema).replace(
            '{"type": "string", "connect.name": "io.debezium.data.Enum"',
            '{"type": "enum", "name": "labels", "symbols": ' + json.dumps(symbols)
            + ', "connect.name": "io.debezium.data.Enum"',
            1,
        )  # fmt: skip
        row = {"id": len(values), "name": "paid"}
        avro = json.loads(text)
        value = kept.avro(avro, avro_value(envelope_schema(fields), envelope("c", row)))
        values.append(pack(dumps({"id": len(values)}), value))

    assert [row["name"] for row in rows_of(kept, *values)] == ["paid", "paid"]


def test_statements_tombstones_and_side_topics(kept: Kept) -> None:
    """They are known as with JSON."""
    packed = json_record("d", None, {"id": 1, "name": "a"})
    deleted = kept.as_avro(packed)
    tombstone = pack(unpack(deleted).key, None)
    heartbeat = {
        "schema": {
            "type": "struct",
            "name": "io.debezium.connector.common.Heartbeat",
            "fields": [{"type": "int64", "field": "ts_ms", "optional": False}],
            "optional": False,
        },
        "payload": {"ts_ms": 5},
    }
    truncate = json_record("t", None, {"id": 1, "name": "a"})
    format_ = Debezium(kept.options())

    heads = list(
        format_.heads(
            [deleted, tombstone, tombstone, kept.as_avro(record(heartbeat)), kept.as_avro(truncate)]
        )
    )

    assert [head.kind for head in heads] == [
        Kind.ROWS, Kind.NOTHING, Kind.ROWS, Kind.NOTHING, Kind.DDL,
    ]  # fmt: skip
    assert format_.ddl(kept.as_avro(truncate))[0].table == ORDERS


def test_people_see_what_they_see_of_json(kept: Kept) -> None:
    """The same change, at the same time."""
    packed = json_record("u", {"id": 1, "name": "b"}, {"id": 1, "name": "a"})
    avro, plain = Debezium(kept.options()), DebeziumJson(kept.options())

    assert avro.explain(kept.as_avro(packed)) == plain.explain(packed)
    assert avro.source_ms(kept.as_avro(packed)) == plain.source_ms(packed) == MYSQL["ts_ms"]
    assert avro.place(kept.as_avro(packed)) == plain.place(packed)
    assert plain.place(packed) == Place(None, MYSQL["file"], MYSQL["pos"])
