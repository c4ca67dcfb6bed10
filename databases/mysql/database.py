"""MySQL and MariaDB as ``Database``, by PyMySQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from changes.model.model import TableName
from changes.sql.forms import LONG_BYTES
from databases.base.database import Database
from databases.base.errors import Cause, DatabaseRefused
from databases.base.fetching import fetch_rows
from databases.base.findings import Finding
from databases.base.log_end import LogEnd
from databases.base.port import JdbcOptions, Moment, SourceColumn, SourceTable, matching
from databases.base.session import CONNECT_WITHIN_S, Purpose
from databases.base.session_settings import Server, set_all_mysql
from databases.base.url import Login
from databases.mysql import checks as mysql_checks
from databases.mysql import log_end as mysql_log
from databases.mysql.session import MySqlSession
from databases.mysql.sql import MySqlWords, form_of

_SLOW_READER_S = 3600
"""A server ends a connection whose client takes no rows for a minute, unless this is set."""

_LEAST_PACKET = 4 * LONG_BYTES


class MySqlDatabase(MySqlWords, Database):
    """Its tables are in schemas that it calls databases."""

    kind = "mysql"

    def _connect(self, login: Login, purpose: Purpose) -> MySqlSession:
        session = MySqlSession(login, purpose)
        if session.packet < _LEAST_PACKET:
            # What MariaDB computes beyond it is null, with a warning at most.
            session.close()
            least = f"SET GLOBAL max_allowed_packet = {_LEAST_PACKET}"
            raise session.error(Cause.REFUSED, f"max_allowed_packet is {session.packet}; {least}")
        return session

    def _limits(self, server: Server) -> dict[str, str]:
        return {"net_write_timeout": str(_SLOW_READER_S), **dict([self._limit(server)])}

    def _limit(self, server: Server) -> tuple[str, str]:
        """How long a statement may take."""
        seconds = self._section.statement_timeout_s
        if server == "mariadb":
            return "max_statement_time", f"{seconds:g}"
        return "max_execution_time", str(int(seconds * 1000))

    def _help(self, text: str) -> str:
        return mysql_checks.grant("SELECT", "*.*", self._section.user)

    def tables(self, pattern: str) -> list[TableName]:
        rows = self.ask(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
            " WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN"
            " ('mysql', 'sys', 'information_schema', 'performance_schema')"
        )
        return matching(pattern, (TableName(str(row[0]), str(row[1])) for row in rows))

    def describe(self, table: TableName) -> SourceTable:
        found = [row for row in self._about("TABLES", _TABLE, table) if row[:2] == tuple(table)]
        if not found:
            raise DatabaseRefused(f"{table}: no such table, or no right to see it")
        kind, rows, size, made = found[0][2:]
        if kind != "BASE TABLE":
            raise DatabaseRefused(f"{table} is a {str(kind).lower()}, not a table")
        # The views below leave out the columns that the user may not read. This does not: it takes
        # a right to the whole table, and says so.
        with self._mysql() as session:
            session.check_right(f"SHOW CREATE TABLE {self.table(table)}")
        columns = self._about("COLUMNS", _COLUMNS, table, "ORDER BY ORDINAL_POSITION")
        indexes = self._about("STATISTICS", _INDEXES, table, "ORDER BY INDEX_NAME, SEQ_IN_INDEX")
        described = [_column(row) for row in columns if row[:2] == tuple(table)]
        keys = _key([row for row in indexes if row[:2] == tuple(table)])
        shape = json.dumps([[*map(str, row)] for row in columns] + [list(keys), str(made)])
        return SourceTable(
            name=table,
            columns=tuple(described),
            keys=keys,
            rows=int(str(rows or 0)),
            bytes=int(str(size or 0)),
            definition=hashlib.sha256(shape.encode()).hexdigest(),
            whole_images=self.ask("SELECT @@GLOBAL.binlog_row_image")[0][0] == "FULL",
        )

    def _about(
        self, view: str, columns: str, table: TableName, order: str = ""
    ) -> list[tuple[object, ...]]:
        """Rows about a table. Names may match in another case: the caller looks."""
        sql = f"SELECT TABLE_SCHEMA, TABLE_NAME, {columns} FROM information_schema.{view}"
        return self.ask(f"{sql} WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s {order}", table)

    def moment(self) -> Moment:
        # The position first: whatever a read before could see is at or below it.
        position = mysql_checks.position(self.ask, self._is_mariadb(), self._section.role)
        ((now,),) = self.ask("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))")
        return Moment(int(str(now)), position)

    def log_end(self) -> LogEnd:
        mariadb, role = self._is_mariadb(), self._section.role
        return mysql_log.log_end(
            self.ask, mariadb, lambda: mysql_checks.position(self.ask, mariadb, role)
        )

    def shows(self, end: LogEnd) -> bool:
        return mysql_log.shows(self.ask, end)

    @contextmanager
    def _mysql(self) -> Iterator[MySqlSession]:
        with self._asked() as session:
            assert isinstance(session, MySqlSession)
            yield session

    def _is_mariadb(self) -> bool:
        with self._mysql() as session:
            return session.is_mariadb

    def jdbc(self, table: SourceTable | None = None) -> JdbcOptions:
        """By MariaDB's driver, which speaks with both."""
        with self._mysql() as session:
            server: Server = "mariadb" if session.is_mariadb else "mysql"
            known = session.known
        login = self._login()
        if login.is_socket:
            raise session.error(Cause.REFUSED, "Spark reads by TCP alone: name a host in its url")
        # By this scheme Spark knows that names are in backticks.
        url = f"jdbc:mysql://{login.shown_host}:{login.port}/"
        url += "?permitMysqlScheme&allowPublicKeyRetrieval=true"
        url += f"&connectTimeout={CONNECT_WITHIN_S * 1000}&socketTimeout={self._silence_s * 1000}"
        if login.tls in ("preferred", "required"):
            url += "&sslMode=trust"
        elif login.tls != "off":
            url += "&sslMode=verify-full"
            if login.tls_ca:
                url += f"&serverSslCert={login.tls_ca}"
        # Before Spark has a session's first statement run it asks for the columns, in one without.
        url += f"&sessionVariables={'='.join(self._limit(server))}"
        return JdbcOptions(
            url=url,
            driver="org.mariadb.jdbc.Driver",
            user=self._section.user,
            password=login.password or "",
            session=set_all_mysql(self._settings(server), known),
            fetch_rows=fetch_rows(table),
        )

    def of_server(self, ahead_us: int) -> Iterator[Finding]:
        asked = mysql_checks.CheckedServer(self.ask, self._is_mariadb(), self._section, ahead_us)
        return mysql_checks.of_server(asked)


