"""PostgreSQL as ``Database``, by psycopg."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from changes.model.model import TableName
from databases.base.database import Database
from databases.base.errors import (
    DatabaseRefused,
)
from databases.base.fetching import fetch_rows
from databases.base.findings import Finding
from databases.base.log_end import LogEnd
from databases.base.port import (
    JdbcOptions,
    Moment,
    SourceColumn,
    SourceTable,
    matching,
)
from databases.base.session import CONNECT_WITHIN_S, Purpose
from databases.base.session_settings import Server, set_postgresql
from databases.base.url import Login
from databases.postgres import checks as postgresql_checks
from databases.postgres import log_end as postgresql_log
from databases.postgres.checks import PUBLICATIONS, READERS, PublishedTable, published
from databases.postgres.session import SSL_MODES, PostgreSqlSession, has_own_authorities
from databases.postgres.sql import PostgreSqlWords, form_of


class PostgreSqlDatabase(PostgreSqlWords, Database):
    """A table's ``database`` is its schema, as Debezium has it."""

    kind = "postgresql"

    def _connect(self, login: Login, purpose: Purpose) -> PostgreSqlSession:
        return PostgreSqlSession(login, purpose)

    def _limits(self, server: Server) -> dict[str, str]:
        return {"statement_timeout": f"{int(self._section.statement_timeout_s * 1000)}ms"}

    def _help(self, text: str) -> str:
        if "row-level security" in text:
            return str(postgresql_checks.unread("p", True, self._section.user))
        if "must be owner of" in text:
            return "hand it over, or have an administrator make the publication"
        return postgresql_checks.grant(self._section.user)

    def change(self, sql: str) -> None:
        with self._asked() as session:
            try:
                session.run(f"BEGIN READ WRITE; {sql}; COMMIT")
            except DatabaseRefused:
                session.run("ROLLBACK")
                raise

    def tables(self, pattern: str) -> list[TableName]:
        rows = self.ask(_TABLES)
        return matching(pattern, (TableName(str(row[0]), str(row[1])) for row in rows))

    def describe(self, table: TableName) -> SourceTable:
        found = self.ask(postgresql_checks.TABLE, table)
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
        columns = self.ask(_COLUMNS, (str(oid),))
        keys = tuple(str(row[0]) for row in self.ask(_KEY, (str(oid),)))
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

    def _published(self, oid: str) -> PublishedTable:
        """What the stream has of the table."""
        if not self._section.is_source:
            return PublishedTable()
        (readers,) = self.ask(READERS)
        return published(
            self.ask(PUBLICATIONS, (oid, oid, oid)), readers, self._section.publication
        )

    def _rows(self, table: SourceTable) -> int:
        """The planner's estimate, for a table of which no statistics were gathered yet."""
        ((plan,),) = self.ask(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self.table_sql(table)}")
        found: Any = json.loads(plan) if isinstance(plan, str) else plan
        return int(found[0]["Plan"]["Plan Rows"])

    def moment(self) -> Moment:
        # The position first: whatever a read before could see is at or below it.
        position = self._position()
        ((now,),) = self.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return Moment(int(str(now)), None if position is None else f"lsn:{position}")

    def log_end(self) -> LogEnd:
        return postgresql_log.log_end(self.ask)

    def shows(self, end: LogEnd) -> bool:
        return postgresql_log.shows(self.ask, end)

    def _position(self) -> object:
        """None where this user may not read it, or this kind of server has none."""
        try:
            ((position,),) = self.ask(_POSITION)
        except DatabaseRefused:
            return None
        return position

    def jdbc(self, table: SourceTable | None = None) -> JdbcOptions:
        login = self._login()
        if login.is_socket:
            line = f"{self._name}: Spark reads by TCP alone: name a host in its url"
            raise DatabaseRefused(line)
        url = f"jdbc:postgresql://{login.shown_host}:{login.port}/{quote(login.database, safe='')}"
        url += f"?sslmode={SSL_MODES[login.tls]}&ApplicationName=binlogd"
        url += f"&connectTimeout={CONNECT_WITHIN_S}&socketTimeout={self._silence_s}"
        if login.tls_ca:
            url += f"&sslrootcert={quote(login.tls_ca, safe='/')}"
        elif login.tls in ("ca", "verified") and not has_own_authorities():
            url += "&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory"
        settings = set_postgresql(self._settings("postgresql"))
        return JdbcOptions(
            url=url,
            driver="org.postgresql.Driver",
            user=self._section.user,
            password=login.password or "",
            # It is one transaction with the read itself: so its settings are those of the read.
            session=f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; {settings}",
            fetch_rows=fetch_rows(table),
        )

    def of_server(self, ahead_us: int) -> Iterator[Finding]:
        return postgresql_checks.of_server(self.ask, self._section, ahead_us)


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
