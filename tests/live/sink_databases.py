"""Databases as sinks: read by the statements that read the sources, so by none of binlogd's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live import mariadb_read, mariadb_rows, postgres_read, postgres_rows
from tests.live.comparison import Found
from tests.live.hostile import init_connect, of_role
from tests.live.mariadb import MariaDb
from tests.live.postgres import Postgres
from tests.live.program import HOST, LiveError
from tests.live.schema import Name, Table
from tests.live.sinks import Difference, Stored
from tests.own_tables.tables import Kind, OwnTable, catalogue_of

_DATABASE = "postgres"
USER, PASSWORD = "sink", "k3y-of-the-sink"


def stored(found: Mapping[Name, Found]) -> Mapping[Name, Stored]:
    """Values as they are printed, but bytes as bytes."""
    return {name: _stored(table) for name, table in found.items()}


def _stored(table: Found) -> Stored:
    names = tuple(name for name, _ in table.columns)
    are_bytes = [kind in ("bytes", "padded") for _, kind in table.columns]
    rows = [
        {
            name: bytes.fromhex(text) if is_bytes and text is not None else text
            for name, is_bytes, text in zip(names, are_bytes, row, strict=True)
        }
        for row in table.rows
    ]
    return Stored(names, rows)


class PostgresSink:
    """A ``Sink``: a namespace is a schema of one database."""

    name = "pg"
    kind: Kind = "postgres"

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; raises LiveError where PostgreSQL is missing."""
        self._server = Postgres(folder)

    def start(self) -> None:
        self._server.start()
        if not self._server.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{USER}'").rows:
            made = [f"CREATE ROLE {USER} LOGIN SUPERUSER", *of_role(USER)]
            if error := self._server.run(_DATABASE, made):
                raise LiveError(f"PostgreSQL: {error}")

    def kill(self) -> None:
        self._server.program.kill()

    def sections(self, folder: Path) -> Sequence[str]:
        url = f"jdbc:postgresql://{HOST}:{self._server.port}/{_DATABASE}"
        return [f"[sink.{self.name}]", 'kind = "jdbc"', f'url = "{url}"', f'user = "{USER}"']

    def begin(self, folder: Path) -> None:
        """The server has the ledgers of all rounds; targets have names of their own."""

    def end(self) -> None:
        """It goes on."""

    def read(self, databases: Sequence[str]) -> Mapping[Name, Stored]:
        return stored(postgres_read.read(self._server, _DATABASE, tuple(databases)))

    def plant(self, difference: Difference) -> str:
        text = difference.sql(postgres_rows.full(difference.table), '"')
        return self._server.run(_DATABASE, [text])

    def mark(self, name: str) -> str:
        return postgres_rows.mark(name)

    def make_own(self, table: Table, own: OwnTable) -> str:
        """All of it, or nothing."""
        schema = f"CREATE SCHEMA IF NOT EXISTS {self.mark(table.name[0])}"
        return self._server.run(_DATABASE, ["BEGIN", schema, *own.statements, "COMMIT"])

    def catalogue(self) -> list[str]:
        return catalogue_of(self.kind, lambda query: self._server.ask(f"{query};").rows)


class MariaDbSink:
    """A ``Sink``: a namespace is a database."""

    name = "maria"
    kind: Kind = "mariadb"

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; raises LiveError where MariaDB is missing."""
        self._server = MariaDb(folder)

    def start(self) -> None:
        self._server.start()
        rights = (
            "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER,"
            " CREATE TEMPORARY TABLES"
        )
        made = [
            f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT {rights} ON *.* TO {USER}@'%'", init_connect(),
        ]  # fmt: skip
        if error := self._server.run(made):
            raise LiveError(f"MariaDB: {error}")

    def kill(self) -> None:
        self._server.program.kill()

    def sections(self, folder: Path) -> Sequence[str]:
        url = f"jdbc:mariadb://{HOST}:{self._server.port}/"
        return [
            f"[sink.{self.name}]", 'kind = "jdbc"', f'url = "{url}"', f'user = "{USER}"',
            f'password = "{PASSWORD}"',
        ]  # fmt: skip

    def begin(self, folder: Path) -> None:
        """The server has the ledgers of all rounds; targets have names of their own."""

    def end(self) -> None:
        """It goes on."""

    def read(self, databases: Sequence[str]) -> Mapping[Name, Stored]:
        return stored(mariadb_read.read(self._server, tuple(databases)))

    def plant(self, difference: Difference) -> str:
        return self._server.run([difference.sql(mariadb_rows.full(difference.table), "`")])

    def mark(self, name: str) -> str:
        return mariadb_rows.mark(name)

    def make_own(self, table: Table, own: OwnTable) -> str:
        """Its statements end by themselves: what one of them leaves is dropped."""
        schema = f"CREATE DATABASE IF NOT EXISTS {self.mark(table.name[0])}"
        if error := self._server.run([schema, *own.statements]):
            self._server.run([f"DROP TABLE IF EXISTS {mariadb_rows.full(table.name)}"])
        return error

    def catalogue(self) -> list[str]:
        return catalogue_of(self.kind, lambda query: self._server.ask(query).rows)
