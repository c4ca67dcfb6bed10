"""What is counted of records in Avro is what is counted of their JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from changes.formats.debezium.json import DebeziumJson
from changes.formats.wire.format import Debezium
from changes.model.model import FormatOptions
from changes.model.row_events import RowEvent, Told, TransactionMark
from tests.changes.formats.debezium.messages import envelope, record
from tests.changes.formats.wire.records import FIELDS, Kept, envelope_schema


def struct(name: str, **members: str) -> dict[str, Any]:
    """The schema of a structure of optional members."""
    fields = [{"type": type_, "optional": True, "field": field} for field, type_ in members.items()]
    return {"type": "struct", "fields": fields, "optional": True, "name": name}


def events(folder: Path, packed: bytes) -> tuple[Told, ...]:
    """Of a record in Avro, which are those of its JSON."""
    kept = Kept(folder)
    framed = kept.as_avro(packed)
    avro, plain = Debezium(kept.options()), DebeziumJson(FormatOptions())
    found = avro.row_events(framed, avro.peek(framed))
    assert found == plain.row_events(packed, plain.peek(packed))
    return found


def test_a_row_says_its_number(tmp_path: Path) -> None:
    schema = envelope_schema(FIELDS)
    told = struct("event.block", id="string", total_order="int64", data_collection_order="int64")
    schema["fields"].append({**told, "field": "transaction"})
    named = {"id": "u:7", "total_order": 3, "data_collection_order": 2}
    payload = envelope("c", {"id": 1, "name": "a"}, transaction=named)
    (found,) = events(tmp_path, record({"schema": schema, "payload": payload}))
    assert isinstance(found, RowEvent)
    assert (found.op, found.transaction, found.order) == ("I", "u:7", 2)


def test_an_end_says_its_numbers(tmp_path: Path) -> None:
    name = "io.debezium.connector.common.TransactionMetadataValue"
    schema = struct(name, status="string", id="string", event_count="int64", ts_ms="int64")
    item = struct("event.collection", data_collection="string", event_count="int64")
    listed = {"type": "array", "items": item, "optional": True, "field": "data_collections"}
    schema = {**schema, "optional": False, "fields": [*schema["fields"], listed]}
    tables = [{"data_collection": "shop.orders", "event_count": 2}]
    payload = {"status": "END", "id": "u:7", "event_count": 2, "ts_ms": 5}
    packed = record({"schema": schema, "payload": {**payload, "data_collections": tables}})
    assert events(tmp_path, packed) == (TransactionMark("u:7", True, 5, {"shop.orders": 2}, 2),)
