"""A workload's changes as messages: Canal's flat JSON, Tencent DTS's protobuf, Debezium's JSON or
Avro."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from bench.compare.debezium import debezium_json, key_of
from bench.compare.debezium_avro import Register, avro_key_of, debezium_avro, unregistered
from bench.compare.job import NAMESPACE, Column
from bench.compare.rows import JDBC_TYPES, KEY, SENT, changing, texts
from bench.compare.workloads import Change, Group, Workload, stream
from changes.formats.engine import proto_files

_CANAL_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
_DTS_OPS = {"I": 0, "U": 1, "D": 2}
_DTS_KINDS = {"int": 3, "bigint": 4, "decimal": 12}
"""DataType of a value by tencent/dts.proto: INT32, INT64, DECIMAL; any other is 13, STRING."""

Encode = Callable[[int, Group, int | None], bytes]
"""The bytes of a message of this number, sent at this time (ms; None: there is no such column)."""


class Record(NamedTuple):
    """A message: its table's number, its key and its value."""

    table: int
    key: bytes | None
    value: bytes


def encoder(workload: Workload, register: Register = unregistered) -> Encode:
    """How the workload's changes are written. ``register``: see ``debezium_avro``."""
    names = [table.name for table in workload.specs]
    columns = workload.specs[0].columns
    if workload.format == "debezium-avro":
        return debezium_avro(_subjects(workload), columns, register)
    return _ENCODERS[workload.format](names, columns)


def _subjects(workload: Workload) -> list[tuple[str, str]]:
    """Of each table its topic and its name."""
    tables = workload.specs
    topics = workload.topics if workload.topic_a_table else workload.topics * len(tables)
    return [(topic, table.name) for topic, table in zip(topics, tables, strict=True)]


def keys(workload: Workload, register: Register = unregistered) -> Callable[[Group], bytes | None]:
    """How a message's key is written: of Debezium alone, the others have none."""
    if workload.format == "debezium-avro":
        return avro_key_of(_subjects(workload), register)
    if workload.format == "debezium-json":
        return key_of([table.name for table in workload.specs])
    return lambda _group: None


def messages(workload: Workload) -> Iterator[bytes]:
    """Every message of a workload that is not live."""
    return (record.value for record in records(workload))


def records(workload: Workload, register: Register = unregistered) -> Iterator[Record]:
    """The same with their tables and keys."""
    encode, key = encoder(workload, register), keys(workload, register)
    return (
        Record(group.table, key(group), encode(number, group, None))
        for number, group in enumerate(stream(workload))
    )


def canal_json(names: list[str], columns: tuple[Column, ...]) -> Encode:
    """One-row messages are about 500 bytes."""
    encode = msgspec.json.Encoder().encode
    jdbc_types = {column.name: JDBC_TYPES[column.name] for column in columns}
    constant: dict[str, Any] = {
        "database": NAMESPACE,
        "es": 1_767_225_600_000,
        "isDdl": False,
        "mysqlType": msgspec.Raw(encode({column.name: column.mysql for column in columns})),
        "pkNames": msgspec.Raw(encode(KEY)),
        "sql": "",
        "sqlType": msgspec.Raw(encode(jdbc_types)),
        "ts": 1_767_225_600_123,
    }

    def message(number: int, group: Group, sent_ms: int | None) -> bytes:
        old = [changing(_known(row.before)) for row in group.rows] if group.op == "U" else None
        return encode(
            {
                "data": [_row(row, sent_ms) for row in group.rows],
                "id": number,
                "old": old,
                "table": names[group.table],
                "type": _CANAL_OPS[group.op],
                **constant,
            }
        )

    return message


def _row(row: Change, sent_ms: int | None) -> dict[str, str]:
    """The row after the change, or before it where it is deleted."""
    values = texts(row.key, _known(row.before if row.after is None else row.after))
    if sent_ms is not None:
        values[SENT.name] = str(sent_ms)
    return values


def _known(version: int | None) -> int:
    assert version is not None
    return version


def tencent_dts(names: list[str], columns: tuple[Column, ...]) -> Encode:
    """Both images of an update, as DTS sends them. About 450 bytes for an inserted row."""
    proto = proto_files.messages("tencent/dts.proto")
    entries, envelope, data = proto["Entries"], proto["Envelope"], proto["Data"]
    kinds = [_DTS_KINDS.get(column.mysql.partition("(")[0], 13) for column in columns]
    frames = {
        (number, op): _frame(name, kind, columns)
        for number, name in enumerate(names)
        for op, kind in _DTS_OPS.items()
    }

    def image(key: int, version: int | None) -> list[Any]:
        if version is None:
            return []
        return [
            data(dataType=13, charset="utf8mb4", bv=text.encode())
            if kind == 13
            else data(dataType=kind, sv=text)
            for kind, text in zip(kinds, texts(key, version).values(), strict=True)
        ]

    def message(_number: int, group: Group, _sent_ms: int | None) -> bytes:
        framed = entries()
        framed.CopyFrom(frames[group.table, group.op])
        rows = framed.items[1].event.dmlEvent.rows
        for key, before, after in group.rows:
            rows.add(oldColumns=image(key, before), newColumns=image(key, after))
        value: bytes = envelope(
            version=1, total=1, index=0, data=framed.SerializeToString()
        ).SerializeToString()
        return value

    return message


def _frame(table: str, op: int, columns: tuple[Column, ...]) -> Any:
    """A transaction of one statement whose rows are yet to come."""
    frame = proto_files.messages("tencent/dts.proto")["Entries"]()
    begin, rows, commit = frame.items.add(), frame.items.add(), frame.items.add()
    for entry, kind in ((begin, 0), (rows, 2), (commit, 1)):
        entry.header.version, entry.header.sourceType = 1, 1
        entry.header.messageType, entry.header.timestamp = kind, 1_767_225_600
    begin.event.beginEvent.transactionId = commit.event.commitEvent.transactionId = "tx"
    rows.header.schemaName, rows.header.tableName = NAMESPACE, table
    rows.event.dmlEvent.dmlEventType = op
    for column in columns:
        rows.event.dmlEvent.columns.add(
            name=column.name, originalType=column.mysql, isKey=column.name in KEY
        )
    return frame


_ENCODERS: dict[str, Callable[[list[str], tuple[Column, ...]], Encode]] = {
    "canal-json": canal_json,
    "tencent-dts": tencent_dts,
    "debezium-json": debezium_json,
}
