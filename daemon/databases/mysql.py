"""MySQL and MariaDB as ``port.Database``, by PyMySQL."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pymysql
from pymysql.constants import ER

from changes.model import TableName
from daemon.databases import mysql_checks, selects
from daemon.databases.findings import findings, of_table, problem
from daemon.databases.mysql_sql import MySqlWords, form_of
from daemon.databases.patterns import matching
from daemon.databases.port import (
    ALL_ROWS,
    DatabaseAway,
    DatabaseRefused,
    Findings,
    Key,
    KeyRange,
    Moment,
    SourceColumn,
    SourceTable,
    Texts,
)
from daemon.databases.sections import DatabaseSection
from daemon.databases.walk import walk
from sparkwriter.sql.jdbc import JdbcOptions

_CONNECT_WITHIN_S = 15
_SLOW_READER_S = 3600
"""A server ends a connection whose client takes no rows for a minute, unless it is told this."""

_DENIED = (
    ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
)  # fmt: skip
_MARIADB_TIMEOUT = 1969
_MYSQL_TIMEOUT = 3024
_PASSING = frozenset(
    (
        ER.CON_COUNT_ERROR, ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.QUERY_INTERRUPTED,
        ER.SERVER_SHUTDOWN, ER.OUT_OF_RESOURCES, ER.TABLE_DEF_CHANGED, ER.USER_LIMIT_REACHED,
        ER.TOO_MANY_USER_CONNECTIONS, _MARIADB_TIMEOUT, _MYSQL_TIMEOUT,
    )
)  # fmt: skip
_FIRST_CLIENT_ERROR = 2000
_CLIENT_ERRORS_END = 3000


class MySqlDatabase:
    """See ``port.Database``."""

    def __init__(self, name: str, section: DatabaseSection) -> None:
        """``name`` is the section's. Connects at the first question."""
        self._name, self._section = name, section
        self._words = MySqlWords()
        self._connection: Any = None
        self._mariadb = False

    def tables(self, pattern: str) -> list[TableName]:
        """See ``port.Database``."""
        rows = self.ask(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
            " WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN"
            " ('mysql', 'sys', 'information_schema', 'performance_schema')"
        )
        return matching(pattern, (TableName(str(row[0]), str(row[1])) for row in rows))

    def describe(self, table: TableName) -> SourceTable:
        """See ``port.Database``."""
        found = [row for row in self._about("TABLES", _TABLE, table) if row[:2] == tuple(table)]
        if not found:
            raise DatabaseRefused(f"{table}: no such table, or no right to see it")
        kind, rows, size, made = found[0][2:]
        if kind != "BASE TABLE":
            raise DatabaseRefused(f"{table} is a {str(kind).lower()}, not a table")
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
        )

    def _about(
        self, view: str, columns: str, table: TableName, order: str = ""
    ) -> list[tuple[object, ...]]:
        """Rows about a table. Names may match in another case: the caller looks."""
        sql = f"SELECT TABLE_SCHEMA, TABLE_NAME, {columns} FROM information_schema.{view}"
        return self._run(f"{sql} WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s {order}", table)

    def moment(self) -> Moment:
        """See ``port.Database``."""
        # The position first: whatever a read before could see is at or below it.
        position = mysql_checks.position(self.ask, self._is_mariadb(), self._section.role)
        ((now,),) = self.ask("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))")
        return Moment(int(str(now)), position)

    def ranges(self, table: SourceTable, rows: int) -> Iterator[KeyRange]:
        """See ``port.Database``."""
        return walk(self._words, table, rows, self.ask)

    def query(
        self, table: SourceTable, columns: Sequence[SourceColumn], part: KeyRange = ALL_ROWS
    ) -> str:
        """See ``port.Database``."""
        return selects.query(self._words, table, columns, part)

    def compared(self, column: SourceColumn) -> str:
        """See ``port.Database``."""
        return selects.compared(self._words, column)

    def table_sql(self, table: TableName) -> str:
        """See ``port.Database``."""
        return self._words.table(table)

    def predicate(self, table: SourceTable, part: KeyRange) -> str:
        """See ``port.Database``."""
        return selects.predicate(self._words, table, part)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """See ``port.Database``."""
        return self._run(sql, None)

    def rows(
        self, table: SourceTable, columns: Sequence[SourceColumn], keys: Sequence[Key]
    ) -> dict[Key, Texts]:
        """See ``port.Database``."""
        return selects.rows(self._words, table, columns, keys, self.ask)

    def jdbc(self) -> JdbcOptions:
        """See ``port.Database``. By MariaDB's driver, which speaks with both."""
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
        settings = self._settings(self._is_mariadb())
        session = "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in settings)
        return JdbcOptions(
            url=url,
            driver="org.mariadb.jdbc.Driver",
            user=self._section.user,
            password=self._section.password,
            session=session,
        )

    def check(self, tables: Sequence[TableName], clock_us: Callable[[], int]) -> Findings:
        """See ``port.Database``."""
        ahead_us = self.moment().unix_us - clock_us()
        asked = mysql_checks.Asked(self.ask, self._is_mariadb(), self._section, ahead_us)
        found = [*mysql_checks.of_server(asked)]
        for table in tables:
            try:
                self.ask(f"SELECT 1 FROM {self._words.table(table)} LIMIT 0")
                found += of_table(self.describe(table))
            except DatabaseRefused as error:
                found.append(problem(str(error)))
        return findings(found)

    def close(self) -> None:
        """See ``port.Database``."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection._force_close()

    @property
    def _silence_s(self) -> int:
        """So long may a connection say nothing."""
        return int(self._section.statement_timeout_s) + 60

    def _is_mariadb(self) -> bool:
        self._connected()
        return self._mariadb

    def _settings(self, mariadb: bool) -> list[tuple[str, str]]:
        """A session that writes nothing, in which each text is the canonical one."""
        seconds = self._section.statement_timeout_s
        limit = ("max_statement_time", f"{seconds:g}")
        if not mariadb:
            limit = ("max_execution_time", str(int(seconds * 1000)))
        return [
            ("sql_mode", "''"),
            ("time_zone", "'+00:00'"),
            ("net_write_timeout", str(_SLOW_READER_S)),
            ("tx_read_only" if mariadb else "transaction_read_only", "1"),
            limit,
            *([] if mariadb else [("information_schema_stats_expiry", "0")]),
        ]

    def _connected(self) -> Any:
        if self._connection is not None:
            return self._connection
        address = self._section.address
        try:
            connection = pymysql.connect(
                host=address.host, port=address.port, user=self._section.user,
                password=self._section.password, charset="utf8mb4", autocommit=True,
                connect_timeout=_CONNECT_WITHIN_S, read_timeout=self._silence_s,
                write_timeout=_CONNECT_WITHIN_S, ssl=self._tls(),
            )  # fmt: skip
        except (pymysql.MySQLError, OSError) as error:
            raise self._told(error, connecting=True) from error
        self._connection = connection
        self._mariadb = "mariadb" in str(connection.get_server_info()).lower()
        for name, value in self._settings(self._mariadb):
            self.ask(f"SET SESSION {name} = {value}")
        return connection

    def _tls(self) -> ssl.SSLContext | None:
        if self._section.tls == "off":
            return None
        context = ssl.create_default_context(cafile=self._section.tls_ca)
        if self._section.tls == "required":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _run(self, sql: str, values: Sequence[str] | None) -> list[tuple[object, ...]]:
        connection = self._connected()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, values)
                return list(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            told = self._told(error)
            if isinstance(told, DatabaseAway):
                self.close()
            raise told from error

    def _told(self, error: Exception, connecting: bool = False) -> DatabaseAway | DatabaseRefused:
        """The error in the port's words: one line."""
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[1] if len(error.args) > 1 else error).replace("\n", " ")
        line = f"database.{self._name}: {text}"
        gone = isinstance(error, OSError | pymysql.err.InterfaceError)
        if gone or code in _PASSING or _FIRST_CLIENT_ERROR <= code < _CLIENT_ERRORS_END:
            return DatabaseAway(line)
        if code in _DENIED:
            line += f"; {mysql_checks.grant('SELECT', '*.*', self._section.user)}"
        return DatabaseRefused(line)


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
