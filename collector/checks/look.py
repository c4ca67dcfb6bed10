"""Asks a source what it is, and about the tables that are to be followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from changes.model.model import TableName
from collector.checks import mysql, postgres
from collector.checks.seen import SeenSource, SeenTable, once, unread_columns
from databases.base.database import Database
from databases.base.errors import DatabaseError, DatabaseRefused
from databases.base.findings import Finding, of_collations, problem
from databases.base.port import SourceTable
from databases.base.section import DatabaseSection, TargetSection
from databases.base.url import Login
from databases.mysql.checks import CheckedServer
from databases.opening import ADAPTERS
from databases.postgres.session import try_replication


@dataclass(frozen=True, slots=True)
class Looked:
    """What is looked at: ``patterns`` of ``database.table``, those of ``without`` left out.

    ``slot`` and ``section.publication``: the collector's, of PostgreSQL.
    """

    name: str
    section: DatabaseSection
    login: Callable[[], Login]
    patterns: Sequence[str]
    without: Sequence[str] = ()
    slot: str | None = None


def look_at(looked: Looked, clock_us: Callable[[], int]) -> SeenSource:
    """Raises DatabaseAway, DatabaseRefused where the server can't be queried at all. ``clock_us``
    is this machine's clock. Nothing is changed there."""
    opened = ADAPTERS[looked.section.address.kind]
    # Whether publications have a table is checked by name here, and reported with its statement.
    section = TargetSection(**looked.section.model_dump())
    database = opened(looked.name, section, looked.login)
    try:
        ahead_us = database.moment().unix_us - clock_us()
        seen = _of_mysql if database.kind == "mysql" else _of_postgres
        return seen(looked, database, ahead_us)
    finally:
        database.close()


def _chosen(looked: Looked, database: Database) -> list[TableName]:
    never = {table for pattern in looked.without for table in database.tables(pattern)}
    found = {table for pattern in looked.patterns for table in database.tables(pattern)}
    return sorted(found - never)


def _of_mysql(looked: Looked, database: Database, ahead_us: int) -> SeenSource:
    ((version,),) = database.ask("SELECT VERSION()")
    mariadb = "mariadb" in str(version).lower()
    account = mysql.account_of(database.ask, mariadb=mariadb)
    asked = CheckedServer(database.ask, mariadb, looked.section, ahead_us)
    tables = _chosen(looked, database)
    server = [
        *mysql.of_server(asked, account),
        *mysql.left_out(database.ask, sorted({table.database for table in tables})),
        *mysql.of_schemas(account, looked.patterns, tables),
    ]
    return SeenSource(once(server), tuple(_mysql_table(database, account, t) for t in tables))


def _mysql_table(database: Database, account: mysql.Account, name: TableName) -> SeenTable:
    try:
        database.ask(f"SELECT 1 FROM {database.table(name)} LIMIT 0")
        table = database.describe(name)
    except DatabaseRefused as error:
        return SeenTable(name, None, (mysql.unreadable(account, name, str(error)),))
    found = [*mysql.of_table(database.ask, table), *_of_columns(table, "mysql")]
    return SeenTable(name, table, once(found))


def _of_postgres(looked: Looked, database: Database, ahead_us: int) -> SeenSource:
    tables = _chosen(looked, database)
    publication = looked.section.publication or postgres.PUBLICATION
    lacking = set(postgres.unpublished(database.ask, publication, tables))
    seen = tuple(
        _postgres_table(database, t, publication if t in lacking else None) for t in tables
    )
    ready = [one.name for one in seen if one.is_followed]
    server = [*postgres.of_server(database.ask, ahead_us, looked.slot)]
    if not any(one.wrong for one in server):
        server += _tried(looked.login())
    server += postgres.of_publication(database.ask, publication, ready)
    server += postgres.of_schemas(looked.patterns, tables)
    return SeenSource(once(server), seen)


def _tried(login: Login) -> Iterator[Finding]:
    """Which hosts may read the log is in a file of the server's that nobody can ask for, and a
    pooler takes no such connection: it is tried."""
    try:
        try_replication(login)
    except DatabaseError as error:
        yield problem(f"a connection that reads its log is not taken: {error}")


def _postgres_table(database: Database, name: TableName, publication: str | None) -> SeenTable:
    """``publication``: the one that lacks it."""
    found = [*postgres.of_rights(database.ask, name)]
    if found:
        return SeenTable(name, None, once(found))
    try:
        table = database.describe(name)
    except DatabaseRefused as error:
        return SeenTable(name, None, (problem(str(error)),))
    found += postgres.of_key(table)
    if not found:
        found += postgres.of_identity(database.ask, name)
    if publication is not None and not found:
        found.append(postgres.to_be_published(publication, name))
    return SeenTable(name, table, once([*found, *_of_columns(table, "postgresql")]))


def _of_columns(table: SourceTable, kind: str) -> Iterator[Finding]:
    """What is odd of columns: those that can't be had, and keys that compare otherwise."""
    yield from unread_columns(table, kind)
    yield from of_collations(table)
