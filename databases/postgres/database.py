"""PostgreSQL as ``port.Database``, by psycopg."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg

from changes.model.model import TableName
from databases.base.errors import (
    DatabaseAway,
    DatabaseError,
    DatabaseRefused,
    cause_of_postgresql,
    database_error,
)
from databases.base.fetching import fetch_rows
from databases.base.findings import Finding
from databases.base.port import (
    JdbcOptions,
    Kind,
    Moment,
    SourceColumn,
    SourceTable,
    matching,
)
from databases.base.section import DatabaseSection
from databases.base.session_settings import POOLED, mark_of_postgresql, reading, set_postgresql
from databases.base.sql_database import SqlDatabase
from databases.postgres import checks as postgresql_checks
from databases.postgres.checks import PUBLICATIONS, READERS, Published, published
from databases.postgres.sql import PostgreSqlWords, form_of

_CONNECT_WITHIN_S = 15
_DENIED = "42501"


class PostgreSqlDatabase(SqlDatabase):
    """See ``port.Database``. A table's ``database`` is its schema, as Debezium has it."""

    kind: Kind = "postgresql"

    def __init__(self, name: str, section: DatabaseSection, password: Callable[[], str]) -> None:
        """``name``: as messages have it; ``password`` gives what it is now. Connects at the first
        question."""
        self._name, self._section, self._password = name, section, password
        super().__init__(PostgreSqlWords())
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._mark = ""

    def tables(self, pattern: str) -> list[TableName]:
        """See ``port.Database``."""
        rows = self.ask(_TABLES)
        return matching(pattern, (TableName(str(row[0]), str(row[1])) for row in rows))

    def describe(self, table: TableName) -> SourceTable:
        """See ``port.Database``."""
        found = self._run(postgresql_checks.TABLE, table)
        if not found:
            raise DatabaseRefused(f"{table}: no such table")
        oid, kind, rows, size, made, lasting, hidden, beside = found[0]
        if kind not in ("r", "p"):
            raise DatabaseRefused(f"{table} is not a table")
        if (
            why := postgresql_checks.unread(lasting, hidden, self._section.user, beside)
        ) is not None:
            raise DatabaseRefused(f"{table}: {why}")
        streamed = self._published(str(oid))
        if streamed.refused is not None:
            raise DatabaseRefused(f"{table}: {streamed.refused}")
        columns = self._run(_COLUMNS, (str(oid),))
        keys = tuple(str(row[0]) for row in self._run(_KEY, (str(oid),)))
        said = [list(keys), oid, made, [*streamed]]
        shape = json.dumps([[*map(str, row)] for row in columns] + said)
        shown = None if streamed.columns is None else json.loads(streamed.columns)
        described = SourceTable(
            name=table,
            columns=tuple(_column(row) for row in columns if shown is None or row[0] in shown),
            keys=keys if shown is None or set(keys) <= set(shown) else (),
            rows=int(str(rows)),
            bytes=int(str(size)),
            definition=hashlib.sha256(shape.encode()).hexdigest(),
            only=kind == "r",
            rows_where=streamed.rows,
        )
        return described if described.rows > 0 else replace(described, rows=self._rows(described))

    def _published(self, oid: str) -> Published:
        """What the stream has of the table."""
        if not self._section.is_source:
            return Published()
        (readers,) = self._run(READERS, None)
        return published(
            self._run(PUBLICATIONS, (oid, oid, oid)), readers, self._section.publication
        )

    def _rows(self, table: SourceTable) -> int:
        """The planner's estimate, for a table of which no statistics were gathered yet."""
        ((plan,),) = self.ask(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self.table_sql(table)}")
        found: Any = json.loads(plan) if isinstance(plan, str) else plan
        return int(found[0]["Plan"]["Plan Rows"])

    def moment(self) -> Moment:
        """See ``port.Database``."""
        # The position first: whatever a read before could see is at or below it.
        position = self._position()
        ((now,),) = self.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return Moment(int(str(now)), None if position is None else f"lsn:{position}")

    def _position(self) -> object:
        """None where it is not told to this user, or not by this kind of server."""
        try:
            ((position,),) = self.ask(_POSITION)
        except DatabaseRefused:
            return None
        return position

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """See ``port.Database``."""
        return self._run(sql, None)

    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[object, ...]]]:
        """See ``port.Database``."""
        connection = self._connected()
        try:
            with connection.transaction(), connection.cursor() as cursor:
                self._check_mark(connection.execute(mark_of_postgresql()).fetchall())
                coming = cursor.stream(sql)
                while some := list(islice(coming, rows)):
                    yield some
        except psycopg.Error as error:
            told = self._told(error)
            if isinstance(told, DatabaseAway):
                self.close()
            raise told from error

    def jdbc(self, table: SourceTable | None = None) -> JdbcOptions:
        """See ``port.Database``."""
        address = self._section.address
        host = f"[{address.host}]" if ":" in address.host else address.host
        url = f"jdbc:postgresql://{host}:{address.port}/{quote(address.database, safe='')}"
        url += f"?sslmode={_SSL_MODES[self._section.tls]}&ApplicationName=binlogd"
        url += f"&connectTimeout={_CONNECT_WITHIN_S}&socketTimeout={self._silence_s}"
        if self._section.tls_ca:
            url += f"&sslrootcert={quote(self._section.tls_ca, safe='/')}"
        return JdbcOptions(
            url=url,
            driver="org.postgresql.Driver",
            user=self._section.user,
            password=self._password(),
            # It is one transaction with the read itself: so its settings are those of the read.
            session=f"SET TRANSACTION {_TRANSACTION}; {set_postgresql(self._settings())}",
            fetch_rows=fetch_rows(table),
        )

    def of_server(self, ahead_us: int) -> Iterator[Finding]:
        """See ``SqlDatabase``."""
        return postgresql_checks.of_server(self.ask, self._section, ahead_us)

    def close(self) -> None:
        """See ``port.Database``."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    @property
    def _silence_s(self) -> int:
        """So long may a connection say nothing."""
        return int(self._section.statement_timeout_s) + 60

    def _settings(self) -> dict[str, str]:
        """A session that writes nothing, in which each text is the canonical one."""
        limit = f"{int(self._section.statement_timeout_s * 1000)}ms"
        return {**reading("postgresql"), "statement_timeout": limit}

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        if self._connection is not None:
            return self._connection
        address = self._section.address
        try:
            connection = psycopg.connect(
                cursor_factory=psycopg.ClientCursor,
                host=address.host, port=address.port, dbname=address.database,
                user=self._section.user, password=self._password(), autocommit=True,
                connect_timeout=_CONNECT_WITHIN_S, client_encoding="UTF8",
                application_name="binlogd", sslmode=_SSL_MODES[self._section.tls],
                tcp_user_timeout=self._silence_s * 1000,
                sslrootcert=self._section.tls_ca or "",
            )  # fmt: skip
        except psycopg.Error as error:
            raise self._told(error) from error
        self._mark = uuid4().hex
        try:
            connection.execute(set_postgresql(self._settings(), self._mark))
        except psycopg.Error as error:
            connection.close()  # no question may meet a session that is half set up
            raise self._told(error, "a setting of the session can't be made: ") from error
        self._connection = connection
        return connection

    def _run(self, sql: str, values: Sequence[str] | None) -> list[tuple[object, ...]]:
        connection = self._connected()
        try:
            # Both in one message, which is one transaction: no pooler can come between.
            cursor = connection.execute(f"{mark_of_postgresql()}; {sql}", values)
            self._check_mark(cursor.fetchall())
            cursor.nextset()
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            told = self._told(error)
            if isinstance(told, DatabaseAway):
                self.close()
            raise told from error

    def _check_mark(self, found: Sequence[Sequence[object]]) -> None:
        """Raises DatabaseRefused where the session is not the one that was set up."""
        if found[0][0] != self._mark:
            self.close()
            raise DatabaseRefused(f"{self._name}: {POOLED}")

    def _told(self, error: psycopg.Error, doing: str = "") -> DatabaseError:
        """The error in the port's words: one line."""
        state, text = error.sqlstate, " ".join(str(error).split())
        line = f"{self._name}: {doing}{text}"
        if state == _DENIED and "row-level security" in text:
            line += f"; {postgresql_checks.unread('p', True, self._section.user)}"
        elif state == _DENIED and not doing:
            line += f"; {postgresql_checks.grant(self._section.user)}"
        of_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return database_error(cause_of_postgresql(state, of_connection), line)


