"""What a message proves of the time at which its change happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats.auto import make_format
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from changes.routes.source_times import source_ms


def time_of(name: str, message: Any) -> int | None:
    format_ = make_format(name, FormatOptions())
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    return source_ms(format_, value, pack(None, value) if format_.keyed else value)


CANAL = {
    "database": "shop",
    "table": "t",
    "type": "INSERT",
    "isDdl": False,
    "data": [{"id": "1"}],
    "pkNames": ["id"],
    "mysqlType": {"id": "int"},
    "es": 1700000000000,
    "ts": 1700000009999,
}
SOURCE = {"ts_ms": 1700000000000, "db": "shop", "table": "t", "snapshot": "false"}
DEBEZIUM = {"op": "c", "before": None, "after": {"id": 1}, "source": SOURCE, "ts_ms": 1700000009999}


def test_canal_says_when_the_change_happened() -> None:
    """When its message was written proves nothing: a reader that lags writes old changes now."""
    assert time_of("canal-json", CANAL) == 1700000000000
    assert time_of("canal-json", {**CANAL, "es": 0}) is None
    without = {name: value for name, value in CANAL.items() if name != "es"}
    assert time_of("canal-json", without) is None


def test_debezium_says_it_in_its_source() -> None:
    """With schema or without, flattened or not; never by the time of the record."""
    assert time_of("debezium-json", DEBEZIUM) == 1700000000000
    assert time_of("debezium-json", {"schema": {}, "payload": DEBEZIUM}) == 1700000000000
    flat = {"id": 1, "__op": "c", "__source_ts_ms": 1700000000000, "__table": "t"}
    assert time_of("debezium-json", flat) == 1700000000000
    assert time_of("debezium-json", {**DEBEZIUM, "source": {"db": "shop"}}) is None


@pytest.mark.parametrize(
    "message",
    [
        {**DEBEZIUM, "op": "r"},
        {**DEBEZIUM, "source": {**SOURCE, "snapshot": "incremental"}},
        {**DEBEZIUM, "source": {**SOURCE, "snapshot": "true"}},
        {**DEBEZIUM, "source": {**SOURCE, "snapshot": True}},
    ],
)
def test_rows_that_debezium_reads_from_a_table_prove_nothing(message: dict[str, Any]) -> None:
    """They are in the log before changes that are older."""
    assert time_of("debezium-json", message) is None


def test_maxwell_says_it_in_seconds_but_not_of_a_bootstrap() -> None:
    """Rows of a bootstrap are read from the table."""
    row = {"database": "shop", "table": "t", "type": "insert", "ts": 1700000000, "data": {"id": 1}}
    assert time_of("maxwell-json", row) == 1700000000000
    assert time_of("maxwell-json", {**row, "type": "bootstrap-insert"}) is None


@pytest.mark.parametrize("name", ["canal-json", "debezium-json", "maxwell-json", "ogg-json"])
@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"\xff", b'{"es": []}', b'{"source": 1}'])
def test_what_cant_be_read_proves_nothing(name: str, value: bytes) -> None:
    """And raises nothing: the flow itself says what is wrong with it."""
    assert time_of(name, value) is None


def test_a_tombstone_proves_nothing() -> None:
    """It has no value."""
    assert source_ms(make_format("canal-json", FormatOptions()), None, None) is None
