"""GoldenGate's and Alibaba DTS's messages become equal tables, with the real parts."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from settings.exit import Exit
from tests.changes.formats.aliyun.messages import Value, date_time, integer, record, text
from tests.integration.rig import Rig

FIELDS = (("id", 8), ("name", 253), ("at", 12))


def test_a_stream_of_goldengate_ends_as_the_source_has_it(rig: Rig) -> None:
    """Images in part, a changed key, a delete, and a truncation with rows behind it."""

    def change(op: str, after: Any = None, before: Any = None) -> bytes:
        told = {"table": f"{rig.db}.orders", "op_type": op, "primary_keys": ["id"]}
        return json.dumps(told | {"before": before, "after": after}).encode()

    config = rig.write_config(p=rig.pipeline(format="ogg-json"))
    rig.produce(
        change("I", {"id": 1, "name": "a", "qty": 1.5}),
        change("I", {"id": 2, "name": "b", "qty": 2}),
        change("I", {"id": 3, "name": "c", "qty": 3}),
    )
    assert rig.run(config) is Exit.OK
    rig.produce(
        change("U", {"id": 1, "qty": None}, {"id": 1, "qty": 1.5}),
        change("U", {"id": 20, "name": "b"}, {"id": 2, "name": "b"}),
        change("D", None, {"id": 3}),
    )
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [("1", "a", None), ("20", "b", "2")]
    rig.produce(change("T"), change("I", {"id": 9, "name": "z", "qty": 9}))
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [("9", "z", "9")]


def test_a_stream_of_alibaba_dts_ends_as_the_source_has_it(rig: Rig) -> None:
    """Both layouts, an absent value, a changed key, a new column, marks between them."""
    name = f"{rig.db}.orders"

    def change(op: str, after: Any = None, before: Any = None, born: int | None = None) -> bytes:
        return record(op, after, before, FIELDS, name=name, born=born)

    def row(key: int, name: Value, *at: int) -> list[Value]:
        return [integer(key), name, date_time(*at) if at else "NULL"]

    config = rig.write_config(p=rig.pipeline(format="aliyun-dts-avro"))
    rig.produce(
        record("BEGIN", fields=None, name=None),
        change("INSERT", row(1, text("a"), 2020, 1, 2, 3, 4, 5)),
        change("INSERT", row(2, text("b")), born=7),
        change("INSERT", row(3, text("c")), born=8),
        record("COMMIT", fields=None, name=None),
    )
    assert rig.run(config) is Exit.OK
    rig.produce(
        change("UPDATE", [integer(1), text("aa"), "NONE"], row(1, text("a"))),
        change("UPDATE", row(20, text("b")), row(2, text("b"))),
        change("DELETE", None, row(3, text("c"))),
        record("DDL", "ALTER TABLE orders ADD note text", fields=None, name=rig.db),
    )
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [
        (1, "aa", datetime(2020, 1, 2, 3, 4, 5), None),
        (20, "b", None, None),
    ]
