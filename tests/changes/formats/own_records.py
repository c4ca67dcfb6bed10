"""Records of each format, built here: rows, statements, marks of the stream, others' dialects."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from changes.formats import FORMATS
from changes.formats.engine.format import Packed, unpack
from tests.changes import conformance
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats import samples
from tests.changes.formats.aliyun.cases import ALIYUN
from tests.changes.formats.aliyun.messages import integer, record, text
from tests.changes.formats.canal.cases import CANAL_JSON
from tests.changes.formats.canal.packets import PACKETS
from tests.changes.formats.debezium.cases import DEBEZIUM
from tests.changes.formats.debezium.messages import dumps, envelope, key_with_schema
from tests.changes.formats.json_messages import maxwell, ogg
from tests.changes.formats.maxwell.cases import MAXWELL
from tests.changes.formats.ogg.cases import OGG
from tests.changes.formats.tencent.cases import TENCENT
from tests.changes.formats.upsert.cases import UPSERT_ROWS

CANAL = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "es": 1}
CANAL |= {"data": [{"id": "1"}], "mysqlType": {"id": "int"}, "pkNames": ["id"]}
FLAT = {"id": 1, "name": "a"}
COLUMNS = [wire.dts_column("id", "int(11)", key=True)]
ROWS = wire.dts_rows(0, COLUMNS, [wire.dts_row((), [wire.dts_number(3, "1")])])
ENTRY = wire.canal_rows("INSERT", [wire.canal_row((), [wire.canal_column("id", "1", "int")])])

OWN: dict[str, list[tuple[str, Packed]]] = {
    "canal-json": [
        ("rows", Packed(None, dumps(CANAL))),
        ("a statement", Packed(None, dumps(CANAL | {"type": "ALTER", "isDdl": True, "sql": "x"}))),
        ("Flink's", Packed(None, b'{"data":[{"id":1}],"type":"INSERT"}')),
        ("Flink CDC's", Packed(None, b'{"old":null,"data":[{"id":1}],"type":"INSERT",'
                                     b'"database":"d","table":"t","pkNames":["id"]}')),
        ("TiCDC's watermark", Packed(None, b'{"id":0,"type":"TIDB_WATERMARK","isDdl":false,'
                                           b'"_tidb":{"watermarkTs":4}}')),
        ("a heartbeat", Packed(None, b'{"type":"MHEARTBEAT","isDdl":false,"data":null}')),
        ("a remark", Packed(None, b'{"type":"QUERY","sql":"insert into t","data":null}')),
    ],
    "maxwell-json": [
        ("rows", unpack(maxwell())),
        ("a statement", Packed(None, b'{"type":"table-create","database":"d","table":"t",'
                                     b'"def":{},"ts":1477053126000,"sql":"create table t"}')),
        ("a bootstrap", Packed(None, b'{"database":"d","table":"t","type":"bootstrap-start",'
                                     b'"ts":1,"data":{}}')),
        ("sealed", Packed(None, b'{"encrypted":{"iv":"x","bytes":"y"}}')),
        ("Flink's", Packed(None, b'{"data":{"id":1},"type":"insert"}')),
        ("a tombstone", Packed(b'{"database":"d","table":"t","pk.id":1}', None)),
        ("a tombstone by array", Packed(b'["d","t",[{"id":1}]]', b"")),
    ],
    "debezium-json": [
        ("rows", Packed(b'{"id":1}', dumps(envelope("c", {"id": 1})))),
        ("with schema", Packed(None, dumps({"schema": {"type": "struct"},
                                            "payload": envelope("c", {"id": 1})}))),
        ("Flink's", Packed(None, b'{"before":null,"after":{"id":1},"op":"c"}')),
        ("unwrapped", Packed(b'{"id":1}', dumps(FLAT | {"__deleted": "false"}))),
        ("unwrapped with a schema", Packed(None, dumps({
            "schema": {"type": "struct", "fields": [{"field": "id", "type": "int32"},
                                                    {"field": "name", "type": "string"}]},
            "payload": FLAT}))),
        ("a tombstone", Packed(dumps(key_with_schema({"id": 1}, {"id": "int32"})), None)),
        ("a tombstone of nulls", Packed(dumps(key_with_schema({"id": 1}, {"id": "int32"})),
                                        b'{"schema":null,"payload":null}')),
        ("half of a key change", Packed(b'{"id":1}', None, [("__debezium.newkey", b"{}")])),
        ("a heartbeat", Packed(b'{"serverName":"s"}', b'{"ts_ms":1}')),
        ("a transaction", Packed(b'{"id":"1"}', b'{"status":"END","id":"1","event_count":2,'
                                                b'"data_collections":[]}')),
        ("a schema change", Packed(None, b'{"source":{},"databaseName":"d","ddl":"x",'
                                         b'"tableChanges":[]}')),
        ("a message", Packed(None, dumps(envelope("m") | {"message": {"prefix": "p"}}))),
    ],
    "ogg-json": [
        ("rows", Packed(None, ogg("I", {"id": 1}))),
        ("a truncation", Packed(None, ogg("T"))),
        ("Flink's", Packed(None, b'{"before":null,"after":{"id":1},"op_type":"I"}')),
    ],
    "aliyun-dts-avro": [
        ("rows", Packed(None, record("INSERT", [integer(1), text("a")]))),
        ("the other layout", Packed(None, record("INSERT", [integer(1), text("a")], born=7))),
        ("a begin", Packed(None, record("BEGIN", fields=None, name=None))),
        ("a heartbeat", Packed(None, record("HEARTBEAT", fields=None, name=None, tags={}))),
    ],
    "canal-protobuf": [
        ("rows", Packed(None, wire.canal_packet(ENTRY))),
        ("a begin", Packed(None, wire.canal_packet(wire.canal_mark(1)))),
        ("a statement", Packed(None, wire.canal_packet(wire.canal_ddl("ALTER", "alter table t")))),
        ("sealed", Packed(None, wire.canal_packet(ENTRY, compression=3))),
        ("no entries", Packed(None, wire.canal_packet())),
    ],
    "tencent-dts": [
        ("rows", Packed(None, wire.dts_message(ROWS), [("ps", b"1")])),
        ("rows without headers", Packed(None, wire.dts_message(ROWS))),
        ("a begin", Packed(None, wire.dts_message(wire.dts_begin()))),
        ("a heartbeat", Packed(None, wire.dts_message(wire.dts_heartbeat()))),
        ("a later part", Packed(None, wire.dts_parts(5, ROWS)[3], [("ps", b"4")])),
        ("a part without headers", Packed(None, wire.dts_parts(5, ROWS)[3])),
    ],
    "upsert-json": [
        ("rows", Packed(b'{"id":1}', dumps(FLAT))),
        ("a row without its key", Packed(b'{"id":1}', b'{"name":"a"}')),
        ("a row of a document", Packed(b'{"id":1}', b'{"id":1,"name":{"a":[1,"b"]}}')),
        ("a row of a wide key", Packed(b'{"id":1,"region":"eu"}', dumps(FLAT))),
        ("a delete", Packed(b'{"id":1}', None)),
        ("an empty delete", Packed(b'{"id":1}', b"")),
    ],
}  # fmt: skip
"""By format: what a record is, and the record. The first is rows."""

OWN["debezium"] = OWN["debezium-json"][:1]
OWN["upsert"] = OWN["upsert-json"]

BY_NAME_ALONE = frozenset(("debezium", "upsert", "upsert-json"))
"""Formats that no record of these shows: a configuration has to name them, or a registry."""

TABLES = (ALIYUN, CANAL_JSON, PACKETS, DEBEZIUM, MAXWELL, OGG, TENCENT, UPSERT_ROWS)
"""What becomes of messages, by format: see ``cases.py``."""

FILES = {
    "canal-json": ("flink/canal*.txt", "inlong/canal*.txt"),
    "debezium-json": ("flink/debezium*.txt", "debezium-docs/*.json"),
    "maxwell-json": ("flink/maxwell-data.txt", "maxwell/json/*.json"),
    "ogg-json": ("flink/ogg-data.txt",),
    "canal-protobuf": ("synthetic-vectors/canal*.json",),
    "tencent-dts": ("synthetic-vectors/dts*.json",),
    "aliyun-dts-avro": (),
    "upsert-json": (),
    "debezium": (),
    "upsert": (),
}


@cache
def known(name: str) -> list[Packed]:
    """Records of a format: those of other projects, our own, those of the cases."""
    root = conformance.present()
    paths = [p for pattern in FILES[name] for p in sorted(root.glob(pattern))] if root else []
    found: list[Packed] = []
    for path in paths:
        if FORMATS[name].binary:
            found += map(_vector, json.loads(path.read_text())["records"])
        elif path.suffix == ".json":
            found.append(Packed(None, path.read_bytes()))
        else:
            found += (Packed(None, line) for line in samples.lines(path))
    found += (record for _, record in OWN[name])
    for table in TABLES:
        found += table.records() if table.format == name else ()
    return found


def _vector(record: dict[str, Any]) -> Packed:
    headers = [(name, text.encode()) for name, text in record["headers"].items()]
    return Packed(None, bytes.fromhex(record["value_hex"]), headers)
