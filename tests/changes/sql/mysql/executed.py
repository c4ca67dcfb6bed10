"""Runs statements at a real server and compares what it did with what the parser says it does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from changes.model.model import TableName
from changes.sql.mysql.ddl import read_ddl
from changes.sql.mysql.types import from_mysql
from tests.changes.sql.mysql.followed import Known, Shown, State, difference, followed
from tests.sparkwriter.databases import running

USERS = TableName("shop", "users")
TABLES = {
    "shop.users": (
        "(id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, note TEXT, qty INT DEFAULT 3, "
        "price DECIMAL(10,2), made DATETIME, kind ENUM('a','b'), data BLOB, KEY by_name (name))",
        "(1, 'x', 'y', 5, 1.5, '2024-01-02', 'a', 'z')",
    ),
    "shop.orders": ("(id INT PRIMARY KEY, user INT, KEY user (user))", "(1, 1)"),
    "shop.parts": (
        "(id INT PRIMARY KEY, a INT) PARTITION BY RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "(1, 1)",
    ),
    "archive.users": ("(id INT PRIMARY KEY, a INT)", "(1, 1)"),
    "shop.bills": (
        "(id INT PRIMARY KEY, user INT, KEY user (user), "
        "CONSTRAINT bought FOREIGN KEY (user) REFERENCES archive.users (id))",
        "(1, 1)",
    ),
}
"""How each is made, and its one row."""

COLUMNS = """
SELECT table_schema, table_name, column_name, column_type, data_type
FROM information_schema.columns WHERE table_schema IN ('shop', 'archive')
ORDER BY table_schema, table_name, ordinal_position
"""
_OPAQUE = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection", "geomcollection", "vector",
)  # fmt: skip
"""Types without a text."""
_BYTES = ("bit", "binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob")


class Database:
    """A server's two databases, made again before each statement."""

    def __init__(self, connection: Any) -> None:
        self._cursor = connection.cursor()
        self._touched: set[str] | None = None
        self._cursor.execute("SELECT VERSION()")
        self.is_mariadb = "MariaDB" in self._cursor.fetchone()[0]
        self._cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 0, sync_binlog = 0")

    def _log_end(self) -> tuple[str, int]:
        what = "MASTER" if self.is_mariadb else "BINARY LOG"
        self._cursor.execute(f"SHOW {what} STATUS")
        file, place, *_ = self._cursor.fetchone()
        return file, place

    def make(self) -> State:
        """Make the tables, or those again that the last statement may have changed."""
        self._cursor.execute("SET sql_mode = DEFAULT, foreign_key_checks = 0")
        if self._touched is None:
            for name in ("shop", "archive", "other"):
                self._cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                self._cursor.execute(f"CREATE DATABASE {name} DEFAULT CHARSET utf8mb4")
            self._touched = set(TABLES)
        self._cursor.execute("USE shop")
        for name in self._touched:
            made, row = TABLES[name]
            self._cursor.execute(f"DROP TABLE IF EXISTS {name}")
            self._cursor.execute(f"CREATE TABLE {name} {made}")
            self._cursor.execute(f"INSERT INTO {name} VALUES {row}")
        self._touched = set()
        return self.look()

    def _touch(self, sql: str) -> None:
        """Note what a statement may have changed: all where it is about more than tables."""
        words = set(re.findall(r"[a-z]+", sql.lower()))
        plain = words & {"alter", "truncate"} and not words & {"database", "schema", "rename"}
        self._touched = {name for name in TABLES if name.split(".")[1] in words} if plain else None

    def run(self, sql: str, mode: str | None = None) -> str | None:
        """Run one; its text as the server logs it, None where it refuses it.

        Servers take away the sign of a ``/*!99999 … */`` that they do not run.
        """
        if mode is not None:
            self._cursor.execute(f"SET sql_mode = '{mode}'")
        file, place = self._log_end()
        try:
            self._cursor.execute(sql)
        except pymysql.Error:
            return None
        self._touch(sql)
        self._cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {place}")
        infos = [row[5] for row in self._cursor.fetchall() if row[2] == "Query"]
        self._cursor.execute("DROP TEMPORARY TABLE IF EXISTS users")
        if max(sql) > "\uffff":
            return sql  # SHOW has no text for it
        texts = [info.removeprefix("use `shop`; ") for info in infos]
        return "; ".join(texts)

    def look(self) -> State:
        """What the server's catalogue and rows show."""
        self._cursor.execute(COLUMNS)
        found: State = {}
        listed: dict[TableName, list[tuple[str, str, str]]] = {}
        for schema, table, *column in self._cursor.fetchall():
            listed.setdefault(TableName(schema, table), []).append(column)
        for name, columns in listed.items():
            terms = [_term(column, data_type) for column, _, data_type in columns]
            where = ".".join(map(_quoted, name))
            self._cursor.execute(f"SELECT {', '.join(terms)} FROM {where}")
            rows = self._cursor.fetchall()
            values = rows[0] if rows else [None] * len(columns)
            shown = {
                column: Shown(from_mysql(type_).arrow, value)
                for (column, type_, _), value in zip(columns, values, strict=True)
            }
            found[name] = Known(shown, len(rows))
        return found


def _term(column: str, data_type: str) -> str:
    name = _quoted(column)
    if data_type in _OPAQUE:
        return f"IF({name} IS NULL, NULL, 'a value')"
    return f"HEX({name})" if data_type in _BYTES else f"CAST({name} AS CHAR)"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def database(kind: str) -> Iterator[Database]:
    """A server of the kind and a connection to it."""
    with running(kind) as server:
        port = server.program.port
        with pymysql.connect(
            host="127.0.0.1", port=port, user="root", charset="utf8mb4", autocommit=True
        ) as connection:
            yield Database(connection)


def verdict(server: Database, sql: str, mode: str | None = None) -> str:
    """``invalid`` where the server refuses it, ``told`` where the parser does, ``equal``; or how
    the two differ. ``mode``: the session's ``sql_mode``, None for the server's own."""
    before = server.make()
    logged = server.run(sql, mode)
    if logged is None:
        return "invalid"
    found = read_ddl(logged, USERS, session=True) if logged else ()
    if any(ddl.refused or ddl.unread for ddl in found):
        return "told"
    return difference(followed(before, found), server.look(), before) or "equal"
