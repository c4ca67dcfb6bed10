"""Flat rows of anybody on any wire: the record's key is the row's, and rows are whole."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.engine.format import Format, pack
from changes.formats.engine.layout import Refused
from changes.formats.upsert.typed import TypedUpsert
from changes.formats.wire.format import Upsert
from changes.formats.wire.schemas import Schema
from changes.model.model import (
    OP,
    BadMessage,
    BadRecord,
    Column,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
    TableSchema,
)
from tests.changes.formats.wire.records import Kept, framed, json_schema_of

NAMES = {"default_database": "shop", "default_table": "orders"}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
ROW = {
    "type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def rows_of(
    format_: Format, *values: bytes, stored: TableSchema | None = None, keys: Any = None
) -> list[dict[str, Any]]:
    decoder = format_.table_decoder(Mode.UPSERT, keys)
    if stored is not None:
        decoder.use_stored_schema(stored)
    changes = decoder.decode(7, range(len(values)), values)
    assert changes is not None
    return changes.table.to_pylist()


def avro_row(kept: Kept, id_: int, name: str | None, at: int = 0) -> bytes:
    key = kept.avro(KEY, {"id": id_})
    return pack(key, kept.avro(ROW, {"id": id_, "name": name, "at": at}))


def test_rows_in_avro(kept: Kept) -> None:
    """With the types of the schema; no value is a delete."""
    values = [
        avro_row(kept, 1, "a"),
        avro_row(kept, 2, None),
        pack(kept.avro(KEY, {"id": 1}), None),
    ]
    format_ = Upsert(kept.options(**NAMES))

    assert list(format_.heads(values)) == [Head(Kind.ROWS, TableName("shop", "orders"))] * 3
    found = rows_of(format_, *values)
    assert [(row[OP], row["id"], row["name"]) for row in found] == [
        ("U", 1, "a"), ("U", 2, None), ("D", 1, None),
    ]  # fmt: skip
    assert found[0]["at"].isoformat() == "1970-01-01T00:00:00+00:00"
    (change,) = format_.explain(values[0])
    assert change.after["name"] == "a"  # type: ignore[union-attr, index]


def test_rows_in_protobuf(kept: Kept) -> None:
    """What can't be told from NULL is refused, but in the key."""
    text = 'syntax = "proto3"; message Row { int64 id = 1; optional string name = 2; }'
    row = kept.keep(Schema("PROTOBUF", text))
    key = kept.avro(KEY, {"id": 0})
    bare = kept.keep(Schema("PROTOBUF", text.replace("optional ", "")))
    format_ = Upsert(kept.options(**NAMES))

    values = [pack(key, framed(row, payload)) for payload in (b"\0\x12\1a", b"\0")]
    assert [row["name"] for row in rows_of(format_, *values)] == ["a", None]
    with pytest.raises(BadRecord, match="column name is not there, so it is zero or NULL"):
        rows_of(format_, pack(key, framed(bare, b"\0")))
    zero = Upsert(kept.options(**NAMES, absent_fields="zero"))
    assert rows_of(zero, pack(key, framed(bare, b"\0"))) == [{OP: "U", "id": 0, "name": ""}]


@pytest.mark.parametrize(
    "other", [b"\2\0\x08\1\x12\1a", b"\0\x12\1a\x08\1"], ids=["message index", "order of fields"]
)
def test_a_key_in_protobuf_has_one_spelling(kept: Kept, other: bytes) -> None:
    """Its producer hashes the bytes, so the same key in others would be in another partition."""
    text = 'syntax = "proto3"; message Id { int64 id = 1; string s = 2; }'
    schema = kept.keep(Schema("PROTOBUF", text))
    format_ = Upsert(kept.options(**NAMES))

    same, spelled = (pack(framed(schema, each), None) for each in (b"\0\x08\1\x12\1a", other))
    assert format_.record_keys([same]) == [b'\0id 1{"id":1,"s":"a"}']
    assert rows_of(format_, spelled) == rows_of(format_, same)
    with pytest.raises(Refused, match="an equal key may be other bytes, in another partition"):
        format_.record_keys([spelled])