_TRANSACTION = "ISOLATION LEVEL READ COMMITTED, READ ONLY"

_SSL_MODES = {"off": "disable", "required": "require", "verified": "verify-full"}

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"""

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, l.collname,
a.attgenerated::text, t.typtype::text,
CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END, a.attnum
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_KEY = """
SELECT a.attname FROM (
  SELECT i.indrelid, i.indkey, i.indnkeyatts FROM pg_index i
  WHERE i.indrelid = %s::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND i.indexprs IS NULL
  AND NOT EXISTS (SELECT 1 FROM unnest(i.indkey) k JOIN pg_attribute n
    ON n.attrelid = i.indrelid AND n.attnum = k WHERE NOT n.attnotnull)
  ORDER BY i.indisprimary DESC, i.indisreplident DESC, i.indexrelid LIMIT 1
) i, unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
JOIN pg_attribute a ON a.attnum = k.attnum
WHERE a.attrelid = i.indrelid AND k.place <= i.indnkeyatts ORDER BY k.place"""

_POSITION = """
SELECT (SELECT system_identifier FROM pg_control_system()) || ':' ||
(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn)"""


def _column(row: Sequence[object]) -> SourceColumn:
    name, type_, nullable, collation, generated, kind, base, _ = row
    words = str(base or type_)
    form = None if kind == "c" else form_of(words, is_enum=kind == "e")
    return SourceColumn(
        name=str(name),
        type=words,
        nullable=bool(nullable),
        form=form,
        collation=None if collation is None else str(collation),
        generated=generated != "",
        refused="" if form else f"no exact text is known of the type {type_}",
    )
