"""A connection to PostgreSQL."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.string import TextLoader

from changes.model.model import TargetName
from databases.base.errors import Cause, DatabaseError, cause_of_postgresql, database_error
from databases.base.session_settings import POOLED, mark_of_postgresql, set_postgresql, writing
from sparkwriter.sql.base.session import LOCK_WITHIN_S, Loaded
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.base.url import JdbcUrl
from sparkwriter.sql.postgres.catalog import DEPENDENTS, HELD, REFERENCED, RIGHTS, TABLE, table_of
from sparkwriter.sql.postgres.taken_over import left_behind, take_over
from sparkwriter.sql.postgres.words import PostgresWords, copy_text

CONNECT_WITHIN_S = 10

PIECE_BYTES = 1 << 20

_SETTINGS = {**writing("postgresql"), "lock_timeout": f"{LOCK_WITHIN_S}s"}

_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""Marks that a crash takes back would be below what is recorded elsewhere."""

_NOT_FOUND = ("42P01", "42883", "42704")
"""No such table, function, type."""

_FUNCTION = re.compile(r"(?:[A-Za-z/0-9]+|SQL) function \"?([^\n]+?)\"?(?: line| statement|\n|$)")
"""Begins the context of an error inside one: ``PL/pgSQL function shop.f() line 1 at …``."""


class PostgresSession:
    """``sparkwriter.sql.base.session.Session``."""

    dialect = PostgresWords()
    transactional_ddl = True
    lasting_identity = True
    folds_names = False

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._mark = uuid4().hex

    def set_up(self) -> None:
        """Have the session's settings. Raises DatabaseError."""
        try:
            self.run(f"{set_postgresql(_SETTINGS, self._mark)}; {_DURABLE}")
        except DatabaseError as error:
            text = f"a setting of the session can't be made: {error}"
            raise database_error(error.cause, text) from error

    def begin(self) -> None:
        """See ``Session``. One message: the session's mark costs no way of its own."""
        with _errors():
            cursor = self._connection.execute(f"BEGIN; {mark_of_postgresql()}".encode())
            cursor.nextset()
            mark = cursor.fetchall()
        if mark != [(self._mark,)]:
            raise database_error(Cause.AWAY, POOLED)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See ``Session``."""
        with _errors():
            return self._connection.execute(sql.encode(), values or None).fetchall()

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """See ``Session``."""
        with _errors():
            return self._connection.execute(sql.encode(), values or None).rowcount

    def load(self, table: str, columns: Sequence[Loaded]) -> None:
        """COPY."""
        names = ", ".join(self.dialect.quote(column.name) for column in columns)
        data = copy_text(columns)
        with _errors(), self._connection.cursor() as cursor:
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
                for at in range(0, len(data), PIECE_BYTES):
                    copy.write(data[at : at + PIECE_BYTES])
            if cursor.rowcount != len(columns[0].texts):
                raise database_error(Cause.REFUSED, f"COPY took {cursor.rowcount} rows, not all")

    def commit(self) -> None:
        """The server answers COMMIT with ROLLBACK where something had failed before."""
        with _errors():
            done = self._connection.execute("COMMIT").statusmessage
        if done != "COMMIT":
            raise database_error(Cause.REFUSED, f"the server answered COMMIT with {done}")

    def describe(self, target: TargetName) -> DbTable | None:
        """See ``Session``."""
        found = self.rows(TABLE, (target.namespace, target.table))
        return table_of(found[0] if found else None)

    def identity(self, target: TargetName) -> str | None:
        """See ``Session``."""
        found = self.describe(target)
        return None if found is None else found.identity

    def is_referenced(self, target: TargetName) -> bool:
        """See ``Session``."""
        return bool(self.rows(REFERENCED, (target.namespace, target.table)))

    def has_one_unique(self, target: TargetName) -> bool:
        """Nobody asks."""
        return False

    def dependents(self, target: TargetName) -> list[str]:
        """See ``Session``."""
        return [what for (what,) in self.rows(DEPENDENTS, (target.namespace, target.table))]

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """As the catalog says; nothing is locked for it."""
        name = (target.namespace, target.table)
        ((_, may_make, is_ours, user, owner, may_own),) = self.rows(RIGHTS, name)
        lines = []
        if not may_make:
            what = f"GRANT CREATE ON SCHEMA {self.dialect.quote(target.namespace)} TO {user}"
            lines.append(f"{user} may make no table in {target.namespace}: {what}")
        if not is_ours:
            lines.append(
                f"the table is {owner}'s, and {user} may not rename it: make {user} its owner, or a"
                f" member of {owner}"
            )
        if not may_own:
            schema = self.dialect.quote(target.namespace)
            lines.append(
                f"the table is {owner}'s, who may be given no other one in {target.namespace}: "
                f"GRANT CREATE ON SCHEMA {schema} TO {owner}"
            )
        for pid, whose, seconds in self.rows(HELD, name):
            lines.append(
                f"a transaction of {whose} has had a lock on it for {seconds} s (process {pid}): "
                "wait until it ends, or end it"
            )
        return lines

    def sees_triggers(self, target: TargetName) -> bool:
        """Its catalog shows them to everybody."""
        return True

    def take_over(self, old: TargetName, new: TargetName) -> Iterator[str]:
        """See ``Session``."""
        return take_over(self, old, new)

    def left_behind(self, target: TargetName) -> list[str]:
        """See ``Session``."""
        return left_behind(self, target)

    def use(self, schema: str) -> None:
        """Temporary tables are in a schema of their own."""

    def has_schema(self, name: str) -> bool:
        """See ``Session``."""
        return bool(self.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)))

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """Its steps are transactions, which need none."""
        yield

    def remarks(self) -> Iterator[str]:
        """fsync is the server's."""
        ((fsync,),) = self.rows("SHOW fsync")
        if fsync == "off":
            yield "fsync is off: after a crash of the machine the database may be damaged"

    def cut(self) -> None:
        """Whoever waits for an answer finds the connection closed."""
        try:
            with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # it is gone already, which is what is wanted

    def close(self) -> None:
        """See ``Session``."""
        self._connection.close()


