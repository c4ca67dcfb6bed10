"""Envelopes of writers that are not read: named as what they are, never taken for rows."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats import FORMATS, TopicFormats
from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import Packed, pack
from changes.formats.recognise import confidences, not_read, recognised, unclear
from changes.model.model import BadMessage, BadRecord, FormatOptions, Kind, Mode
from tests.changes.formats.debezium.messages import dumps
from tests.changes.formats.own_records import BY_NAME_ALONE

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


ANYTHING: dict[str, Any] = {
    "an Avro record": {"type": "record", "name": "orders", "fields": [{"name": "id"}], "id": 1},
    "an Avro enum": {"type": "enum", "name": "e", "symbols": ["a"]},
    "a JSON schema": {"$schema": "x", "type": "object", "properties": {"id": {}}},
    "a registry's answer": {"subject": "a", "version": 1, "id": 3, "schema": "{}"},
    "an error": {"error_code": 40401, "message": "Subject not found"},
    "a line of a log": {"level": "info", "message": "x", "ts": 1},
    "a row": {"id": 1, "name": "x", "tags": ["a", "b"], "none": None},
    "a row with an object": {"id": 1, "row": {"name": "x"}},
    "a row with an op": {"id": 1, "op": "c"},
    "a row with a type": {"id": 1, "type": "INSERT"},
    "a row with an op_type": {"id": 1, "op_type": "I"},
    "a wrapped row": {"payload": {"id": 1}},
    "a wrapped row, no schema": {"schema": None, "payload": {"id": 1}},
    "a wrapped row, no columns": {"schema": {"type": "struct"}, "payload": {"id": 1}},
    "a wrapped row, Avro's schema": {
        "schema": {"type": "record", "fields": [{"name": "id", "type": "int"}]},
        "payload": {"id": 1},
    },
    "nothing": {},
}


@pytest.mark.parametrize("what", ANYTHING)
@pytest.mark.parametrize("name", sorted(FORMATS.keys() - BY_NAME_ALONE))
@pytest.mark.parametrize("mode", Mode)
def test_no_object_becomes_a_row_by_itself(name: str, what: str, mode: Mode) -> None:
    """It is neither an envelope nor a row with a schema: refused, though a table is configured."""
    format_ = FORMATS[name](FormatOptions(extra=NAMED))
    value = dumps(ANYTHING[what])
    record = pack(b'{"id":1}', value) if format_.keyed else value

    def read() -> None:
        format_.peek(record)
        format_.table_decoder(mode, ("id",)).decode(0, [1], [record])

    with pytest.raises((BadMessage, BadRecord)):
        read()


@pytest.mark.parametrize("what", [what for what in ANYTHING if "Avro's schema" not in what])
def test_no_object_names_a_format_by_itself(what: str) -> None:
    """One with a schema of columns may: its format then refuses it."""
    assert recognised(confidences(Packed(None, dumps(ANYTHING[what])))) is None


def test_the_refusal_says_what_to_do() -> None:
    """The connector can mark its rows, or describe them."""
    with pytest.raises(BadMessage, match=r"add\.fields=op,table.*schemas\.enable"):
        DebeziumJson(FormatOptions(extra=NAMED)).peek(pack(None, b'{"id":1}'))


def test_rows_that_are_marked_may_hold_anything() -> None:
    """Their marks say what they are, as a schema does."""
    value = {"id": 1, "attrs": {"a": {"b": 1}}, "__op": "c", "__table": "orders", "__db": "shop"}
    assert DebeziumJson(FormatOptions()).peek(pack(None, dumps(value))).kind is Kind.ROWS
