"""What a record says of a transaction, and of what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import make_format
from changes.formats.debezium.transactions import transaction_name
from changes.formats.engine.format import pack
from changes.model.model import BadMessage, FormatOptions, Head, Kind, TableName
from changes.model.row_events import RowEvent, Told, TransactionMark

SOURCE = {"name": "one", "ts_ms": 5000, "db": "d", "table": "t", "connector": "mysql"}
TOLD = {"id": "u:7", "total_order": 4, "data_collection_order": 2}
T = TableName("d", "t")


def events(
    value: Any,
    key: Any = None,
    *headers: tuple[str, bytes],
    name: str = "debezium-json",
    **options: str,
) -> tuple[Told, ...]:
    """Of one record."""
    texts = [None if each is None else json.dumps(each).encode() for each in (key, value)]
    packed = pack(texts[0], texts[1], headers)
    format_ = make_format(name, FormatOptions(extra=options))
    format_.turn_to("p", 0, 1)
    return format_.row_events(packed, format_.peek(packed))


def change(op: str, **more: Any) -> dict[str, Any]:
    """An envelope."""
    before, after = {"id": 1} if op == "d" else None, None if op in "dt" else {"id": 1}
    return {
        "before": before,
        "after": after,
        "source": SOURCE,
        "op": op,
        "ts_ms": 6000,
        "transaction": TOLD,
        **more,
    }


@pytest.mark.parametrize("name", ["debezium-json", "debezium"])
@pytest.mark.parametrize(("op", "letter"), [("c", "I"), ("u", "U"), ("d", "D"), ("t", "T")])
def test_an_envelope_says_its_number(name: str, op: str, letter: str) -> None:
    """Of its table in its transaction; with a schema or without, and beside a bare NaN."""
    expected = (RowEvent(T, letter, 5000, False, "u:7", 2, "one"),)
    assert events(change(op), name=name) == expected
    wrapped = {"schema": {"type": "struct", "optional": False, "fields": []}, "payload": change(op)}
    assert events(wrapped, name=name) == expected
    assert events(change(op) | {"x": float("nan")}, name=name) == expected


def test_a_changed_key_is_one_update() -> None:
    """Its halves carry each other's keys."""
    (first,) = events(change("d"), None, ("__debezium.newkey", b"{}"))
    (second,) = events(change("c"), None, ("__debezium.oldkey", b"{}"))
    assert [each.op for each in (first, second) if isinstance(each, RowEvent)] == ["", "U"]


@pytest.mark.parametrize("snapshot", ["true", "last", "incremental", True])
def test_rows_of_a_snapshot_are_read(snapshot: object) -> None:
    """Also those that old connectors call inserts."""
    for op in "rc":
        (found,) = events(change(op, source={**SOURCE, "snapshot": snapshot}, transaction=None))
        assert found == RowEvent(T, "I", None, True, None, None, "one")


def test_a_row_without_its_transactions_part_names_none() -> None:
    for told in (None, {}, {"id": "u:7"}, {"id": "u:7", "data_collection_order": "x"}):
        assert events(change("c", transaction=told)) == (
            RowEvent(T, "I", 5000, False, None, None, "one"),
        )


def test_a_flattened_row_counts_without_a_transaction() -> None:
    row = {"id": 1, "__op": "u", "__table": "t", "__db": "d", "__source_ts_ms": 5000}
    assert events(row) == (RowEvent(T, "U", 5000),)
    assert events(row | {"__op": "d", "__deleted": "true"}) == (RowEvent(T, "D", 5000),)
    assert events(row | {"__source_snapshot": "true"}) == (RowEvent(T, "U", None, True),)


def test_what_changes_no_row_is_no_event() -> None:
    """Statements, heartbeats, messages, tombstones; a tombstone that is a delete counts."""
    assert events({"ts_ms": 1}) == ()
    assert events({"source": SOURCE, "databaseName": "d", "ddl": "CREATE TABLE x (i int)"}) == ()
    assert events(change("m", message={"prefix": "x"})) == ()
    key = {"schema": {"type": "struct", "name": "s.d.t.Key", "fields": []}, "payload": {"id": 1}}
    assert events(None, None) == ()
    assert events(None, key) == ()
    named = {"default_database": "d", "default_table": "t"}
    assert events(None, key, tombstones="delete", **named) == (RowEvent(T, "D", None),)


def test_an_end_says_the_numbers_of_its_tables() -> None:
    """Messages of PostgreSQL are among the sum, and no table."""
    own = "io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$Id@1"
    listed = [{"data_collection": n, "event_count": c} for n, c in (("d.t", 2), (own, 1))]
    told = {"status": "END", "id": "733:26369904", "ts_ms": 5000, "data_collections": listed}
    end = TransactionMark("733", True, 5000, {"d.t": 2}, 3)
    assert events({**told, "event_count": 3}) == (end,)
    assert events({"payload": {**told, "event_count": 3}, "schema": None}) == (end,)
    assert events({**told, "event_count": 4}) == (end._replace(tables=None, events=4),)
    none = {**told, "event_count": 0, "data_collections": None}
    assert events(none) == (end._replace(tables={}, events=0),)
    begin = {"status": "BEGIN", "id": "733:1", "event_count": None, "ts_ms": 5000}
    assert events(begin) == (TransactionMark("733", False, 5000),)


def test_a_name_that_grows_is_cut() -> None:
    """PostgreSQL's has each event's LSN behind it; others stay."""
    whole = ("u-u:7", "0-1-7", "file=a,pos=1", "00000025:00000d98:00a2", "5.6.641", "x:7")
    assert [*map(transaction_name, (*whole, "733:26369904"))] == [*whole, "733"]


def test_what_cant_be_read_is_said() -> None:
    format_ = make_format("debezium-json", FormatOptions())
    with pytest.raises(BadMessage):
        format_.row_events(pack(None, b'{"op": "c", "source"'), Head(Kind.ROWS, T))
    with pytest.raises(BadMessage, match="a transaction's record that can't be read"):
        events({"status": "END", "id": 7, "event_count": 1})
