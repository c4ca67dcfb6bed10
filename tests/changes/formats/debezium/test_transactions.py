"""What a record says of a transaction whose records lie in several partitions."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS, make_format
from changes.formats.engine.format import Packed, mark_of, pack
from changes.model.model import FormatOptions
from changes.model.row_events import TransactionMark, TransactionPart
from tests.changes.formats.debezium.messages import (
    MYSQL,
    POSTGRES,
    dumps,
    envelope,
    record,
    wrapped,
)

DEBEZIUM = FORMATS["debezium-json"](FormatOptions())
TOLD = {"id": "0-1-7", "total_order": 3, "data_collection_order": 2}
ROW = {"id": 1}


def part(value: Any, key: Any = ROW) -> TransactionPart | TransactionMark | None:
    return DEBEZIUM.transaction_part(record(value, key))


@pytest.mark.parametrize("op", ["c", "u", "d", "t"])
def test_a_change_is_one_of_its_transactions_events(op: str) -> None:
    """With a schema around it or without, wherever in the envelope the member is."""
    told = envelope(op, ROW, ROW, transaction=TOLD)
    first = {"transaction": told["transaction"], **told}
    for each in (told, first, wrapped(told, {"id": "int32"}), wrapped(first, {"id": "int32"})):
        assert part(each) == TransactionPart("0-1-7", 3)


def test_numbers_may_be_texts_and_spaces_between() -> None:
    """As other converters write them."""
    told = envelope("c", ROW, transaction={**TOLD, "total_order": "3"})
    assert part(told) == TransactionPart("0-1-7", 3)
    spaced = dumps(envelope("c", ROW, transaction=TOLD)).replace(b":", b": ").replace(b",", b", ")
    assert DEBEZIUM.transaction_part(pack(None, spaced)) == TransactionPart("0-1-7", 3)


def test_a_name_that_grows_is_cut_in_rows_and_ends() -> None:
    """PostgreSQL's has each event's LSN behind it."""
    told = {**TOLD, "id": "733:26369904"}
    assert part(envelope("c", ROW, source=POSTGRES, transaction=told)) == TransactionPart("733", 3)
    end = {"status": "END", "id": "733:26369999", "event_count": 1, "ts_ms": 5}
    end["data_collections"] = [{"data_collection": "public.t", "event_count": 1}]
    assert part(end) == TransactionMark("733", True, 5, {"public.t": 1}, 1)


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "transaction": {"id": "x", "total_order": 9}},
        {"id": 1, "note": '"transaction":{"id":"x","total_order":9,'},
    ],
)
def test_a_column_of_that_name_is_not_the_member(row: dict[str, Any]) -> None:
    """Nor is a text that looks like it."""
    for told, wanted in ((TOLD, TransactionPart("0-1-7", 3)), (None, TransactionPart(None, 0))):
        assert part(envelope("u", row, row, transaction=told)) == wanted


def test_a_change_without_its_transaction_says_so() -> None:
    """Also one without an envelope. What is counted would else be taken for whole."""
    for told in (None, {}, {"id": "x"}, {"id": "x", "total_order": -1}, {"total_order": 1}):
        assert part(envelope("c", ROW, transaction=told)) == TransactionPart(None, 0)
    lacking = envelope("c", ROW)
    del lacking["transaction"]
    assert part(lacking) == TransactionPart(None, 0)
    assert part({"id": 1, "__op": "c", "__table": "t", "__db": "d"}) == TransactionPart(None, 0)


def test_what_is_no_change_is_no_part() -> None:
    """Rows of a snapshot, tombstones, statements, heartbeats, what can't be read."""
    assert part(envelope("r", ROW)) is None
    assert part(None) is None
    assert part({"ts_ms": 1}) is None
    assert part({"source": POSTGRES, "databaseName": "d", "ddl": "CREATE TABLE x (i int)"}) is None
    assert DEBEZIUM.transaction_part(None) is None
    assert DEBEZIUM.transaction_part(pack(None, b'{"transaction":{"id":"\xff","total_ord')) is None
    assert DEBEZIUM.transaction_part(b"not packed") is None


def test_a_begin_and_an_end_say_what_they_are() -> None:
    begin = {"status": "BEGIN", "id": "0-1-7", "event_count": None, "ts_ms": 5}
    assert part(begin) == TransactionMark("0-1-7", False, 5)
    own = {"data_collection": "io.debezium.x", "event_count": 1}
    rows = {"data_collection": "d.t", "event_count": 2}
    end = {"status": "END", "id": "0-1-7", "ts_ms": 5, "data_collections": [own, rows]}
    assert part({**end, "event_count": 3}) == TransactionMark("0-1-7", True, 5, {"d.t": 2}, 3)
    assert part({**end, "event_count": 4}) == TransactionMark("0-1-7", True, 5, None, 4)


def test_a_pipeline_that_tells_formats_from_messages_finds_the_same() -> None:
    auto = make_format("auto", FormatOptions())
    value = dumps(envelope("c", ROW, transaction=TOLD))
    assert DEBEZIUM.recognise(Packed(None, value))
    marked = b"\xfe\xff\xff\xff" + bytes([13]) + b"debezium-json" + pack(None, value)
    assert auto.transaction_part(marked) == TransactionPart("0-1-7", 3)


def test_beside_it_no_other_format_passes_for_what_is_no_part_of_any() -> None:
    """Its rows would be in a cut between Debezium's transactions, and divide their own."""
    auto = make_format("auto", FormatOptions())
    row = b'{"database":"d","table":"t","type":"INSERT","data":[{"id":"1"}]}'
    assert auto.transaction_part(mark_of("canal-json") + pack(None, row)) == (None, 0)
    assert auto.transaction_part(None) is None


def named(**source: Any) -> str | None:
    """What the transaction of a change with this source is called."""
    told = DEBEZIUM.transactions_of(record(envelope("c", ROW, source=source), ROW))
    assert told is None or told.first == told.last
    return None if told is None else told.first


def test_neighbours_are_of_one_transaction_where_the_source_calls_it_alike() -> None:
    """PostgreSQL numbers its own; elsewhere such a member means other things."""
    assert named(**POSTGRES) == "5"
    assert named(**{**POSTGRES, "txId": None}) is None
    assert named(**{**POSTGRES, "connector": "oracle"}) is None
    assert named(**{**POSTGRES, "snapshot": "true"}) is None
    assert named(**{**POSTGRES, "gtid": "u:7"}) == "u:7"
    flat = {"id": 1, "__op": "c", "__source_txId": 5, "__source_connector": "postgresql"}
    told = DEBEZIUM.transactions_of(record(flat, ROW))
    assert told is not None
    assert told.last == "5"


def test_where_it_calls_it_nothing_the_transactions_part_does() -> None:
    """Its topic may be read by nobody."""
    told = {**MYSQL, "gtid": None}
    for transaction, wanted in ((TOLD, ("0-1-7", "0-1-7")), (None, None)):
        value = record(envelope("u", ROW, source=told, transaction=transaction), ROW)
        assert DEBEZIUM.transactions_of(value) == wanted
    read = record(envelope("r", ROW, source=told, transaction=TOLD), ROW)
    assert DEBEZIUM.transactions_of(read) is None
    assert DEBEZIUM.transactions_of(record(None, ROW)) is None
    assert DEBEZIUM.transactions_of(b"x") is None
