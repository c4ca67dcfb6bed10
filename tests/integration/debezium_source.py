"""A table of a real database that changes all the time, with Debezium reading its log."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from tests.databases.base.servers import PASSWORD, Server
from tests.live.connect import Connect
from tests.live.program import HOST

COLUMNS = ("id", "name", "qty", "price", "note")
_MYSQL = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.user": "live", "database.password": "live", "database.server.id": "4712",
    "include.schema.changes": "true", "connect.keep.alive.interval.ms": "1000",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "schema.history.internal.store.only.captured.databases.ddl": "true",
}  # fmt: skip
_MARIADB = {
    **_MYSQL, "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    "database.server.id": "4713",
}  # fmt: skip
_POSTGRESQL = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.user": "postgres", "database.dbname": "postgres", "plugin.name": "pgoutput",
    "slot.retry.delay.ms": "1000", "publication.autocreate.mode": "filtered",
}  # fmt: skip
_FILLED = {
    "mysql": "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows})"
    " SELECT n, CONCAT('n', n), n * 7, n / 3, IF(n % 5, CONCAT('é ', n), NULL) FROM s",
    "mariadb": "SELECT seq, CONCAT('n', seq), seq * 7, seq / 3,"
    " IF(seq % 5, CONCAT('é ', seq), NULL) FROM seq_1_to_{rows}",
    "postgresql": "SELECT n, 'n' || n, n * 7, n / 3.0, CASE WHEN n % 5 > 0 THEN 'é ' || n END"
    " FROM generate_series(1, {rows}) AS s (n)",
}


class Connector:
    """What ``Connect.add`` asks of a source."""

    def __init__(self, server: Server, schema: str) -> None:
        self._server, self._schema = server, schema

    def connector(self, seed: int, folder: Path) -> Mapping[str, str]:
        where = {"database.hostname": HOST, "database.port": str(self._server.port)}
        more = {"snapshot.mode": "no_data"}  # rows that are there come by the load alone
        if self._server.kind != "postgresql":
            of_kind = _MARIADB if self._server.kind == "mariadb" else _MYSQL
            file = {"schema.history.internal.file.filename": str(folder / "history")}
            return {**of_kind, **where, **more, **file, "database.include.list": self._schema}
        names = {"slot.name": self._schema, "publication.name": self._schema}
        return {**_POSTGRESQL, **where, **more, **names, "schema.include.list": self._schema}


@contextmanager
def debezium(server: Server, schema: str, topic: str, folder: Path, broker: str) -> Iterator[None]:
    """Kafka Connect, with a connector that follows the server's log; it does so on entry."""
    connect = Connect(folder, broker)
    connect.start()
    try:
        connect.add("shop", topic, 0, Connector(server, schema), folder)  # type: ignore[arg-type]
        connect.program.await_ready(lambda: server.readers() > 0, 120)
        yield
    finally:
        connect.kill()


class Shop(threading.Thread):
    """``orders`` with its first rows, and a session that changes them until it is stopped."""

    def __init__(self, server: Server, schema: str, rows: int, per_s: float) -> None:
        super().__init__(daemon=True)
        self._rows, self._pause_s, self.per_s = rows, 1 / per_s, per_s
        self.table = f"{schema}.orders"
        word = "SCHEMA" if server.kind == "postgresql" else "DATABASE"
        made = "id INT PRIMARY KEY, name VARCHAR(255), qty BIGINT, price DECIMAL(12, 4), note TEXT"
        deep = [f"SET SESSION cte_max_recursion_depth = {rows}"] * (server.kind == "mysql")
        filled = _FILLED[server.kind].format(rows=rows)
        server.run(
            [
                f"CREATE {word} {schema}",
                *deep,
                *[f"USE {schema}"] * (server.kind == "mariadb"),
                f"CREATE TABLE {self.table} ({made})",
                f"INSERT INTO {self.table} ({', '.join(COLUMNS)}) {filled}",
            ]
        )
        if server.kind == "postgresql":
            server.run([f"GRANT USAGE ON SCHEMA {schema} TO jobs"])
        self._connection = _connected(server)
        self._rng = random.Random(4711)
        self._ended, self._turn = threading.Event(), threading.Lock()
        self.changes = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ended.wait(self._pause_s):
                self.execute(*self._change())
                self.changes += 1
        except Exception as error:  # raised by whoever stops it
            self.failure = error

    def stop(self) -> int:
        """Ends; how many changes there were. The last one has the id -1."""
        self._ended.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        self.execute(f"INSERT INTO {self.table} (id, name) VALUES (-1, 'the last one')", ())
        return self.changes

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """A statement between two changes."""
        with self._turn, self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

    def _change(self) -> tuple[str, tuple[Any, ...]]:
        key, fate = self._rng.randrange(1, self._rows * 11 // 10), self._rng.random()
        new, qty = f"w{self.changes}", self._rng.randrange(10**9)
        if fate < 0.15:
            return f"DELETE FROM {self.table} WHERE id = %s", (key,)
        if fate < 0.25:
            moved = self._rows * 2 + self.changes
            return f"UPDATE {self.table} SET id = %s WHERE id = %s", (moved, key)
        if fate < 0.5:
            there = f"WHERE NOT EXISTS (SELECT 1 FROM {self.table} WHERE id = {key})"
            row = f"SELECT {key}, '{new}', {qty} {there}"
            return f"INSERT INTO {self.table} (id, name, qty) {row}", ()
        return f"UPDATE {self.table} SET name = %s, qty = %s WHERE id = %s", (new, qty, key)

    def rows(self) -> list[tuple[Any, ...]]:
        """All, by id."""
        return self.execute(f"SELECT * FROM {self.table} ORDER BY id")


def _connected(server: Server) -> Any:
    if server.kind != "postgresql":
        return pymysql.connect(
            host=HOST, port=server.port, user="live", password="live", autocommit=True
        )
    address = {"host": HOST, "port": server.port, "user": "postgres", "dbname": "postgres"}
    return psycopg.connect(**address, autocommit=True)  # type: ignore[arg-type]


def section(server: Server, **more: str) -> dict[str, str]:
    """``[database.shop]`` of a server."""
    return {"url": server.section().url, "user": "jobs", "password": PASSWORD, **more}
