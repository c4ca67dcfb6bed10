"""Streams for daemons of one group, each with the rows that it leads to."""

from __future__ import annotations

import random
from typing import Any

from tests.changes.formats.debezium.messages import (
    POSTGRES,
    dumps,
    envelope,
    key_with_schema,
    wrapped,
)
from tests.integration.rig import canal
from tests.lake.daemons import Record

Rows = dict[int, tuple[Any, ...]]
FIELDS = {"id": "int32", "name": "string", "n": "int64"}


class TableInEach:
    """Tables ``t0``, ``t1``, … of a database, each in the partition of its number, as Canal writes
    them: inserts, updates, updates that lack a column, deletes. The same each time."""

    def __init__(self, database: str, partitions: int) -> None:
        self.database = database
        self.tables: list[Rows] = [{} for _ in range(partitions)]
        self.sent = [0] * partitions
        self._random = random.Random(19)

    def wave(self, messages: int) -> list[Record]:
        """So many more messages for each table, in turn."""
        return [
            (partition, None, self._message(partition))
            for _ in range(messages)
            for partition in range(len(self.tables))
        ]

    def _message(self, partition: int) -> bytes:
        rows, name = self.tables[partition], f"{self.database}.t{partition}"
        number = self.sent[partition]
        self.sent[partition] += 1
        key = self._random.randrange(1 + number // 2)
        row = {"id": key, "name": f"n{number}", "qty": number}
        if key not in rows:
            rows[key] = (row["name"], row["qty"])
            return canal(name, "INSERT", [row])
        if self._random.random() < 0.2:
            del rows[key]
            return canal(name, "DELETE", [row])
        if self._random.random() < 0.1:
            rows[key] = (row["name"], rows[key][1])
            return canal(name, "UPDATE", [{"id": key, "name": row["name"]}], old=[{"name": "x"}])
        rows[key] = (row["name"], row["qty"])
        return canal(name, "UPDATE", [row], old=[{"qty": "0"}])


class TableInSeveral:
    """One table, each of whose changes comes in any of several partitions, as Debezium reads it
    from PostgreSQL: only the place in its log tells what was first."""

    def __init__(self, schema: str, table: str, partitions: int) -> None:
        self.rows: Rows = {}
        self.sent = [0] * partitions
        self._source = {**POSTGRES, "schema": schema, "table": table}
        self._lsn = 1000
        self._random = random.Random(20)

    def wave(self, messages: int) -> list[Record]:
        """So many more messages."""
        return [self._record() for _ in range(messages)]

    def _record(self) -> Record:
        self._lsn += 8
        partition, key = self._random.randrange(len(self.sent)), self._random.randrange(60)
        self.sent[partition] += 1
        row = {"id": key, "name": f"n{self._lsn}", "n": self._lsn}
        source = {**self._source, "lsn": self._lsn}
        if key in self.rows and self._random.random() < 0.3:
            del self.rows[key]
            told = envelope("d", None, row, source)
        else:
            told = envelope("u" if key in self.rows else "c", row, None, source)
            self.rows[key] = (row["name"], row["n"])
        return partition, dumps(key_with_schema({"id": key}, {"id": "int32"})), self._value(told)

    def _value(self, told: Any) -> bytes:
        name = f"s.{self._source['schema']}.{self._source['table']}"
        return dumps(wrapped(told, FIELDS, name))
