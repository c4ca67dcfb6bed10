"""Maxwell's messages in Kafka become equal tables in a lake: the whole way, with the real parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

from settings.exit import Exit
from tests.integration.rig import Rig


def produce(rig: Rig, kind: str, data: Any, old: Any = None, **members: Any) -> None:
    """A record as Maxwell writes it by default: only its key says which column is the key."""
    told: dict[str, Any] = {"database": rig.db, "table": "orders", "type": kind, "ts": 1477053217}
    told |= members
    if data is not None:
        told["data"] = data
    if old is not None:
        told["old"] = old
    key: Mapping[str, Any] = {"database": rig.db, "table": "orders"}
    if kind in ("insert", "update", "delete"):
        key = {**key, "pk.id": data["id"]}
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    producer.produce(rig.topic, json.dumps(told), key=json.dumps(key), partition=0)
    assert producer.flush(30) == 0


def test_a_stream_of_maxwell_ends_as_the_source_has_it(rig: Rig) -> None:
    """Big integers, nulls that are left out, a minimal image, a new key, a new column."""
    config = rig.write_config(p=rig.pipeline(format="maxwell-json"))
    produce(rig, "insert", {"id": 1, "name": "a", "big": 18446744073709551615})
    produce(rig, "insert", {"id": 2, "name": "b", "big": 2})
    produce(rig, "insert", {"id": 3, "name": "c", "big": 3})
    produce(rig, "insert", {"id": 4, "name": "d", "big": 4})
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders")[0] == ("1", "a", "18446744073709551615")
    produce(rig, "update", {"id": 2, "big": 2}, {"name": "b"})
    produce(rig, "update", {"id": 3, "big": 33})
    produce(rig, "update", {"id": 44, "name": "d", "big": 4}, {"id": 4})
    produce(rig, "delete", {"id": 1, "name": "a", "big": 18446744073709551615})
    sql = "ALTER TABLE orders ADD note varchar(9) NOT NULL DEFAULT 'old'"
    named = {"database": rig.db, "table": "orders"}
    produce(rig, "table-alter", None, named, sql=sql, **{"def": named})
    produce(rig, "insert", {"id": 5, "name": "e", "big": 5, "note": "new"})
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [
        ("2", None, "2", "old"),
        ("3", "c", "33", "old"),
        ("44", "d", "4", "old"),
        ("5", "e", "5", "new"),
    ]