def test_a_row_s_message_may_be_called_key(kept: Kept) -> None:
    """Only a record's key has no NULLs, whatever its message is called."""
    row = kept.keep(
        Schema("PROTOBUF", 'syntax = "proto3"; message Key { int64 a = 1; int32 b = 2; }')
    )
    key = kept.keep(Schema("PROTOBUF", 'syntax = "proto3"; message OrderId { int64 a = 1; }'))
    format_ = Upsert(kept.options(**NAMES))

    assert rows_of(format_, pack(framed(key, b"\0"), framed(row, b"\0\x10\7"))) == [
        {OP: "U", "a": 0, "b": 7}
    ]
    with pytest.raises(BadRecord, match="column b is not there, so it is zero or NULL"):
        rows_of(format_, pack(framed(key, b"\0"), framed(row, b"\0")))


def test_a_choice_in_a_message_marks_no_other_field(kept: Kept) -> None:
    """Its members show whether they are there, as those of any schema do."""
    text = """syntax = "proto3";
        message Row { int64 id = 1; oneof kind { string a = 2; string b = 3; } int32 n = 4; }"""
    row = kept.keep(Schema("PROTOBUF", text))
    key = kept.avro(KEY, {"id": 1})
    format_ = Upsert(kept.options(**NAMES))

    assert rows_of(format_, pack(key, framed(row, b"\0\x08\1\x12\1z\x20\5"))) == [
        {OP: "U", "id": 1, "a": "z", "b": None, "n": 5}
    ]
    with pytest.raises(BadRecord, match="column n is not there, so it is zero or NULL"):
        rows_of(format_, pack(key, framed(row, b"\0\x08\1\x12\1z")))


def test_rows_in_json(kept: Kept) -> None:
    """With a JSON Schema, with Connect's own, and bare: then columns are text."""
    schema = kept.keep(Schema("JSON", json.dumps(json_schema_of(id="integer", name="string"))))
    of_schema = framed(schema, b'{"id":1,"name":"a"}')
    fields = [{"type": "int64", "field": "id"}, {"type": "string", "field": "name"}]
    wrapped = json.dumps(
        {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "name": "a"}}
    ).encode()
    format_ = Upsert(kept.options(**NAMES))

    for value, id_ in ((of_schema, 1), (wrapped, 1), (b'{"id":1,"name":"a"}', "1")):
        assert rows_of(format_, pack(b'{"id":1}', value)) == [{OP: "U", "id": id_, "name": "a"}]


def test_what_a_row_lacks_is_null(kept: Kept) -> None:
    """Of the columns that came before, and of those that only the target has."""
    less = {**ROW, "fields": ROW["fields"][:1]}
    values = [
        avro_row(kept, 1, "a"),
        pack(kept.avro(KEY, {"id": 1}), kept.avro(less, {"id": 1})),
    ]
    stored = TableSchema((Column("more", pa.int32()), Column("id", pa.int64())), ("id",))

    found = rows_of(Upsert(kept.options(**NAMES)), *values, stored=stored)

    assert found[1] == {OP: "U", "id": 1, "name": None, "at": None, "more": None}
    assert not any(name.startswith("__binlogd_has") for name in found[0])


def test_a_row_without_its_key_gets_it(kept: Kept) -> None:
    """And one with another key than its record's is refused."""
    nameless = {**ROW, "fields": ROW["fields"][1:2]}
    values = [
        pack(kept.avro(KEY, {"id": n}), kept.avro(nameless, {"name": f"n{n}"})) for n in range(40)
    ]
    other = pack(kept.avro(KEY, {"id": 5}), kept.avro(ROW, {"id": 6, "name": "", "at": 0}))
    format_ = Upsert(kept.options(**NAMES))

    assert [(row["id"], row["name"]) for row in rows_of(format_, *values)] == [
        (n, f"n{n}") for n in range(40)
    ]
    good = [avro_row(kept, n, "a") for n in range(50)]
    with pytest.raises(
        BadRecord, match="id is another one in the value than in the record's key"
    ) as bad:
        rows_of(format_, *good, other, *good)
    assert bad.value.index == 50


