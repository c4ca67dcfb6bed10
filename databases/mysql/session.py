"""A read-only session with MySQL or MariaDB: opened, asked, and what its errors mean."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from changes.sql.forms import LONG_BYTES
from databases.base.errors import (
    DatabaseAway,
    DatabaseError,
    DatabaseRefused,
    cause_of_mysql,
    database_error,
)
from databases.base.port import JdbcOptions
from databases.base.section import DatabaseSection
from databases.base.session_settings import (
    MYSQL_MARK,
    POOLED,
    differing,
    reading,
    set_all_mysql,
    set_mysql,
    show_mysql,
    unlimited_mysql,
)
from databases.mysql import checks as mysql_checks

_CONNECT_WITHIN_S = 15
_SLOW_READER_S = 3600
"""A server ends a connection whose client takes no rows for a minute, unless it is told this."""

_LEAST_PACKET = 4 * LONG_BYTES
_DENIED = (
    ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
)  # fmt: skip


class MySqlSession:
    """One connection; after a failure the next question opens another. One thread's at a time."""

    def __init__(self, name: str, section: DatabaseSection, password: Callable[[], str]) -> None:
        """``name``: as messages have it; ``password`` gives what it is now."""
        self._name, self._section, self._password = name, section, password
        self._connection: Any = None
        self._mariadb = False
        self._mark = ""
        self._known: dict[str, str] = {}

    def jdbc(self, rows: int) -> JdbcOptions:
        """The same for Spark, which fetches so many rows at a time: by MariaDB's driver, which
        speaks with both."""
        address = self._section.address
        host = f"[{address.host}]" if ":" in address.host else address.host
        # By this scheme Spark knows that names are in backticks.
        url = f"jdbc:mysql://{host}:{address.port}/?permitMysqlScheme&allowPublicKeyRetrieval=true"
        url += f"&connectTimeout={_CONNECT_WITHIN_S * 1000}&socketTimeout={self._silence_s * 1000}"
        if self._section.tls == "required":
            url += "&sslMode=trust"
        elif self._section.tls == "verified":
            url += "&sslMode=verify-full"
            if self._section.tls_ca:
                url += f"&serverSslCert={self._section.tls_ca}"
        mariadb = self.is_mariadb()
        # Before Spark has a session's first statement run it asks for the columns, in one without.
        url += f"&sessionVariables={'='.join(self._limit(mariadb))}"
        return JdbcOptions(
            url=url,
            driver="org.mariadb.jdbc.Driver",
            user=self._section.user,
            password=self._password(),
            session=set_all_mysql(self._settings(mariadb), self._known),
            fetch_rows=rows,
        )

    def close(self) -> None:
        """End the connection. Raises nothing."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            if connection._result is not None:
                # Or it would read to its end from the closed connection, when it is collected.
                connection._result.unbuffered_active = False
            connection._force_close()

    @property
    def _silence_s(self) -> int:
        """So long may a connection say nothing."""
        return int(self._section.statement_timeout_s) + 60

    def is_mariadb(self) -> bool:
        """Whether it is MariaDB. Connects."""
        self._connected()
        return self._mariadb

    def _limit(self, mariadb: bool) -> tuple[str, str]:
        """How long a statement may take."""
        seconds = self._section.statement_timeout_s
        if mariadb:
            return "max_statement_time", f"{seconds:g}"
        return "max_execution_time", str(int(seconds * 1000))

    def _settings(self, mariadb: bool) -> dict[str, str]:
        """A session that writes nothing, in which each text is the canonical one."""
        name, limit = self._limit(mariadb)
        more = {"net_write_timeout": str(_SLOW_READER_S), name: limit}
        return {**reading("mariadb" if mariadb else "mysql"), **more}

    def _set_up(self) -> None:
        """Have the session's settings, and see that it has them. Raises DatabaseRefused."""
        settings = self._settings(self._mariadb)
        self._answer(unlimited_mysql())
        self._known = self._shown(settings)
        statement = set_mysql(settings, self._known, self._mark)
        try:
            self._answer(statement)
        except DatabaseRefused as error:
            raise DatabaseRefused(f"{error}: its session's settings: {statement}") from error
        known = self._shown(settings)
        for name, value in differing(settings, known).items():
            line = f"{name} is {known[name]} in its sessions, and can't be made {value!r}"
            raise DatabaseRefused(f"{self._name}: {line}")

    def _shown(self, settings: Mapping[str, str]) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._answer(show_mysql(settings))}

    def _connected(self) -> Any:
        if self._connection is not None:
            return self._connection
        address = self._section.address
        try:
            connection = pymysql.connect(
                host=address.host, port=address.port, user=self._section.user,
                password=self._password(), charset="utf8mb4", autocommit=True,
                connect_timeout=_CONNECT_WITHIN_S, read_timeout=self._silence_s,
                write_timeout=_CONNECT_WITHIN_S, ssl=self._tls(),
            )  # fmt: skip
        except (pymysql.MySQLError, OSError) as error:
            raise self._told(error) from error
        self._connection = connection
        self._mariadb = "mariadb" in str(connection.get_server_info()).lower()
        self._mark = uuid4().hex
        try:
            self._set_up()
            self._check_packets()
        except BaseException:
            self.close()  # no question may meet a session that is half set up
            raise
        return connection

    def _check_packets(self) -> None:
        """What MariaDB computes beyond ``max_allowed_packet`` is null, with a warning at most."""
        ((size,),) = self.run("SELECT @@max_allowed_packet")
        if int(str(size)) < _LEAST_PACKET:
            least = f"SET GLOBAL max_allowed_packet = {_LEAST_PACKET}"
            raise DatabaseRefused(f"{self._name}: max_allowed_packet is {size}; {least}")

    def _tls(self) -> ssl.SSLContext | None:
        if self._section.tls == "off":
            return None
        context = ssl.create_default_context(cafile=self._section.tls_ca)
        if self._section.tls == "required":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def run(self, sql: str, values: Sequence[str] | None = None) -> list[tuple[object, ...]]:
        """The rows of a statement. Raises DatabaseAway, DatabaseRefused."""
        self._check_mark()
        return self._answer(sql, values)

    def check_right(self, sql: str) -> None:
        """Run a query for the error it may meet: a right that is missing. Raises as ``run``.

        Its rows are not decoded: SHOW CREATE TABLE has the bytes of a binary default as they are.
        """
        self._check_mark()
        with self._told_errors(), SSCursor(self._connected()) as cursor:
            cursor.execute(sql)

    def _check_mark(self) -> None:
        """Raises DatabaseRefused where the session is not the one that was set up."""
        self._connected()
        if self._answer(f"SELECT {MYSQL_MARK}") != [(self._mark,)]:
            self.close()
            raise DatabaseRefused(f"{self._name}: {POOLED}")

    def _answer(self, sql: str, values: Sequence[str] | None = None) -> list[tuple[object, ...]]:
        with self._told_errors(), self._connected().cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())

    @contextmanager
    def _told_errors(self) -> Iterator[None]:
        """Errors of a question in the port's words."""
        try:
            yield
        except (pymysql.MySQLError, OSError) as error:
            told = self._told(error)
            if isinstance(told, DatabaseAway):
                self.close()
            raise told from error
        except UnicodeDecodeError as error:
            self.close()  # The rest of the answer is still under way.
            line = f"{self._name}: it answers text that is not UTF-8: {error.object!r:.200}"
            raise DatabaseRefused(line) from error

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """The rows of a SELECT in lists of so many, as the server sends them."""
        self._check_mark()
        cursor, ended = SSCursor(self._connected()), False
        try:
            with self._told_errors():
                cursor.execute(sql)
                while some := cursor.fetchmany(rows):
                    yield list(some)
            ended = True
        finally:
            if not ended:
                # What the server still sends is nobody's: the cursor would read it to its end.
                cursor.connection = None
                self.close()

    def _told(self, error: Exception) -> DatabaseError:
        """The error in the port's words: one line."""
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[1] if len(error.args) > 1 else error)
        line = f"{self._name}: {text}"
        if isinstance(error, OSError):
            return DatabaseAway(line)
        if code in _DENIED:
            line += f"; {mysql_checks.grant('SELECT', '*.*', self._section.user)}"
        return database_error(cause_of_mysql(code, text), line)
