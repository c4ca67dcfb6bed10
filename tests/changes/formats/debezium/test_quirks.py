"""What Debezium's connectors write besides plain rows, and rows that only look like that."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from datetime import date, datetime
from typing import Any

import pytest

from changes.formats.engine.format import pack
from changes.model.model import HAS_PREFIX, BadMessage, BadRecord, Kind
from tests.changes.formats.debezium.messages import (
    FORMAT,
    POSTGRES,
    UNAVAILABLE,
    column,
    decode,
    dumps,
    envelope,
    record,
    rows,
    structure,
    typed,
    wrapped,
)

TABLE = {"default_database": "shop", "default_table": "orders"}
TIME = "io.debezium.time."


def flat(row: dict[str, Any], key: Any = ...) -> bytes:
    """A flattened row, whose key is ``id`` unless given."""
    return record(row, {"id": row["id"]} if key is ... else key)


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "status": "open", "event_count": 4},
        {"id": 1, "status": "END", "event_count": 4, "note": "x"},
        {"id": 1, "ts_ms": 5},
        {"id": 1, "op": "x", "source": "web"},
        {"id": 1, "op": "c", "source": None, "__deleted": "false"},
        {"id": 1, "op": "c", "source": {"a": 1}, "__deleted": "false"},
        {"id": 1, "op": "u", "before": "x", "after": "y"},
        {"id": 1, "aggregate_type": "x", "type": "y"},
    ],
)
def test_rows_that_look_like_side_topics(row: dict[str, Any]) -> None:
    """Columns may be called as members of other records are: the row is read all the same."""
    found = rows(flat(row | {"__deleted": "false"}), extra=TABLE)
    assert [{n: v for n, v in each.items() if not n.startswith("__binlogd")} for each in found] == [
        {name: _text(value) for name, value in row.items() if name != "__deleted"}
    ]


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    return None if value is None else str(value)


def test_a_typed_row_with_the_columns_of_a_heartbeat() -> None:
    """The schema's name tells a table's row from a heartbeat."""
    schema = structure("s.shop.ticks.Value", {"ts_ms": "int64"})
    (row,) = rows(record({"schema": schema, "payload": {"ts_ms": 5}}), keys=("ts_ms",))
    assert row["ts_ms"] == 5


HEARTBEAT = "io.debezium.connector.common.Heartbeat"
SIDE: dict[str, Any] = {
    "heartbeat naming its server": {"serverName": "s", "ts_ms": 1},
    "heartbeat with schema": {
        "schema": structure(HEARTBEAT, {"ts_ms": "int64"}), "payload": {"ts_ms": 1},
    },
    "notification": {
        "id": "0c", "aggregate_type": "Initial Snapshot", "type": "COMPLETED",
        "additional_data": {"connector_name": "s"}, "timestamp": 1695817046353,
    },
}  # fmt: skip


@pytest.mark.parametrize("value", SIDE.values(), ids=SIDE)
def test_more_that_has_nothing_to_apply(value: Any) -> None:
    """Heartbeats of other versions, and notifications, move the position."""
    assert FORMAT.peek(record(value)).kind is Kind.NOTHING


def test_cloud_events_are_refused() -> None:
    """Their members are no columns, also where a table is configured."""
    value = {"id": "x", "source": "/debezium", "specversion": "1.0", "data": {"op": "c"}}
    with pytest.raises(BadMessage, match="a CloudEvents record"):
        FORMAT.peek(record(value))


def test_a_keyspace_is_a_database() -> None:
    """Vitess and Cassandra have keyspaces."""
    source = {"connector": "vitess", "db": "", "keyspace": "commerce", "table": "t"}
    head = FORMAT.peek(record(envelope("c", {"id": 1}, source=source), {"id": 1}))
    assert str(head.table) == "commerce.t"


@pytest.mark.parametrize("schema", ["text", {"type": "struct", "fields": "x"}, [], 5])
@pytest.mark.parametrize("place", ["value", "key"])
def test_a_schema_that_can_not_be_read_is_refused(schema: Any, place: str) -> None:
    """Without its types numbers of days and base64 would be kept as text, in silence."""
    value: Any = wrapped(envelope("c", {"id": 1, "d": 5}), {"id": "int32"})
    key: Any = {"id": 1}
    if place == "value":
        value["schema"] = schema
    else:
        key = {"schema": schema, "payload": key}
    with pytest.raises(BadRecord, match=f"the schema of the {place} can't be read"):
        decode(record(value, key))


def test_a_schema_whose_fields_have_null_names() -> None:
    """Some writers print each member of a schema, also those that are not there."""
    value = wrapped(
        envelope("c", {"id": 1, "d": 5}), {"id": "int32", "d": ("int32", f"{TIME}Date")}
    )
    value["schema"] |= {"field": None, "parameters": None, "default": None, "doc": None}
    (row,) = rows(record(value, {"id": 1}))
    assert row["d"] == date(1970, 1, 6)


OCTETS = UNAVAILABLE.encode()
PLACEHOLDERS: dict[str, tuple[Any, Any]] = {
    "float[]": ("array", [float(byte) for byte in OCTETS]),
    "numeric[]": ("array", [base64.b64encode(bytes([byte])).decode() for byte in OCTETS]),
    "numeric[] of any scale": (
        "array",
        [{"scale": 0, "value": base64.b64encode(bytes([byte])).decode()} for byte in OCTETS],
    ),
    "uuid[]": ("array", [str(uuid.UUID(bytes=hashlib.md5(OCTETS).digest(), version=3))]),
    "binary.handling.mode=hex": ("string", OCTETS.hex()),
    "geometry": (
        ("struct", "io.debezium.data.geometry.Geometry"),
        {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326},
    ),
    "geography": (
        ("struct", "io.debezium.data.geometry.Geography"),
        {"wkb": "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==", "srid": 4326},
    ),
}


@pytest.mark.parametrize(("kind", "given"), PLACEHOLDERS.values(), ids=PLACEHOLDERS)
def test_values_that_were_not_sent(kind: Any, given: Any) -> None:
    """Each type has a placeholder of its own form: what is stored stays."""
    fields = {"id": "int32", "v": kind}
    (row,) = rows(typed("u", fields, {"id": 1, "v": given}, source=POSTGRES))
    assert row[f"{HAS_PREFIX}v"] is False


def test_a_point_that_was_not_sent() -> None:
    """Java prints its coordinates with an exponent."""
    point = b'{"x":-9.9999999E7,"y":-9.9999999E7,"wkb":"AQEAAAAAAAD8g9eXwQAAAPyD15fB","srid":null}'
    value = wrapped(
        envelope("u", {"id": 1, "v": "POINT"}, source=POSTGRES),
        {"id": "int32", "v": ("struct", "io.debezium.data.geometry.Point")},
    )
    (row,) = rows(pack(b'{"id":1}', dumps(value).replace(b'"POINT"', point)))
    assert row[f"{HAS_PREFIX}v"] is False


@pytest.mark.parametrize(
    ("semantic", "given", "kept"),
    [
        ("IsoTime", "04:05Z", "04:05:00"),
        ("IsoTimestamp", "2019-07-09T02:28:57.123456000Z", datetime(2019, 7, 9, 2, 28, 57, 123456)),
        ("IsoTimestamp", "2019-07-09T02:28Z", datetime(2019, 7, 9, 2, 28)),
        ("IsoTimestamp", "+294247-01-10T04:00:25.2Z", None),
        ("IsoTimestamp", "-infinity", None),
        ("IsoDate", "+999999999-12-31Z", None),
    ],
)
def test_times_in_text(semantic: str, given: str, kept: object) -> None:
    """As Java prints them; infinities go the way of zero dates."""
    assert column(("string", TIME + semantic), given).to_pylist() == [kept]


def test_bytes_that_are_no_base64_say_so() -> None:
    """The reason names what was expected."""
    with pytest.raises(BadRecord, match=r"v: '__-_' is not a value of bytes in base64"):
        column("bytes", "__-_")


def test_statements_of_ticdc() -> None:
    """TiCDC writes Debezium's schema changes, and its statements are MySQL's."""
    source = {"connector": "TiCDC", "db": "shop", "table": "orders"}
    ddl = "ALTER TABLE orders ADD note TEXT"
    value = record({"source": source, "databaseName": "shop", "ddl": ddl, "tableChanges": []})
    assert FORMAT.peek(value).kind is Kind.DDL
    assert str(FORMAT.ddl(value)[0].table) == "shop.orders"


def test_a_renaming_across_databases_is_refused() -> None:
    """Debezium names the database of the new name alone: the old one's may be any."""
    source = {"connector": "mysql", "db": "archive", "table": "x"}
    ddl = "RENAME TABLE orders TO archive.x"
    value = record({"source": source, "databaseName": "archive", "ddl": ddl, "tableChanges": []})
    told = FORMAT.ddl(value)
    assert {str(statement.table) for statement in told} == {".orders", "archive.x"}
    assert all("session's is unknown" in str(statement.refused) for statement in told)


DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE = ("struct", "io.debezium.data.VariableScaleDecimal")
BITS = ("bytes", "io.debezium.data.Bits", {"length": "64"})
UNSIGNED = ("int64", None, {"__debezium.source.column.type": "BIGINT UNSIGNED"})


@pytest.mark.parametrize("given", [0, 5, -7, 2**63 - 1, 10**25, 0.5])
def test_numbers_of_any_scale(given: Any) -> None:
    """Integers don't pass through a float."""
    assert column(VARIABLE, given).to_pylist() == [str(given)]


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("bytes", 1234, "'1234 .no text.' is not a value of bytes"),
        ("bytes", True, "'true .no text.' is not a value of bytes"),
        (BITS, 1234, "'1234 .no text.' is not an io.debezium.data.Bits"),
        (VARIABLE, "abc", "is not an io.debezium.data.VariableScaleDecimal"),
        (VARIABLE, True, "'true' is not an io.debezium.data.VariableScaleDecimal"),
        (UNSIGNED, 2**64, "'18446744073709551616' is not an int64"),
        (UNSIGNED, -(2**63) - 1, "is not an int64"),
        (("int32", f"{TIME}Date"), 2**31, "'2147483648' is not an io.debezium.time.Date"),
        (("int32", f"{TIME}Date"), -(2**31) - 1, "is not an io.debezium.time.Date"),
        (("int32", f"{TIME}Date"), True, "'true' is not an io.debezium.time.Date"),
        (("int64", f"{TIME}Timestamp"), False, "'false' is not an io.debezium.time.Timestamp"),
        (("int32", f"{TIME}Time"), 838 * 3600_000 + 3600_000, "is not an io.debezium.time.Time"),
        (("int64", f"{TIME}MicroTime"), 2**63, "is not an io.debezium.time.MicroTime"),
    ],
)
def test_values_of_another_kind(kind: Any, given: Any, said: str) -> None:
    """What would make a value by chance is none: a number in base64, an integer cut to 64 bits."""
    with pytest.raises(BadRecord, match=f"shop.orders: v: .*{said}"):
        column(kind, None, given)


