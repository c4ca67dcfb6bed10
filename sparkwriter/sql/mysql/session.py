"""A connection to MySQL or MariaDB."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT

from changes.model.model import TargetName
from databases.base.errors import Cause, DatabaseError, cause_of_mysql, database_error
from databases.base.session_settings import (
    MYSQL_MARK,
    POOLED,
    differing,
    set_mysql,
    show_mysql,
    unlimited_mysql,
    writing,
)
from sparkwriter.sql.base.session import LOCK_WITHIN_S, Loaded
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.base.url import JdbcUrl, tls_of
from sparkwriter.sql.mysql import catalog
from sparkwriter.sql.mysql.checks import grants, sees_triggers, tried
from sparkwriter.sql.mysql.words import MySqlWords, inserts

CONNECT_WITHIN_S = 10

STATEMENT_BYTES = 4 << 20
"""Of an INSERT at most, and never more than three quarters of the server's max_allowed_packet.
Smaller ones cost the server more; larger ones memory."""

_LIMITS = dict.fromkeys(("innodb_lock_wait_timeout", "lock_wait_timeout"), str(LOCK_WITHIN_S))


class MySqlSession:
    """``sparkwriter.sql.base.session.Session``."""

    transactional_ddl = False
    lasting_identity = False

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._mark = uuid4().hex
        query = "SELECT VERSION(), @@max_allowed_packet, @@lower_case_table_names"
        version, packet, folds = self._one(query)
        self.folds_names = bool(folds)
        self.dialect = MySqlWords(mariadb="mariadb" in str(version).lower())
        self._packet = int(packet)

    def set_up(self) -> None:
        """Have the session's settings, and see that it has them. Raises DatabaseError."""
        settings = {**writing("mariadb" if self.dialect.is_mariadb else "mysql"), **_LIMITS}
        self.run(unlimited_mysql())
        statement = set_mysql(settings, dict(self.rows(show_mysql(settings))), self._mark)
        try:
            self.run(statement)
        except DatabaseError as error:
            text = f"{error}: its session's settings: {statement}"
            raise database_error(error.cause, text) from error
        known = dict(self.rows(show_mysql(settings)))
        for name, value in differing(settings, known).items():
            line = f"{name} is {known[name]} in its sessions, and can't be made {value!r}"
            raise database_error(Cause.REFUSED, line)

    def begin(self) -> None:
        """See ``Session``."""
        self.run("BEGIN")
        if self._one(f"SELECT {MYSQL_MARK}") != (self._mark,):
            raise database_error(Cause.AWAY, POOLED)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See ``Session``."""
        with _errors(), self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """See ``Session``."""
        with _errors(), self._connection.cursor() as cursor:
            return int(cursor.execute(sql, values or None))

    def load(self, table: str, columns: Sequence[Loaded]) -> None:
        """INSERTs of many rows: LOAD DATA would make warnings of errors, and needs a right of the
        server's that is off as it comes."""
        names = ", ".join(self.dialect.quote(column.name) for column in columns)
        head = f"INSERT INTO {table} ({names}) VALUES ".encode()
        added = 0
        for statement in inserts(head, columns, min(STATEMENT_BYTES, self._packet * 3 // 4)):
            if len(statement) >= self._packet:
                text = f"a row of {len(statement)} bytes, and max_allowed_packet is {self._packet}"
                raise database_error(Cause.REFUSED, text)
            with _errors():
                added += self._connection.query(statement)
        if added != len(columns[0].texts):
            raise database_error(Cause.REFUSED, f"{added} rows were inserted, not all")

    def commit(self) -> None:
        """See ``Session``."""
        self.run("COMMIT")

    def describe(self, target: TargetName) -> DbTable | None:
        """See ``Session``."""
        name = (target.namespace, target.table)
        table = self.rows(catalog.TABLE, name)
        if not table:
            return None
        others = (catalog.COLUMNS, catalog.UNIQUE, catalog.FOREIGN, catalog.TRIGGERS)
        found = (self.rows(query, name) for query in others)
        return catalog.table_of(table, *found)

    def identity(self, target: TargetName) -> str | None:
        """See ``Session``."""
        return catalog.identity_of(self.rows(catalog.TABLE, target[1:]))

    def is_referenced(self, target: TargetName) -> bool:
        """See ``Session``."""
        return bool(self.rows(catalog.REFERENCED, (target.namespace, target.table)))

    def has_one_unique(self, target: TargetName) -> bool:
        """See ``Session``."""
        found = self.rows(catalog.UNIQUE, (target.namespace, target.table))
        return all(is_primary for _, _, is_primary in found)

    def dependents(self, target: TargetName) -> list[str]:
        """See ``Session``."""
        name = (target.namespace, target.table)
        return [str(what) for (what,) in self.rows(catalog.DEPENDENTS, name)]

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """By trial. Locks are not to be seen without a right of their own."""
        return tried(self, into, aside) if self.has_schema(target.namespace) else []

    def sees_triggers(self, target: TargetName) -> bool:
        """With the right TRIGGER, the user's own or of a role."""
        return sees_triggers(grants(self.rows), target)

    def take_over(self, old: TargetName, new: TargetName) -> Iterator[str]:
        """Rights are the name's here; the comment goes with the stamp."""
        yield from ()

    def left_behind(self, target: TargetName) -> list[str]:
        """See ``Session``."""
        return [what for (what,) in self.rows(catalog.LEFT, (*target[1:],) * 5)]

    def use(self, schema: str) -> None:
        """Temporary tables are in a database, too."""
        self.run(f"USE {self.dialect.quote(schema)}")

    def has_schema(self, name: str) -> bool:
        """See ``Session``."""
        text = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
        return bool(self.rows(text, (name,)))

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """By a lock that the server has by names."""
        if self._one(f"SELECT GET_LOCK({self.dialect.literal(name)}, @@lock_wait_timeout)") != (1,):
            raise database_error(Cause.LATER, f"another connection has the lock {name}")
        try:
            yield
        finally:
            self.rows(f"SELECT RELEASE_LOCK({self.dialect.literal(name)})")

    def remarks(self) -> Iterator[str]:
        """Of durability: marks that a crash takes back would be below what is recorded."""
        (flush,) = self._one("SELECT @@innodb_flush_log_at_trx_commit")
        if flush != 1:
            yield (
                f"innodb_flush_log_at_trx_commit is {flush}: a crash of the machine takes back the "
                "last commits, and the tables are then refused as rolled back; make it 1"
            )

    def cut(self) -> None:
        """Whoever waits for an answer finds the connection closed."""
        try:
            with socket.socket(fileno=os.dup(self._connection._sock.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            return  # it is gone already, which is what is wanted

    def close(self) -> None:
        """See ``Session``."""
        self._connection._force_close()

    def _one(self, sql: str) -> tuple[Any, ...]:
        (row,) = self.rows(sql)
        return row


def connect_mysql(url: JdbcUrl, user: str | None, password: str | None) -> MySqlSession:
    """A session of the first host that can be written. Raises DatabaseError."""
    failed: list[str] = []
    for host, port in url.hosts:
        try:
            session = _connect(url, host, port, user, password)
            if len(url.hosts) == 1 or session.rows("SELECT @@global.read_only") == [(0,)]:
                return session
            session.close()
            failed.append(f"{host}:{port} is read-only")
        except DatabaseError as error:
            failed.append(f"{host}:{port}: {error}")
    raise database_error(Cause.AWAY, "; ".join(failed))


def _connect(
    url: JdbcUrl, host: str, port: int, user: str | None, password: str | None
) -> MySqlSession:
    with _errors():
        try:
            connection = _open(url, host, port, user, password, tls_of(url))
        except pymysql.err.OperationalError as error:
            if url.tls != "prefer" or "SSL" not in str(error):
                raise
            connection = _open(url, host, port, user, password, None)
    session = MySqlSession(connection)
    try:
        session.set_up()
    except BaseException:
        session.close()
        raise
    return session


def _open(
    url: JdbcUrl,
    host: str,
    port: int,
    user: str | None,
    password: str | None,
    tls: ssl.SSLContext | None,
) -> Connection[Any]:
    return pymysql.connect(
        host=host,
        port=port,
        user=user,
        password=password or "",
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=CONNECT_WITHIN_S,
        # An UPDATE that changes nothing has found its row all the same.
        client_flag=CLIENT.FOUND_ROWS,
        ssl=tls,
        ssl_disabled=tls is None,
        local_infile=False,
        program_name="binlogd",
    )


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except pymysql.err.Error as error:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else None
        text = str(error.args[1]) if number is not None and len(error.args) > 1 else str(error)
        text = text or "the connection is closed"
        said = _without_values(number, text)
        raise database_error(cause_of_mysql(number, text), said) from error


def _without_values(number: int | None, text: str) -> str:
    """Values are nobody's business in a log."""
    if number == 1062:
        return f"duplicate entry for key {text.rpartition(' for key ')[2]}"
    if number == 1366:
        return text.split(": ")[0] + f" for column {text.rpartition(' for column ')[2]}"
    return text
