"""What a message proves of the time at which its change happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.auto import make_format
from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import Format, pack
from changes.model.model import FormatOptions


def time_of(name: str, message: Any) -> int | None:
    format_ = make_format(name, FormatOptions())
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    return format_.source_ms(pack(None, value) if format_.keyed else value)


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
    for name, kind in FORMATS.items():
        format_ = make_format(name, FormatOptions())
        assert format_.source_ms(pack(b"k", None) if kind.keyed else None) is None


class Unpromising(CanalJson):
    """A format that says nothing of whose clock its messages' times are of."""

    source_ms = Format.source_ms


def test_a_format_that_promises_nothing_proves_nothing() -> None:
    """Though it shows a time to people: that may be the writer's clock."""
    format_ = Unpromising(FormatOptions())
    value = json.dumps(CANAL).encode()
    (change,) = format_.explain(value)
    assert change.ts_ms == 1700000000000
    assert format_.source_ms(value) is None