def test_infinite_dates_are_those_of_32_bits() -> None:
    """The ends of the type, and the days that Java makes of PostgreSQL's infinities."""
    days = [2**31 - 1, -(2**31), -2147472691, -2147472690]
    assert column(("int32", f"{TIME}Date"), *days).to_pylist() == [None] * 4


@pytest.mark.parametrize("given", ["NaN", "Infinity", "-Infinity", "12.50", "-1E+3"])
def test_texts_of_any_scale(given: str) -> None:
    """PostgreSQL's numeric has values that no decimal has: the column is text."""
    assert column(VARIABLE, given).to_pylist() == [given]


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("digits", ["1e400", "-1e999", "9" * 400])
def test_numbers_too_large_for_a_float(kind: str, digits: str) -> None:
    """They are no infinities, be they the first of a column or not."""
    value = dumps(wrapped(envelope("c", {"id": 1, "v": 1.25}), {"id": "int32", "v": kind}))
    good = pack(b'{"id":1}', value)
    bad = pack(b'{"id":1}', value.replace(b"1.25", digits.encode()))
    for values in ([bad], [good, good, bad]):
        with pytest.raises(BadRecord, match=f"v: '{digits[:20]}.* is not a {kind}"):
            decode(*values)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (("int64", f"{TIME}NanoTimestamp"), 1529501823123456700),
        (("string", f"{TIME}ZonedTimestamp"), "2018-06-20T13:37:03.1234567Z"),
        (("string", f"{TIME}IsoTimestamp"), "2018-06-20T13:37:03.1234567Z"),
    ],
)
def test_digits_beyond_microseconds_are_named(kind: Any, given: Any) -> None:
    """SQL Server's datetime2(7): the value is fine, but the lake would cut it."""
    with pytest.raises(BadRecord, match=r"v: .* is not an .*: the lake keeps microseconds"):
        column(kind, given)
