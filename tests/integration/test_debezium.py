"""Debezium's records from a real broker to a table: keys, tombstones, values that were not sent."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from confluent_kafka import Producer

from changes.formats.engine.format import unpack
from settings.exit import Exit
from tests.changes.formats.debezium.messages import (
    MYSQL,
    POSTGRES,
    UNAVAILABLE,
    dumps,
    envelope,
    key_with_schema,
    record,
    wrapped,
)
from tests.integration.rig import Rig

FIELDS = {
    "id": "int32",
    "name": "string",
    "price": (
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "2", "connect.decimal.precision": "10"},
    ),
    "at": ("int64", "io.debezium.time.MicroTimestamp"),
}
AT = datetime(2023, 3, 23, 14, 30, 5, 123456)


def row(key: int, name: str | None = "a", cents: int = 150) -> dict[str, Any]:
    """A row of a table with a decimal and a date."""
    price = base64.b64encode(cents.to_bytes(4, "big", signed=True)).decode()
    return {"id": key, "name": name, "price": price, "at": 1679581805123456}


def change(
    rig: Rig, op: str, after: Any, before: Any = None, table: str = "orders", **headers: bytes
) -> bytes:
    """A change with schemas, of the rig's database, by PostgreSQL's connector."""
    key = {"id": (after or before)["id"]}
    value = envelope(op, after, before, {**POSTGRES, "schema": rig.db, "table": table})
    name = f"s.{rig.db}.{table.replace(' ', '_')}"
    return record(
        wrapped(value, FIELDS, name),
        key_with_schema(key, {"id": "int32"}, name),
        [(f"__debezium.{name}", value) for name, value in headers.items()],
    )


def tombstone(rig: Rig, key: int, table: str = "orders") -> bytes:
    """The end of a key."""
    name = f"s.{rig.db}.{table.replace(' ', '_')}"
    return record(None, key_with_schema({"id": key}, {"id": "int32"}, name))


def produce(rig: Rig, *records: bytes) -> None:
    """Write records with their keys and headers."""
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    for packed in records:
        key, value, headers = unpack(packed)
        producer.produce(rig.topic, value, key, 0, headers=list(headers))
    assert producer.flush(30) == 0


def test_a_table_becomes_equal(rig: Rig) -> None:
    """Snapshot, updates with a value that was not sent, deletes, a changed key, over a restart."""
    section = rig.pipeline(format="debezium-json", tombstones="delete")
    config = rig.write_config(p=section)
    produce(
        rig,
        *(change(rig, "r", row(key, "long text")) for key in range(1, 6)),
        record({"status": "BEGIN", "id": "1", "event_count": None}, {"id": "1"}),
        change(rig, "u", row(1, UNAVAILABLE, -7), row(1, None)),
    )
    assert rig.run(config) is Exit.OK
    produce(
        rig,
        change(rig, "u", row(2, UNAVAILABLE, 201)),
        change(rig, "d", None, {**row(3), "name": None}),
        tombstone(rig, 3),
        change(rig, "d", None, row(4, "long text"), newkey=b"x"),
        tombstone(rig, 4),
        change(rig, "c", row(9, UNAVAILABLE), oldkey=b"x"),
        tombstone(rig, 5),
        record({"ts_ms": 5}, {"serverName": "s"}),
    )
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [
        (1, "long text", Decimal("-0.07"), AT),
        (2, "long text", Decimal("2.01"), AT),
        (9, "long text", Decimal("1.50"), AT),
    ]


def test_tombstones_of_two_tables_whose_key_schemas_have_one_name(rig: Rig) -> None:
    """Each repeats its own delete, also over a restart; no table is made up for any of them."""
    config = rig.write_config(p=rig.pipeline(format="debezium-json"))
    rows = [change(rig, "c", row(key), table=t) for t in ("a b", "a_b") for key in (1, 2, 3)]
    gone = [change(rig, "d", None, row(key), table="a b") for key in (1, 2)]
    produce(rig, *rows, gone[0], tombstone(rig, 1, "a b"), gone[1])
    assert rig.run(config) is Exit.OK
    later = change(rig, "u", row(3, "z"), row(3), table="a_b")
    again, other = tombstone(rig, 2, "a b"), tombstone(rig, 2, "x_y")
    produce(rig, again, later, again, other)
    assert rig.run(config) is Exit.OK
    assert [(r[0], r[1]) for r in rig.rows("a b")] == [(3, "a")]
    assert [(r[0], r[1]) for r in rig.rows("a_b")] == [(1, "a"), (2, "a"), (3, "z")]
    made = rig.spark.sql(f"SHOW TABLES IN lake.`{rig.db}`").collect()
    assert sorted(each["tableName"] for each in made) == ["a b", "a_b"]
    assert sum(event["messages"] for event in rig.events("messages_passed_over")) == 3


def test_schemas_that_are_switched_off_and_on(rig: Rig) -> None:
    """Over restarts a column keeps its type; a value that does not read as it is bad alone."""
    section = rig.pipeline(format="debezium-json", on_bad_record="dead-letter")
    config = rig.write_config(p=section)
    source = {**MYSQL, "db": rig.db}
    plain = [
        record(envelope("c", each, None, source), {"id": each["id"]})
        for each in (
            {"id": 2, "name": "b", "price": 1.25},
            {"id": 3, "name": "c", "price": "1234"},
            {"id": 4, "name": "d", "price": None, "at": 5},
        )
    ]
    produce(rig, change(rig, "c", row(1)))
    assert rig.run(config) is Exit.OK
    gone = record(envelope("d", None, {"id": 1}, source), {"id": 1})
    produce(rig, *plain, change(rig, "c", row(5, "e")), gone)
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [
        (2, "b", Decimal("1.25"), None),
        (5, "e", Decimal("1.50"), AT),
    ]
    lines = (rig.folder / "state" / "p.dead-letters.jsonl").read_text().splitlines()
    told = sorted((each["offset"], each["error"]) for each in map(json.loads, lines))
    assert [offset for offset, _ in told] == [2, 3]
    assert "price:" in told[0][1]
    assert "at:" in told[1][1]
    assert all("as which the column is stored" in error for _, error in told)


def test_a_bad_record_is_kept_as_it_was(rig: Rig) -> None:
    """A dead letter has the record's own key and value; what follows is applied."""
    section = rig.pipeline(format="debezium-json", on_bad_record="dead-letter")
    good, bad = change(rig, "c", row(1)), change(rig, "c", {**row(2), "at": "noon"})
    produce(rig, good, bad, record(["nothing"], "k"), change(rig, "c", row(3)))
    assert rig.run(rig.write_config(p=section)) is Exit.OK
    assert [each[0] for each in rig.rows("orders")] == [1, 3]
    lines = (rig.folder / "state" / "p.dead-letters.jsonl").read_text().splitlines()
    kept = sorted(map(json.loads, lines), key=lambda letter: int(letter["offset"]))
    assert [letter["offset"] for letter in kept] == [1, 2]
    key, value, _ = unpack(bad)
    assert base64.b64decode(kept[0]["value"]) == value
    assert base64.b64decode(kept[0]["key"]) == key
    assert "at: 'noon' is not an io.debezium.time.MicroTimestamp" in kept[0]["error"]
    assert base64.b64decode(kept[1]["value"]) == dumps(["nothing"])