_TABLE = "TABLE_TYPE, TABLE_ROWS, DATA_LENGTH, CREATE_TIME"
_COLUMNS = "COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME, EXTRA"
_INDEXES = "INDEX_NAME, COLUMN_NAME, NON_UNIQUE, SUB_PART, NULLABLE"


def _column(row: Sequence[object]) -> SourceColumn:
    name, type_, nullable, collation, extra = row[2:]
    words, form = str(type_), form_of(str(type_))
    return SourceColumn(
        name=str(name),
        type=words,
        nullable=nullable == "YES",
        form=form,
        collation=None if collation is None else str(collation),
        generated="GENERATED" in str(extra).upper() and str(extra).upper() != "DEFAULT_GENERATED",
        refused="" if form else f"no exact text is known of the type {words}",
    )


def _key(rows: Sequence[Sequence[object]]) -> tuple[str, ...]:
    """The primary key, else the first unique index over whole columns that are never null."""
    indexes: dict[str, list[Sequence[object]]] = {}
    for row in rows:
        indexes.setdefault(str(row[2]), []).append(row[3:])
    for name in sorted(indexes, key=lambda name: (name != "PRIMARY", name)):
        parts = indexes[name]
        if all(
            column is not None and not int(str(more)) and part is None and null in ("", "NO")
            for column, more, part, null in parts
        ):
            return tuple(str(part[0]) for part in parts)
    return ()
