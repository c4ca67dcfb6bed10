"""Debezium's records: envelopes, tombstones, flattened rows, side topics, what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from changes.formats.engine.format import pack
from changes.model.model import AddColumn, Column, Ddl, FormatOptions, TableName, TruncateTable
from tests.changes.formats.cases import Case, FormatCases
from tests.changes.formats.debezium import values
from tests.changes.formats.debezium.arrays import ARRAYS
from tests.changes.formats.debezium.keys import KEYS
from tests.changes.formats.debezium.messages import (
    BARE,
    MYSQL,
    NAMED,
    POSTGRES,
    change,
    envelope,
    record,
    structure,
    typed,
    wrapped,
)
from tests.changes.formats.debezium.quirks import QUIRKS

ROW = {"id": 1, "name": "a"}
FIELDS = {"id": "int32", "name": "string"}
FLAT = {"id": 1, "name": "a", "__op": "c", "__table": "orders", "__db": "shop",
        "__deleted": "false", "__source_ts_ms": 1589373515000}  # fmt: skip
ADDED = {"__op": "string", "__table": "string", "__db": "string", "__deleted": "string",
         "__source_ts_ms": "int64"}  # fmt: skip
FLAT_SCHEMA = structure("s.shop.orders.Value", FIELDS | ADDED)
AT_MS = 1589373515000

SIDE_TOPICS: dict[str, Any] = {
    "a logical message": {
        "op": "m", "source": {**POSTGRES, "table": ""}, "message": {"prefix": "p"},
    },
    "a transaction's begin": {"status": "BEGIN", "id": "571:5", "ts_ms": 1, "event_count": None},
    "its end": {"status": "END", "id": "571:5", "event_count": 2, "data_collections": []},
    "a heartbeat": {"ts_ms": 1486500577125},
    "a heartbeat that names its server": {"serverName": "s", "ts_ms": 1},
    "a heartbeat with a schema": {"schema": {"type": "struct"}, "payload": {"ts_ms": 1}},
    "a heartbeat with its schema": {
        "schema": structure("io.debezium.connector.common.Heartbeat", {"ts_ms": "int64"}),
        "payload": {"ts_ms": 1},
    },
    "a notification": {
        "id": "0c", "aggregate_type": "Initial Snapshot", "type": "COMPLETED",
        "additional_data": {"connector_name": "s"}, "timestamp": 1695817046353,
    },
    "DDL of a database without our dialect": {
        "source": {"connector": "oracle"}, "databaseName": "X", "ddl": "ALTER TABLE t ADD (a INT)",
    },
}  # fmt: skip


def bad(says: str, value: bytes, reason: str) -> Case:
    return Case(says, value, unreadable=reason)


def statement(connector: str, database: str, sql: str) -> bytes:
    """A schema change."""
    source = {"connector": connector, "db": database, "table": "x"}
    told = {"source": source, "databaseName": database, "ddl": sql, "tableChanges": []}
    return record(told)


RECORDS = [
    *(
        Case(f"an envelope is the same change {how}", record(value, {"id": 1}),
             rows=[("U", {"id": id, "name": "a"})], good=good, before=None, at_ms=AT_MS)
        for how, value, id, good in (
            ("alone", envelope("c", ROW), "1", BARE),
            ("with a schema", wrapped(envelope("c", ROW), FIELDS), 1, None),
            ("behind an empty schema", {"schema": None, "payload": envelope("c", ROW)}, "1", BARE),
            ("before it", {"payload": envelope("c", ROW), "schema": None}, "1", BARE),
            ("as a payload alone", {"payload": envelope("c", ROW)}, "1", BARE),
        )
    ),
    *(
        Case(f"op {op} sets a row", change(op, ROW, ROW if op == "u" else None),
             rows=[("U", {"id": "1", "name": "a"})], good=BARE)
        for op in ("c", "r", "C", "u")
    ),
    Case("op d ends it", change("d", None, ROW), rows=[("D", {"id": "1"})], good=BARE),
    bad("an unknown op may be a change that we would lose", change("x", ROW), "unknown op 'x'"),
    *(
        Case(f"a truncation by {source['connector']}",
             record({"source": source, "op": "t", "ts_ms": 1}),
             statements=[Ddl(TableName("shop", "orders"), "TRUNCATE TABLE shop.orders",
                             (TruncateTable(),))],
             at_ms=AT_MS)
        for source in (MYSQL, POSTGRES)
    ),
    Case("a statement of TiCDC, which is MySQL's",
         statement("TiCDC", "shop", "ALTER TABLE orders ADD note TEXT"),
         statements=[Ddl(TableName("shop", "orders"), "ALTER TABLE orders ADD note TEXT",
                         (AddColumn(Column("note", pa.string())),))]),
    Case("a renaming across databases: the record names that of the new name alone",
         statement("mysql", "archive", "RENAME TABLE orders TO archive.x"),
         statements=[Ddl(TableName(database, table), "RENAME TABLE orders TO archive.x",
                         refused="a statement with names that have no database, while the "
                         "message's database is that of another name in it, so the session's is "
                         "unknown,")
                     for database, table in (("", "orders"), ("archive", "x"))]),
    *(Case(f"{says} moves the position", record(value), nothing=True)
      for says, value in SIDE_TOPICS.items()),
    Case("a flattened row: what the transformation added tells table, op and time",
         record(FLAT, {"id": 1}), rows=[("U", {"id": "1", "name": "a"})], good=BARE, at_ms=AT_MS),
    Case("a flattened row with a schema, of which what was added is no column",
         record({"schema": FLAT_SCHEMA, "payload": FLAT}, {"id": 1}),
         rows=[("U", {"id": 1, "name": "a"})]),
    Case("a flattened row that is marked deleted", good=BARE, rows=[("D", {"id": "1"})],
         messages=record({**FLAT, "name": None, "__deleted": "true", "__op": "d"}, {"id": 1})),
    *(
        Case(f"{source['connector']}'s table is {table}", change("c", ROW, source=source),
             rows=[("U", {"id": "1", "name": "a"})], table=table, good=BARE)
        for source, table in (
            (MYSQL, "shop.orders"),
            (POSTGRES, "shop.orders"),
            ({"connector": "sqlserver", "db": "d", "schema": "dbo", "table": "t"}, "d.dbo.t"),
            ({"connector": "oracle", "db": "ORCL", "schema": "HR", "table": "T"}, "HR.T"),
            ({"connector": "vitess", "db": "", "keyspace": "commerce", "table": "t"}, "commerce.t"),
        )
    ),
    bad("a marked row needs a table", record(ROW | {"__deleted": "false"}),
        "no default_database and default_table is set"),
    Case("a marked row of the configured table", record(ROW | {"__deleted": "false"}, {"id": 1}),
         rows=[("U", {"id": "1", "name": "a"})], options=FormatOptions(extra=NAMED), good=BARE),
    bad("documents of MongoDB", change("c", '{"_id": 1}', key={"id": "1"},
        source={"connector": "mongodb", "db": "d", "collection": "c"}), "MongoDB"),
    *(
        bad(f"no record: {value!r}", pack(None, value), "")
        for value in (b"[]", b"1", b'"x"', b"{", b"\xff",
                      b'{"op":"c","source":3,"after":null}', b"{}")
    ),
]  # fmt: skip

DEBEZIUM = FormatCases(
    "debezium-json",
    "shop.orders",
    typed("c", {"id": "int32"}, {"id": 99}),
    [*RECORDS, *QUIRKS, *KEYS, *ARRAYS, *values.CASES],
)