def connect_postgres(url: JdbcUrl, user: str | None, password: str | None) -> PostgresSession:
    """A session of the first host that can be written. Raises DatabaseError."""
    failed: list[str] = []
    for host, port in url.hosts:
        try:
            session = _connect(url, host, port, user, password)
            if len(url.hosts) == 1:
                return session
            ((read_only,),) = session.rows("SHOW transaction_read_only")
            if read_only == "off":
                return session
            session.close()
            failed.append(f"{host}:{port} is read-only")
        except DatabaseError as error:
            failed.append(f"{host}:{port}: {error}")
    raise database_error(Cause.AWAY, "; ".join(failed))


def _connect(
    url: JdbcUrl, host: str, port: int, user: str | None, password: str | None
) -> PostgresSession:
    with _errors():
        connection = psycopg.connect(
            host=host,
            port=port,
            dbname=url.database,
            user=user,
            password=password,
            sslmode=url.tls,
            sslrootcert=url.certificates,
            connect_timeout=CONNECT_WITHIN_S,
            application_name="binlogd",
            client_encoding="UTF8",
            autocommit=True,
            prepare_threshold=None,
        )
    # As the text that it is: read as a value, and written again, it would be another.
    connection.adapters.register_loader("json", TextLoader)
    session = PostgresSession(connection)
    try:
        session.set_up()
    except BaseException:
        session.close()
        raise
    return session


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        # Values that the client can't send are errors of other classes.
        of_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        cause = cause_of_postgresql(error.sqlstate, of_connection)
        raise database_error(cause, _text(error)) from error


def _text(error: psycopg.Error) -> str:
    """Without the values that the server tells of: they are nobody's business in a log."""
    said = error.diag
    text = said.message_primary or str(error)
    for line in (said.context or "").splitlines():
        if line.startswith("COPY "):  # of JSON the document's own line stands before it
            text += f" ({line.split(': ')[0]})"
            break
    if error.sqlstate in _NOT_FOUND and (inside := _FUNCTION.match(said.context or "")):
        text += (
            f", which the function {inside[1]} of a trigger names: sessions of binlogd have"
            " search_path = pg_catalog, so name its schema there, or"
            f" ALTER FUNCTION {inside[1]} SET search_path = …"
        )
    return text
