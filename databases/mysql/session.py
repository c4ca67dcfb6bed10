"""A connection to MySQL or MariaDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, ER
from pymysql.cursors import SSCursor

from databases.base.errors import Cause, DatabaseError, cause_of_mysql, database_error
from databases.base.session import CONNECT_WITHIN_S, DatabaseSession, Purpose
from databases.base.session_settings import (
    MYSQL_MARK,
    differing,
    set_mysql,
    show_mysql,
    unlimited_mysql,
)
from databases.base.url import Login

_DENIED = (
    ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
)  # fmt: skip


class MySqlSession(DatabaseSession):
    """See ``DatabaseSession``."""

    def __init__(self, login: Login, purpose: Purpose) -> None:
        """Connect. Raises DatabaseError."""
        self.purpose, self.mark = purpose, uuid4().hex
        with self._errors():
            self._connection = _connected(login, purpose)
        self.is_mariadb = "mariadb" in str(self._connection.get_server_info()).lower()
        try:
            self._set_up()
            query = "SELECT @@max_allowed_packet, @@lower_case_table_names"
            ((packet, folds),) = self.rows(query)
        except BaseException:
            self.close()  # no statement may meet a session that is half set up
            raise
        self.packet, self.folds_names = int(packet), bool(folds)

    def _set_up(self) -> None:
        """Have the session's settings, and see that it has them."""
        settings = self.purpose.settings("mariadb" if self.is_mariadb else "mysql")
        self.run(unlimited_mysql())
        self.known = {str(name): str(value) for name, value in self.rows(show_mysql(settings))}
        statement = set_mysql(settings, self.known, self.mark)
        try:
            self.run(statement)
        except DatabaseError as error:
            text = f"{error}: its session's settings: {statement}"
            raise database_error(error.cause, text) from error
        known = {str(name): str(value) for name, value in self.rows(show_mysql(settings))}
        for name, value in differing(settings, known).items():
            line = f"{name} is {known[name]} in its sessions, and can't be made {value!r}"
            raise self.error(Cause.REFUSED, line)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        with self._errors(), self._connection.cursor() as cursor:
            return int(cursor.execute(sql, values or None))

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.check_mark(self.rows(f"SELECT {MYSQL_MARK}"))
        return self.rows(sql, values)

    def check_right(self, sql: str) -> None:
        """Run a query for the error it may meet: a right that is missing.

        Its rows are not decoded: SHOW CREATE TABLE has the bytes of a binary default as they are.
        """
        self.check_mark(self.rows(f"SELECT {MYSQL_MARK}"))
        with self._errors(), SSCursor(self._connection) as cursor:
            cursor.execute(sql)

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        found = self.answer(sql, rows)
        next(found)
        yield from found

    def answer(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        self.check_mark(self.rows(f"SELECT {MYSQL_MARK}"))
        cursor, ended = SSCursor(self._connection), False
        try:
            with self._errors():
                cursor.execute(sql)
                yield [tuple(column[0] for column in cursor.description or ())]
                while some := cursor.fetchmany(rows):
                    yield list(some)
            ended = True
        finally:
            if not ended:
                # What the server still sends is nobody's: the cursor would read it to its end.
                cursor.connection = None
                self.close()

    def begin(self) -> None:
        self.run("BEGIN")
        self.check_mark(self.rows(f"SELECT {MYSQL_MARK}"))

    def commit(self) -> None:
        self.run("COMMIT")

    def is_writable(self) -> bool:
        return self.rows("SELECT @@global.read_only") == [(0,)]

    @property
    def is_open(self) -> bool:
        return bool(self._connection.open)

    def close(self) -> None:
        if self._connection._result is not None:
            # Or it would read to its end from the closed connection, when it is collected.
            self._connection._result.unbuffered_active = False
        self._connection._force_close()

    def wire(self) -> int:
        return int(self._connection._sock.fileno())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The driver's errors as ours: one line, without the values in it."""
        try:
            yield
        except pymysql.err.Error as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else None
            text = str(error.args[1]) if number is not None and len(error.args) > 1 else str(error)
            said = _without_values(number, text or "the connection is closed")
            if number in _DENIED and self.purpose.help is not None:
                said += f"; {self.purpose.help(text)}"
            raise self.error(cause_of_mysql(number, text), said) from error
        except OSError as error:
            raise self.error(Cause.AWAY, str(error)) from error
        except UnicodeDecodeError as error:
            self.close()  # The rest of the answer is still under way.
            text = f"it answers text that is not UTF-8: {error.object!r:.200}"
            raise self.error(Cause.REFUSED, text) from error


def _connected(login: Login, purpose: Purpose) -> Connection[Any]:
    def connect(encrypted: bool) -> Connection[Any]:
        return pymysql.connect(
            host=None if login.is_socket else login.host, port=login.port,
            unix_socket=login.host if login.is_socket else None,
            # As every other client sends it: the driver would take Latin-1.
            user=login.user, password=(login.password or "").encode(),
            charset="utf8mb4", autocommit=True,
            connect_timeout=CONNECT_WITHIN_S, read_timeout=purpose.silence_s,
            write_timeout=None if purpose.silence_s is None else CONNECT_WITHIN_S,
            # An UPDATE that changes nothing still counts the rows that it found.
            client_flag=CLIENT.FOUND_ROWS,
            ssl=login.context() if encrypted else None, ssl_disabled=not encrypted,
            local_infile=False, program_name="binlogd",
        )  # fmt: skip

    try:
        return connect(login.tls != "off")
    except pymysql.err.OperationalError as error:
        if login.tls != "preferred" or "SSL" not in str(error):
            raise
        return connect(False)


def _without_values(number: int | None, text: str) -> str:
    """Values are nobody's business in a log."""
    if number == 1062:
        return f"duplicate entry for key {text.rpartition(' for key ')[2]}"
    if number == 1366:
        return text.split(": ")[0] + f" for column {text.rpartition(' for column ')[2]}"
    return text
