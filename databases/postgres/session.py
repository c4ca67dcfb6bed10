"""A connection to PostgreSQL."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.string import TextLoader

from databases.base.errors import Cause, DatabaseError, cause_of_postgresql, database_error
from databases.base.session import CONNECT_WITHIN_S, DatabaseSession, Purpose
from databases.base.session_settings import mark_of_postgresql, set_postgresql
from databases.base.url import Login, Tls

SSL_MODES: dict[Tls, str] = {
    "off": "disable", "preferred": "prefer", "required": "require", "ca": "verify-ca",
    "verified": "verify-full",
}  # fmt: skip

_DENIED = "42501"
_NOT_FOUND = ("42P01", "42883", "42704")
"""No such table, function, type."""

_FUNCTION = re.compile(r"(?:[A-Za-z/0-9]+|SQL) function \"?([^\n]+?)\"?(?: line| statement|\n|$)")
"""Begins the context of an error inside one: ``PL/pgSQL function shop.f() line 1 at …``."""

_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""Marks that a crash takes back would be below what is recorded elsewhere."""


class PostgreSqlSession(DatabaseSession):
    """See ``DatabaseSession``."""

    def __init__(self, login: Login, purpose: Purpose) -> None:
        """Connect. Raises DatabaseError."""
        self.purpose, self.mark = purpose, uuid4().hex
        with self._errors():
            self._connection = _connected(login, purpose)
        try:
            settings = purpose.settings("postgresql")
            self.run(f"{set_postgresql(settings, self.mark)}; {_DURABLE}")
        except DatabaseError as error:
            self.close()  # no statement may meet a session that is half set up
            text = f"a setting of the session can't be made: {error}"
            raise database_error(error.cause, text) from error

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(sql.encode(), values or None).fetchall()

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        with self._errors():
            return self._connection.execute(sql.encode(), values or None).rowcount

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Both in one message, which is one transaction: no pooler can come between."""
        with self._errors():
            text = f"{mark_of_postgresql()}; {sql}".encode()
            cursor = self._connection.execute(text, values or None)
            self.check_mark(cursor.fetchall())
            cursor.nextset()
            return cursor.fetchall() if cursor.description else []

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        with self._errors(), self._connection.transaction(), self._connection.cursor() as cursor:
            self.check_mark(self._connection.execute(mark_of_postgresql()).fetchall())
            coming = cursor.stream(sql.encode())
            while some := list(islice(coming, rows)):
                yield some

    def answer(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        # A cursor of the server's: it takes one statement that only selects, and knows its columns
        # also where there is no row.
        with self._errors(), self._connection.transaction():
            self.check_mark(self._connection.execute(mark_of_postgresql()).fetchall())
            with psycopg.ServerCursor(self._connection, "binlogd_query") as cursor:
                cursor.execute(sql.encode())
                yield [tuple(column.name for column in cursor.description or ())]
                while some := cursor.fetchmany(rows):
                    yield some

    def begin(self) -> None:
        with self._errors():
            cursor = self._connection.execute(f"BEGIN; {mark_of_postgresql()}".encode())
            cursor.nextset()
            self.check_mark(cursor.fetchall())

    def commit(self) -> None:
        """The server answers COMMIT with ROLLBACK where something had failed before."""
        with self._errors():
            done = self._connection.execute("COMMIT").statusmessage
        if done != "COMMIT":
            raise self.error(Cause.REFUSED, f"the server answered COMMIT with {done}")

    def is_writable(self) -> bool:
        return self.rows("SHOW transaction_read_only") == [("off",)]

    @property
    def is_open(self) -> bool:
        return not self._connection.closed

    def close(self) -> None:
        self._connection.close()

    def wire(self) -> int:
        try:
            return self._connection.pgconn.socket
        except psycopg.Error as error:
            raise OSError("the connection has ended") from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The driver's errors as ours: one line."""
        try:
            yield
        except psycopg.Error as error:
            of_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            text = _text(error)
            if error.sqlstate == _DENIED and self.purpose.help is not None:
                text += f"; {self.purpose.help(text)}"
            raise self.error(cause_of_postgresql(error.sqlstate, of_connection), text) from error


def _connected(login: Login, purpose: Purpose) -> psycopg.Connection[Any]:
    silence_s = purpose.silence_s
    connection = psycopg.connect(
        # Values are put into the text: a message may have several statements.
        cursor_factory=psycopg.ClientCursor,
        host=login.host, port=login.port, dbname=login.database,
        user=login.user, password=login.password or None,
        sslmode=SSL_MODES[login.tls], sslrootcert=_authorities(login),
        connect_timeout=CONNECT_WITHIN_S, application_name="binlogd", client_encoding="UTF8",
        tcp_user_timeout=None if silence_s is None else silence_s * 1000,
        autocommit=True, prepare_threshold=None,
    )  # fmt: skip
    # As the text that it is: read as a value, and written again, it would be another.
    connection.adapters.register_loader("json", TextLoader)
    return connection


def try_replication(login: Login) -> None:
    """Connect as a reader of the log does, and leave again. Raises DatabaseError."""
    with _replication(login):
        pass


def timeline_history(login: Login, timeline: int) -> str:
    """The promotions on the way to this timeline, as the server's own file has them: lines of a
    timeline, where in the log it ended, and why. Raises DatabaseError."""
    with _replication(login) as connection:
        ((_, content),) = connection.execute(f"TIMELINE_HISTORY {int(timeline)}".encode())
    return content if isinstance(content, str) else bytes(content).decode()


@contextmanager
def _replication(login: Login) -> Iterator[psycopg.Connection[Any]]:
    """A connection of a reader of the log. Raises DatabaseError."""
    try:
        with psycopg.connect(
            host=login.host, port=login.port, dbname=login.database,
            user=login.user, password=login.password or None,
            sslmode=SSL_MODES[login.tls], sslrootcert=_authorities(login),
            connect_timeout=CONNECT_WITHIN_S, application_name="binlogd", autocommit=True,
            replication="database", cursor_factory=psycopg.ClientCursor,
        ) as connection:  # fmt: skip
            yield connection
    except psycopg.Error as error:
        cause = cause_of_postgresql(error.sqlstate, of_connection=True)
        raise database_error(cause, _text(error)) from error


def _authorities(login: Login) -> str | None:
    """The file of the certificates to trust; None: libpq's own. Without one those of the machine,
    as Python has them."""
    if login.tls_ca or login.tls not in ("ca", "verified") or has_own_authorities():
        return login.tls_ca
    return ssl.get_default_verify_paths().cafile or "system"


def has_own_authorities() -> bool:
    """Whether libpq, and Spark's driver, find certificates to trust in the home folder."""
    return "PGSSLROOTCERT" in os.environ or os.path.isfile(
        os.path.expanduser("~/.postgresql/root.crt")
    )


def _text(error: psycopg.Error) -> str:
    """Without values, which do not belong in a log."""
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
