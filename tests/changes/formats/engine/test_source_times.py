"""What a message proves of the time at which its change happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS, make_format
from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import Format, pack
from changes.model.model import FormatOptions
from changes.model.places import Place
from tests.changes.formats.cases import NAMED


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
    "columns",
    [{"source": "web"}, {"source": 3}, {"source": {"ts_ms": 5}}, {"op": "r"}, {"payload": {}}],
)
def test_columns_of_a_flattened_row_may_be_named_as_members_of_the_others(columns: Any) -> None:
    flat = {"id": 1, "__op": "c", "__source_ts_ms": 1700000000000, "__table": "t", **columns}
    for message in (flat, {"schema": {}, "payload": flat}):
        assert time_of("debezium-json", message) == 1700000000000
        assert (
            time_of("debezium-json", json.loads(json.dumps(message).replace('"c"', '"r"'))) is None
        )


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
        format_ = make_format(name, FormatOptions(extra=NAMED))
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


def place_of(message: Any) -> Place | None:
    """Of Debezium's."""
    return make_format("debezium-json", FormatOptions()).place(
        pack(None, json.dumps(message).encode())
    )


MYSQL = {"gtid": "0-1-7", "file": "bin.000003", "pos": 400}


def test_debezium_says_where_its_source_has_a_change() -> None:
    """With schema or without, flattened or not. A null is nothing; so is a word for a number."""
    found = Place("0-1-7", "bin.000003", 400)
    message = {**DEBEZIUM, "source": {**SOURCE, **MYSQL}}
    assert place_of(message) == found
    assert place_of({"schema": {}, "payload": message}) == found
    flat = {f"__source_{name}": value for name, value in MYSQL.items()}
    assert place_of({"id": 1, "__op": "c", **flat}) == found
    assert place_of({**DEBEZIUM, "source": {**SOURCE, "lsn": 2**63}}) == Place(lsn=2**63)
    odd = {"gtid": None, "file": 3, "pos": "400", "lsn": {"a": 1}}
    assert place_of({**DEBEZIUM, "source": {**SOURCE, **odd}}) is None
    assert time_of("debezium-json", {**DEBEZIUM, "source": {**SOURCE, **odd}}) == SOURCE["ts_ms"]
    assert place_of(DEBEZIUM) is None


@pytest.mark.parametrize("snapshot", ["true", "last", "incremental", True])
def test_rows_that_debezium_reads_from_a_table_are_nowhere(snapshot: object) -> None:
    """They have a place, but come in another order."""
    source = {**SOURCE, **MYSQL, "snapshot": snapshot}
    assert place_of({**DEBEZIUM, "source": source}) is None
    assert place_of({**DEBEZIUM, "op": "r", "source": {**SOURCE, **MYSQL}}) is None


def test_other_formats_say_no_place() -> None:
    """Canal and Maxwell write sets of transactions, or how far they have come."""
    for name, kind in FORMATS.items():
        format_ = make_format(name, FormatOptions(extra=NAMED))
        assert format_.place(pack(b"k", None) if kind.keyed else None) is None
    canal = make_format("canal-json", FormatOptions())
    assert canal.place(json.dumps({**CANAL, "gtid": "0-1-7"}).encode()) is None