@pytest.mark.parametrize("key", [None, b"", b"7", b'"a"', b"order-1", b"{}", b"\xff"])
def test_a_record_without_a_key_is_refused(kept: Kept, key: bytes | None) -> None:
    format_ = Upsert(kept.options(**NAMES))
    value = kept.avro(ROW, {"id": 1, "name": "a", "at": 0})

    with pytest.raises(BadRecord, match="make the key an object of the key's columns"):
        rows_of(format_, pack(key, value))
    if not key:
        with pytest.raises(BadMessage, match=r"shop\.orders: have its writer make the key"):
            format_.peek(pack(key, value))


def test_the_configured_key_is_the_records() -> None:
    """Another one is refused by name."""
    format_ = TypedUpsert(FormatOptions(extra=NAMES))

    assert rows_of(format_, pack(b'{"id":1}', b'{"n":2}'), keys=("ID",))[0]["id"] == "1"
    with pytest.raises(BadRecord, match=r"the record's key is \(id\), and keys says \(n\)"):
        rows_of(format_, pack(b'{"id":1}', b'{"n":2}'), keys=("n",))


def test_columns_that_look_like_debeziums_own_are_columns() -> None:
    """Nothing is taken out of a row of anybody."""
    row = b'{"__op":"d","__deleted":"true","__table":"x","op":"c","after":{"a":1},"ts_ms":1}'

    (found,) = rows_of(TypedUpsert(FormatOptions(extra=NAMES)), pack(b'{"id":1}', row))

    assert (found[OP], found["__op"], found["__deleted"], found["op"]) == ("U", "d", "true", "c")


def test_names_are_needed() -> None:
    with pytest.raises(ValueError, match="default_database: upsert needs it"):
        Upsert(FormatOptions())


CELLS = st.none() | st.integers(-5, 5) | st.text("ab", max_size=2) | st.booleans()
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.none() | st.dictionaries(st.sampled_from("abc"), CELLS, max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(RECORDS)
def test_many_at_once_are_one_by_one(records: list[tuple[int, Any, bool]]) -> None:
    """However records are cut into calls, the same rows come out."""
    values = [
        pack(
            json.dumps({"id": id_}).encode(),
            None if row is None else json.dumps({**({"id": id_} if own else {}), **row}).encode(),
        )
        for id_, row, own in records
    ]
    format_ = TypedUpsert(FormatOptions(extra=NAMES))
    together = rows_of(format_, *values)
    decoder = format_.table_decoder(Mode.UPSERT, None)
    apart = []
    for value in values:
        changes = decoder.decode(7, [0], [value])
        assert changes is not None
        apart += changes.table.to_pylist()
    names = {name for row in together for name in row}

    def full(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row.get(name) for name in names}

    assert list(map(full, together)) == list(map(full, apart))


def test_a_number_of_json_schema_has_all_its_digits_where_it_is_declared_as_text(
    kept: Kept,
) -> None:
    """Without ``connect.type`` it is a double, as the docs say."""
    key = kept.keep(Schema("JSON", json.dumps(json_schema_of(id="integer"))))
    row = kept.keep(Schema("JSON", json.dumps(json_schema_of(id="integer", price="number"))))
    digits = "12345678901234567.89"
    packed = pack(framed(key, b'{"id":1}'), framed(row, f'{{"id":1,"price":{digits}}}'.encode()))
    format_ = Upsert(kept.options(**NAMES))
    for types, expected in (((), float(digits)), ((("price", "string"),), digits)):
        changes = format_.table_decoder(Mode.UPSERT, None, types).decode(0, [0], [packed])
        assert changes is not None
        assert changes.table["price"].to_pylist() == [expected]
