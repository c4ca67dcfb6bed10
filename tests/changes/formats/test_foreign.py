"""Envelopes of writers that are not read: named as what they are, never taken for rows."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.auto import AutoFormat
from changes.formats.base import Confidence, Packed, pack
from changes.formats.debezium.json import DebeziumJson
from changes.formats.recognise import TopicFormats, confidences, not_read, recognised, unclear
from changes.model import BadMessage, FormatOptions, Kind
from tests.changes.formats.debezium.messages import dumps

NAMED = {"default_database": "shop", "default_table": "orders"}

DMS = {
    "timestamp": "2026-01-02T03:04:05.000006Z",
    "record-type": "data",
    "operation": "update",
    "partition-key-type": "schema-table",
    "schema-name": "shop",
    "table-name": "orders",
    "transaction-id": 87978110091475,
}
COLUMN = {"name": "id", "type": "LONG"}
SOURCE = {"dbType": "mysql", "dbVersion": "1.0.0", "dbName": "shop", "tableName": "orders"}
SCHEMA = {"dataColumn": [COLUMN], "primaryKey": ["id"], "source": SOURCE}
IMAGE = {"dataColumn": {"id": 111}}
PAYLOAD = {"before": IMAGE, "after": IMAGE, "op": "INSERT", "timestamp": {"eventTime": 1}}

AWS, ALIYUN = "AWS DMS's JSON", "the JSON of Aliyun DataWorks"
FOREIGN: list[tuple[str, str, Any]] = [
    ("a row", AWS, {"data": {"id": 1}, "metadata": DMS}),
    ("a row, the other way round", AWS, {"metadata": DMS, "data": {"id": 1}}),
    ("with its old image", AWS, {"data": {"id": 1}, "before-image": {"id": 1}, "metadata": DMS}),
    ("a statement", AWS, {"control": {"table-def": {}}, "metadata": DMS | {"schema-name": ""}}),
    ("only metadata", AWS, {"metadata": DMS | {"record-type": "control"}}),
    ("a row", ALIYUN, {"schema": SCHEMA, "payload": PAYLOAD, "version": "0.0.1"}),
    ("no version", ALIYUN, {"schema": SCHEMA, "payload": PAYLOAD}),
    ("no columns", ALIYUN, {"schema": {}, "payload": PAYLOAD | {"before": None}, "version": "1"}),
    ("a heartbeat", ALIYUN, {"schema": SCHEMA, "payload": {"op": "MHEARTBEAT", "timestamp": {}}}),
    ("a heartbeat", ALIYUN, {"schema": {}, "payload": {"op": "MHEARTBEAT"}, "version": "0.0.1"}),
]
CASES = [pytest.param(who, value, id=f"{who}: {what}") for what, who, value in FOREIGN]


@pytest.mark.parametrize(("who", "value"), CASES)
@pytest.mark.parametrize("extra", [{}, NAMED], ids=["", "named"])
@pytest.mark.parametrize("key", [None, b'{"id":1}', b"shop.orders.1"])
def test_they_are_refused_by_name(who: str, value: Any, extra: dict[str, str], key: Any) -> None:
    """Whatever a configuration says: as rows they would be a table of two columns of text."""
    with pytest.raises(BadMessage, match=who):
        DebeziumJson(FormatOptions(extra=extra)).peek(pack(key, dumps(value)))


@pytest.mark.parametrize(("who", "value"), CASES)
def test_no_format_claims_them(who: str, value: Any) -> None:
    """Nor does any say that they may be of its own."""
    record = Packed(None, dumps(value))
    assert confidences(record) == {}
    assert not_read(record) == who
    assert "none that is known" in unclear([record])


@pytest.mark.parametrize(("who", "value"), CASES)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_format_reads_them(name: str, who: str, value: Any) -> None:
    """A pipeline of another format has a bad record, not a row and not nothing."""
    format_ = FORMATS[name](FormatOptions(extra=NAMED))
    with pytest.raises(BadMessage):
        format_.peek(pack(None, dumps(value)) if format_.keyed else dumps(value))


def test_in_a_topic_of_another_format_they_are_named() -> None:
    """Of ``auto`` the bad record says whose it is."""
    format_ = AutoFormat(FormatOptions(), TopicFormats({"t": "canal-json"}))
    value = dumps({"data": {"id": 1}, "metadata": DMS})
    with pytest.raises(BadMessage, match="a message of AWS DMS's JSON in a topic of canal-json"):
        format_.peek(format_.marked("t", pack(None, value)))


NOT_FLAT = [
    {"id": 1, "row": {"name": "x"}},
    {"event": {"type": "x"}, "data": {"id": 1}},
    {"id": 1, "wkb": {}},
]


@pytest.mark.parametrize("value", NOT_FLAT)
def test_an_object_of_objects_is_no_flattened_row(value: Any) -> None:
    """Nothing in it says that it is one: with a table configured it would be one of text."""
    record = Packed(None, dumps(value))
    assert confidences(record).get("debezium-json", Confidence.NO) is Confidence.NO
    with pytest.raises(BadMessage, match=r"no flattened row.* its member .* is an object"):
        DebeziumJson(FormatOptions(extra=NAMED)).peek(pack(None, dumps(value)))


FLAT = [
    {"id": 1, "name": "x", "tags": ["a", "b"], "none": None, "yes": True, "n": 1.5},
    {"id": 1, "at": {"x": 1.0, "y": 2.0, "wkb": "AQ==", "srid": None}},
    {"id": 1, "area": {"wkb": "AQ==", "srid": 4326}, "price": {"scale": 2, "value": "AQ=="}},
    {"id": 1, "v": {"dimensions": 3, "vector": {"1": 2.0}}},
    {"id": 1, "metadata": "text", "data": "text", "payload": "text", "version": "0.0.1"},
]


@pytest.mark.parametrize("value", FLAT)
def test_a_row_that_looks_like_one_is_one(value: Any) -> None:
    """With the table configured; without it nobody knows whose it is."""
    record = pack(None, dumps(value))
    assert DebeziumJson(FormatOptions(extra=NAMED)).peek(record).kind is Kind.ROWS
    for extra in ({}, {"default_table": "orders"}):
        with pytest.raises(BadMessage, match="no default_database and default_table is set"):
            DebeziumJson(FormatOptions(extra=extra)).peek(record)
    assert recognised(confidences(Packed(None, dumps(value)))) is None


def test_rows_that_are_marked_may_hold_anything() -> None:
    """Their marks say what they are, as a schema does."""
    value = {"id": 1, "attrs": {"a": {"b": 1}}, "__op": "c", "__table": "orders", "__db": "shop"}
    assert DebeziumJson(FormatOptions()).peek(pack(None, dumps(value))).kind is Kind.ROWS
