"""The demo's database: MariaDB, MySQL or PostgreSQL, with rows that nothing follows yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor

from actors.runtime.programs import HOST, ProgramError
from demo.servers.mariadb import MariaDb
from demo.servers.mysql import MySql
from demo.servers.postgres import Postgres

SOURCES = ("mariadb", "postgres", "mysql")

DATABASE = "shop"
"""In PostgreSQL a schema, of the database ``postgres``."""

READER, PASSWORD = "reader", "only-for-the-demo-of-replicate"

KEYS: dict[str, tuple[str, ...]] = {
    "customers": ("id",), "codes": ("code",), "orders": ("id",), "parts": ("id", "line"),
    "events": ("id",),
}  # fmt: skip
"""Numbers, a text, two columns; from the smallest table to the largest."""

_PARTS = {"customers": 0.005, "codes": 0.02, "orders": 0.2, "parts": 0.2}
"""Of all rows; the last table has the others."""

SCHEMA = {
    "id": pa.int64(), "code": pa.string(), "line": pa.int32(), "name": pa.string(),
    "price": pa.decimal128(10, 2), "qty": pa.int32(), "made": pa.timestamp("us"),
    "note": pa.string(), "ratio": pa.float64(), "big": pa.decimal128(20, 0),
}  # fmt: skip
_COLUMNS = ("name", "price", "qty", "made", "note", "ratio", "big")
_AT_ONCE = 20_000


def columns_of(table: str) -> tuple[str, ...]:
    """All, in order."""
    return (*KEYS[table], *_COLUMNS)


def sizes(rows: int) -> dict[str, int]:
    """Rows of each table, of so many in all."""
    found = {table: max(1, round(rows * part)) for table, part in _PARTS.items()}
    return found | {"events": rows - sum(found.values())}


class Source:
    """One server. One thread's, but for ``connect``."""

    def __init__(self, kind: str, folder: Path) -> None:
        """Nothing runs yet. Raises ProgramError where this machine has no such server."""
        self.kind = kind
        # What is acknowledged outlasts a kill -9 of the server: so must its log be.
        durable = ("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")
        if kind == "postgres":
            self.server: Any = Postgres(folder / "server")
        elif kind == "mariadb":
            self.server = MariaDb(folder / "server", options=durable)
        else:
            self.server = MySql(folder / "server")
        self._is_mysql = kind != "postgres"

    @property
    def url(self) -> str:
        """What ``binlogd replicate`` is given."""
        if self._is_mysql:
            return f"{self.kind}://{READER}@{HOST}:{self.server.port}/{DATABASE}"
        return f"postgresql://{READER}@{HOST}:{self.server.port}/postgres"

    def start(self) -> None:
        """Start it, with the data there are. Raises ProgramError."""
        self.server.start()

    def kill(self) -> None:
        """kill -9; its data stay."""
        self.server.program.kill()

    def connect(self) -> Any:
        """A connection of its owner, by Python's interface for databases. Raises what that does."""
        if not self._is_mysql:
            return psycopg.connect(
                host=HOST, port=self.server.port, user="postgres", dbname="postgres",
                options=f"-c search_path={DATABASE} -c timezone=UTC", connect_timeout=10,
            )  # fmt: skip
        return pymysql.connect(
            unix_socket=str(self.server._socket), user="root", database=DATABASE,
            charset="utf8mb4", init_command="SET time_zone = '+00:00'",
        )  # fmt: skip

    def run(self, statements: Sequence[str]) -> None:
        """As its owner. Raises ProgramError."""
        args = (statements,) if self._is_mysql else ("postgres", statements)
        if error := self.server.run(*args):
            raise ProgramError(f"{self.kind}: {error}")

    def create(self, rows: int) -> None:
        """The tables with their rows, and a user who may do nothing."""
        user = (
            f"CREATE USER {READER} IDENTIFIED BY '{PASSWORD}'"
            if self._is_mysql
            else f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}'"
        )
        self.run([f"CREATE SCHEMA {DATABASE}", "CREATE SCHEMA beside", user])
        numbers = "beside.numbers"
        self.run([f"CREATE TABLE {numbers} (n bigint PRIMARY KEY)", *_numbers(numbers, rows)])
        for table, count in sizes(rows).items():
            self.run(list(self._filled(table, count, numbers)))
        self.run([f"CREATE TABLE {DATABASE}.marks (id bigint PRIMARY KEY)"])
        self.run([f"ANALYZE{' TABLE' * self._is_mysql} {DATABASE}.{t}" for t in KEYS])

    def _filled(self, table: str, count: int, numbers: str) -> Iterator[str]:
        types = {
            "id": "bigint", "code": "varchar(20)", "line": "int", "name": "varchar(60)",
            "price": "decimal(10,2)", "qty": "int", "note": "varchar(80)",
            "made": "datetime(6)" if self._is_mysql else "timestamp(6)",
            "ratio": "double" if self._is_mysql else "double precision",
            "big": "bigint unsigned" if self._is_mysql else "decimal(20)",
        }  # fmt: skip
        at = "timestamp '2024-01-01 00:00:00'"
        values = {
            "id": "n", "code": "concat('Code ', n)", "line": "n % 7",
            "name": "CASE WHEN n % 17 = 0 THEN NULL ELSE concat('name ', n) END",
            "price": "n % 99999999 / 7.0", "qty": "n % 1000", "ratio": "n * 0.1",
            "big": "18446744073709551615 - n",
            "note": "CASE WHEN n % 19 = 0 THEN '' ELSE concat('é ', n * 31) END",
            "made": f"{at} + INTERVAL n SECOND" if self._is_mysql
            else f"{at} + n * interval '1.000001 second'",
        }  # fmt: skip
        names = columns_of(table)
        columns = ", ".join(f"{name} {types[name]}" for name in names)
        shown = ", ".join(values[name] for name in names)
        keys = ", ".join(KEYS[table])
        yield f"CREATE TABLE {DATABASE}.{table} ({columns}, PRIMARY KEY ({keys}))"
        yield f"INSERT INTO {DATABASE}.{table} SELECT {shown} FROM {numbers} WHERE n <= {count}"

    def read(self, table: str) -> pa.Table:
        """A table whole, in its columns' order, sorted by its key."""
        names = columns_of(table)
        schema = pa.schema([(name, SCHEMA[name]) for name in names])
        connection = self.connect()
        try:
            # Rows come as the server sends them: a client that takes all at once holds them twice.
            cursor = connection.cursor(SSCursor) if self._is_mysql else connection.cursor("all_")
            cursor.execute(f"SELECT {', '.join(names)} FROM {DATABASE}.{table}")
            batches = []
            while some := cursor.fetchmany(_AT_ONCE):
                columns = zip(*some, strict=True)
                arrays = [
                    pa.array(values, field.type)
                    for values, field in zip(columns, schema, strict=True)
                ]
                batches.append(pa.record_batch(arrays, schema=schema))
        finally:
            connection.close()
        return pa.Table.from_batches(batches, schema).sort_by(sorted_by(table))


def sorted_by(table: str) -> list[tuple[str, str]]:
    """The order by which two tables are compared."""
    return [(name, "ascending") for name in KEYS[table]]


def _numbers(table: str, rows: int) -> Iterator[str]:
    """From 1 to so many, by doubling: no server's own way to count."""
    yield f"INSERT INTO {table} VALUES (1)"
    there = 1
    while there < rows:
        more = min(there, rows - there)
        yield f"INSERT INTO {table} SELECT n + {there} FROM {table} WHERE n <= {more}"
        there += more
