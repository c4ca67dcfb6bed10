"""The source of the load's demo: eight tables in MariaDB, and a session that changes them.

The stream is written by that session itself, as Canal would write it: a message for each row, in
the order of its commits, once the commit is done. So the topic has what the binary log has.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

from demo.load.mariadb import MariaDb
from demo.paced import AT_ONCE, Paced

DATABASE = "shop"

TABLES = (*(f"orders_{number}" for number in range(6)), "codes", "parts")
"""Numbers as keys; a text, which a collation orders; two columns."""

TYPES = {
    "id": "bigint(20)",
    "code": "varchar(20)",
    "line": "int(11)",
    "name": "varchar(60)",
    "price": "decimal(10,2)",
    "qty": "int(11)",
    "made": "datetime(6)",
    "note": "varchar(80)",
    "twice": "int(11)",
}
KEYS: Mapping[str, tuple[str, ...]] = {"codes": ("code",), "parts": ("id", "line")}
COLUMNS = ("name", "price", "qty", "made", "note")

UNTOUCHED = 200
"""The first rows of each table never change: differences are planted in these."""

Row = dict[str, Any]


def keys_of(table: str) -> tuple[str, ...]:
    """The key's columns."""
    return KEYS.get(table, ("id",))


def columns_of(table: str) -> tuple[str, ...]:
    """All columns, in order."""
    return (*keys_of(table), *COLUMNS)


def create(server: MariaDb, rows: int) -> None:
    """Make the tables, with so many rows in all, none of which is in any stream."""
    each = rows // len(TABLES)
    server.run(f"CREATE DATABASE {DATABASE}")
    for table in TABLES:
        columns = ", ".join(f"{name} {TYPES[name]}" for name in columns_of(table))
        keys = keys_of(table)
        values = {
            "id": "seq", "code": "CONCAT('Code ', seq)", "line": "seq % 7",
            "name": "IF(seq % 17 = 0, NULL, CONCAT('name ', seq))", "price": "seq / 7",
            "qty": "seq % 1000", "made": "FROM_UNIXTIME(1600000000 + seq + 0.000001 * (seq % 997))",
            "note": "IF(seq % 19 = 0, '', CONCAT('é ', seq * 31))",
        }  # fmt: skip
        shown = ", ".join(values[name] for name in columns_of(table))
        server.run(
            f"CREATE TABLE {DATABASE}.{table} ({columns}, PRIMARY KEY ({', '.join(keys)}))",
            f"USE {DATABASE}",
            f"INSERT INTO {table} SELECT {shown} FROM seq_1_to_{each}",
        )
    server.run(f"CREATE TABLE {DATABASE}.beat (id INT PRIMARY KEY, at BIGINT)")


class Changes(Paced):
    """Changes rows at a rate, and tells of each once it is committed, until it is stopped."""

    def __init__(self, server: MariaDb, bootstrap: str, topic: str, rows: int, seed: int) -> None:
        super().__init__(1000.0)
        self._connection = server.connect()
        self._topic = topic
        self._each = rows // len(TABLES)
        self._rng = random.Random(seed)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True}
        )
        self._turn = threading.Lock()

    def stop(self) -> int:
        """See ``Paced``; the broker has taken all."""
        done = super().stop()
        if self._producer.flush(30):
            raise TimeoutError("the broker did not take the last changes")
        return done

    def state(self, table: str, sql: str) -> None:
        """A statement between two transactions, in the stream as well."""
        with self._turn, self._connection.cursor() as cursor:
            cursor.execute(f"USE {DATABASE}")
            cursor.execute(sql)
            self._send(
                {"database": DATABASE, "table": table, "isDdl": True, "type": "ALTER", "sql": sql,
                 "data": None, "old": None}
            )  # fmt: skip

    @contextmanager
    def held(self) -> Iterator[None]:
        """No change inside."""
        with self._turn:
            yield

    def transaction(self) -> None:
        """See ``Paced``."""
        messages: list[Mapping[str, Any]] = []
        with self._turn, self._connection.cursor() as cursor:
            messages += [self._change(cursor) for _ in range(AT_ONCE - 1)]
            beat = {"id": 1, "at": time.time_ns()}
            cursor.execute(f"REPLACE INTO {DATABASE}.beat VALUES (%s, %s)", (1, beat["at"]))
            messages.append(self._message("beat", "UPDATE", beat, {"at": 0}, ("id",)))
            self._connection.commit()
            for message in messages:
                self._send(message)
        self.done += len(messages)

    def _change(self, cursor: Any) -> Mapping[str, Any]:
        rng, table = self._rng, self._rng.choice(TABLES)
        number = rng.randrange(UNTOUCHED, self._each * 11 // 10)
        key = {"id": number, "code": f"Code {number}", "line": number % 7}
        key = {name: key[name] for name in keys_of(table)}
        old = self._row(cursor, table, key)
        if old is None:
            row = key | {
                "name": f"new {self.done}", "price": None, "qty": rng.randrange(10**9),
                "made": None, "note": "",
            }  # fmt: skip
            self._put(cursor, table, row)
            return self._message(table, "INSERT", self._row(cursor, table, key), None, None)
        fate = rng.random()
        if fate < 0.2:
            cursor.execute(
                f"DELETE FROM {DATABASE}.{table} WHERE {_where(key)}", tuple(key.values())
            )
            return self._message(table, "DELETE", old, None, None)
        column, value = (
            ("name", f"changed {self.done} é") if fate < 0.7 else ("qty", rng.randrange(10**9))
        )
        cursor.execute(
            f"UPDATE {DATABASE}.{table} SET {column} = %s WHERE {_where(key)}",
            (value, *key.values()),
        )
        return self._message(table, "UPDATE", old | {column: value}, {column: old[column]}, None)

    def _row(self, cursor: Any, table: str, key: Row) -> Row | None:
        cursor.execute(f"SELECT * FROM {DATABASE}.{table} WHERE {_where(key)}", tuple(key.values()))
        found = cursor.fetchone()
        names = [column[0] for column in cursor.description]
        return None if found is None else dict(zip(names, found, strict=True))

    def _put(self, cursor: Any, table: str, row: Row) -> None:
        marks = ", ".join(["%s"] * len(row))
        cursor.execute(
            f"INSERT INTO {DATABASE}.{table} ({', '.join(row)}) VALUES ({marks})",
            tuple(row.values()),
        )

    def _message(
        self, table: str, kind: str, row: Row | None, old: Row | None, keys: Sequence[str] | None
    ) -> Mapping[str, Any]:
        assert row is not None
        types = {name: TYPES.get(name, "bigint(20)") for name in row}
        return {
            "database": DATABASE, "table": table, "isDdl": False, "type": kind, "sql": "",
            "pkNames": list(keys or keys_of(table)), "mysqlType": types, "data": [_texts(row)],
            "old": None if old is None else [_texts(old)],
        }  # fmt: skip

    def _send(self, message: Mapping[str, Any]) -> None:
        now_ms = time.time_ns() // 1_000_000
        whole = {
            "id": self.done,
            "es": now_ms // 1000 * 1000,
            "ts": now_ms,
            "sqlType": {},
            **message,
        }
        value = json.dumps(whole, ensure_ascii=False).encode()
        while True:
            try:
                self._producer.produce(self._topic, value, partition=0)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)


def _where(key: Row) -> str:
    return " AND ".join(f"{name} = %s" for name in key)


def _texts(row: Row) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}
