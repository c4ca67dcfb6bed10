"""Heads of envelopes in Avro are those of their JSON, though most of a record is skipped."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack, unpack
from changes.formats.wire.avro import AvroTranslation
from changes.formats.wire.format import Debezium
from changes.formats.wire.schemas import Schema
from changes.model.model import BadMessage, FormatOptions, Head, Kind, TableName
from tests.changes.formats.debezium.messages import MYSQL, envelope, key_with_schema, record
from tests.changes.formats.wire.records import (
    Kept,
    avro_bytes,
    envelope_schema,
    json_record,
)
from tests.changes.formats.wire.test_avro_beside_fastavro import CASES

FIELDS = {"id": "int32", "name": "string"}


def of_table(table: str, op: str, id_: int) -> bytes:
    """A change of a table in JSON. All tables share one schema, as where topics are merged."""
    row = None if op in "dt" else {"id": id_, "name": "a"}
    before = {"id": id_, "name": "b"} if op in "ud" else None
    payload = envelope(op, row, before, MYSQL | {"table": table})
    key = None if op == "t" else key_with_schema({"id": id_}, {"id": "int32"}, f"s.shop.{table}")
    return record({"schema": envelope_schema(FIELDS), "payload": payload}, key)


STREAMS = st.lists(
    st.tuples(
        st.sampled_from(["orders", "a_b", "items"]),
        st.sampled_from("crudt"),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(STREAMS, st.integers(1, 9))
def test_heads_are_those_of_the_json(stream: list[tuple[str, str, int, bool]], size: int) -> None:
    """Several tables of one schema, deletes and their tombstones, truncations, in any batches."""
    values = []
    for table, op, id_, tombstone in stream:
        values.append(of_table(table, op, id_))
        if tombstone and op != "t":
            values.append(pack(unpack(values[-1]).key, None))
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder))
        avro, plain = Debezium(kept.options()), DebeziumJson(FormatOptions())
        for start in range(0, len(values), size):
            part = values[start : start + size]
            for format_ in (avro, plain):
                format_.turn_to(f"t:{start % 2}", start, start + len(part))
            found = list(avro.heads(map(kept.as_avro, part)))
            assert found == list(plain.heads(part))


@settings(max_examples=200, deadline=None)
@given(CASES)
def test_any_row_is_skipped_whole(case: tuple[Any, Any]) -> None:
    """The head ends where the record does, whatever stands before and behind the source."""
    row, value = case
    source = {"type": "record", "name": "Src", "fields": [
        {"name": "connector", "type": "string"}, {"name": "pos", "type": "long"},
        {"name": "db", "type": ["null", "string"]}, {"name": "table", "type": "string"},
    ]}  # fmt: skip
    schema = {"type": "record", "name": "Env", "fields": [
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "r"]},
        {"name": "source", "type": source}, {"name": "op", "type": "string"},
        {"name": "more", "type": ["null", "r"]},
    ]}  # fmt: skip
    given_ = {"connector": "mysql", "pos": 300, "db": None, "table": "t"}
    data = avro_bytes(
        schema, {"before": value, "after": value, "source": given_, "op": "u", "more": value}
    )
    made = AvroTranslation(Schema("AVRO", json.dumps(schema)))

    assert made.head(b"12345" + data, 5) == ("u", "mysql", None, None, "t", None, None)
    assert made.head(data[:-1], 0) is None
    assert made.head(data + b"\0", 0) is None


def test_a_record_that_is_damaged_behind_its_head(tmp_path: Path) -> None:
    """Its decoder refuses it, and the fetcher goes on to the next partition."""
    kept = Kept(tmp_path)
    format_ = Debezium(kept.options())
    good = kept.as_avro(json_record("c", {"id": 1, "name": "ab"}))
    bad = pack(unpack(good).key, (unpack(good).value or b"").replace(b"ab", b"\xff\xff"))
    rows = Head(Kind.ROWS, TableName("shop", "orders"))

    assert list(format_.heads([good, good])) == [rows, rows]
    with pytest.raises(BadMessage, match="can't decode byte 0xff"):
        list(Debezium(kept.options()).heads([bad]))
    assert list(format_.heads([bad])) == [rows]  # its table is the one in its own source
    format_.turn_to("t:1", 0, 1)
    assert list(format_.heads([good])) == [rows]
    with pytest.raises(BadMessage, match="can't decode byte 0xff"):
        format_.peek(bad)


def test_a_statement_sent_again_behind_rows(tmp_path: Path) -> None:
    """The row before it counts, though only its head was looked at."""
    kept = Kept(tmp_path)
    schema = {
        "type": "struct", "optional": False, "name": "io.debezium.connector.mysql.Change",
        "fields": [
            {**envelope_schema(FIELDS)["fields"][2]}, {"type": "string", "field": "databaseName"},
            {"type": "string", "field": "ddl"},
        ],
    }  # fmt: skip

    def statement(pos: int) -> bytes:
        text = "ALTER TABLE orders RENAME COLUMN name TO neu"
        source = MYSQL | {"pos": pos, "snapshot": "false"}
        return record(
            {"schema": schema, "payload": {"source": source, "databaseName": "shop", "ddl": text}}
        )

    def row(pos: int) -> bytes:
        payload = envelope("c", {"id": pos, "name": "a"}, None, MYSQL | {"pos": pos})
        return record({"schema": envelope_schema(FIELDS), "payload": payload})

    values = [row(1), row(2), statement(3), row(1), row(2), statement(3), statement(3)]
    avro, plain = Debezium(kept.options()), DebeziumJson(FormatOptions())
    found, expected = list(avro.heads(map(kept.as_avro, values))), list(plain.heads(values))

    assert found == expected
    ddl = avro.ddl(kept.as_avro(values[-1]))
    assert ddl == plain.ddl(values[-1])
    assert avro.why_not_followed(kept.as_avro(values[-1]), ddl) == plain.why_not_followed(
        values[-1], ddl
    )
