"""Names of other writers: beside Avro's logical types, and as packages of Protobuf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changes.formats.engine.format import pack
from changes.formats.engine.layout import Refused
from changes.formats.wire.format import Debezium, Upsert
from changes.formats.wire.schemas import Schema
from changes.model.model import BadMessage, BadRecord, Mode
from tests.changes.formats.wire.records import Kept, avro_bytes, framed, record_of, translated

CONNECT = "org.apache.kafka.connect.data."
TIMES = "io.debezium.time."
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def read(type_: Any, value: Any) -> tuple[Any, Any]:
    """The Connect schema of a column, and its value."""
    bare = {name: each for name, each in type_.items() if name != "logicalType"}
    found = translated(record_of(type_), avro_bytes(record_of(bare), {"a": value}))
    return found["schema"]["fields"][0], found["payload"]["a"]


def test_another_writer_s_name_takes_no_logical_type_away() -> None:
    """It says nothing of values: a decimal was bytes, and a moment a number."""
    field, value = read(MONEY | {"connect.name": "com.acme.Money"}, b"\x0f")
    assert (field["name"], field["parameters"]["scale"], value) == (
        f"{CONNECT}Decimal",
        "2",
        "Dw==",
    )
    moment = {"type": "long", "logicalType": "timestamp-millis", "connect.name": "com.acme.At"}
    field, value = read(moment, 1000)
    assert (field["name"], value) == (f"{TIMES}ZonedTimestamp", "1970-01-01T00:00:01.000Z")
    field, value = read({"type": "string", "connect.name": "com.acme.Text"}, "x")
    assert (field["name"], value) == ("com.acme.Text", "x")


def test_what_a_writer_says_of_the_source_stays() -> None:
    """Beside a logical type, whose own parameters say how its values are read."""
    said = {"connect.parameters": {"__debezium.source.column.name": "a", "scale": "7"}}
    field, _ = read(MONEY | said, b"\x0f")
    assert field["parameters"]["scale"] == "2"
    assert field["parameters"]["__debezium.source.column.name"] == "a"


@pytest.mark.parametrize(
    ("name", "logical"),
    [
        (f"{CONNECT}Timestamp", "timestamp-micros"),
        (f"{TIMES}MicroTimestamp", "local-timestamp-millis"),
        (f"{CONNECT}Time", "time-micros"),
        (f"{CONNECT}Date", "time-millis"),
    ],
)
def test_two_names_that_contradict_each_other_are_refused(name: str, logical: str) -> None:
    """One of both makes another moment of the number, and nobody knows which."""
    with pytest.raises(Refused, match=f"{name} and {logical}, which contradict"):
        read({"type": "long", "logicalType": logical, "connect.name": name}, 1)


@pytest.mark.parametrize(
    ("name", "logical"),
    [(f"{CONNECT}Timestamp", "timestamp-millis"), (f"{TIMES}MicroTimestamp", "timestamp-micros"),
     (f"{TIMES}Year", "date"), (f"{TIMES}MicroTimestamp", "acme-moment")],
)  # fmt: skip
def test_a_name_of_connect_s_decides(name: str, logical: str) -> None:
    field, value = read({"type": "long", "logicalType": logical, "connect.name": name}, 1)
    assert (field["name"], value) == (name, 1)


def test_rows_of_a_package_that_is_called_like_debezium_s(tmp_path: Path) -> None:
    """A field that is not there may be NULL there, too; side topics have no rows."""
    kept = Kept(tmp_path)
    text = 'syntax = "proto3"; package io.debezium.shop; '
    row = kept.keep(Schema("PROTOBUF", f"{text} message Row {{ int64 id = 1; int32 n = 2; }}"))
    key = kept.avro({"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]},
                    {"id": 1})  # fmt: skip
    names = {"default_database": "shop", "default_table": "orders"}
    decoder = Upsert(kept.options(**names)).table_decoder(Mode.UPSERT, None)
    with pytest.raises(BadRecord, match="column n is not there, so it is zero or NULL"):
        decoder.decode(0, [0], [pack(key, framed(row, b"\0\x08\1"))])
    envelope = kept.keep(
        Schema(
            "PROTOBUF",
            f"{text} message Envelope {{ Row after = 1; Source source = 2; string op = 3; }} "
            "message Row { int64 id = 1; int32 n = 2; } "
            "message Source { string connector = 1; string db = 2; string table = 3; }",
        )
    )
    value = framed(envelope, b"\0\x0a\2\x08\1\x12\x09\x0a\1m\x12\1d\x1a\1t\x1a\1c")
    with pytest.raises(BadMessage, match="column n is not there, so it is zero or NULL"):
        Debezium(kept.options()).peek(pack(key, value))
    beat = 'syntax = "proto3"; package io.debezium.connector.common; message Heartbeat { '
    heartbeat = kept.keep(Schema("PROTOBUF", f"{beat} int64 ts_ms = 1; }}"))
    head = Debezium(kept.options()).peek(pack(None, framed(heartbeat, b"\0")))
    assert head.kind.name == "NOTHING"
