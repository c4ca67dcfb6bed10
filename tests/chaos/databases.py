"""Databases for ``make chaos SINK=…``: a server of its own, and the daemons as a plain user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from changes.sql.spark.schema import lake_name
from databases.base.errors import DatabaseError
from sparkwriter.sql.base.session import Session
from tests.integration.rig import Rig
from tests.sparkwriter.databases import Server, running

NAMES: Mapping[str, str] = {"postgres": "postgres", "mysql": "mysql", "mariadb": "mariadb"}
"""What SINK may be."""

USER = "binlogd"


class DatabaseRig(Rig):
    """A rig whose daemons write a database, as ``USER``."""

    compacts = False
    server: Server
    away_s: float

    def select(self, table: str, columns: Sequence[str], order: str) -> list[tuple[Any, ...]]:
        """Rows, through a connection of one's own."""
        session = self.server.connect()
        quote = session.dialect.quote
        names = ", ".join(quote(lake_name(column)) for column in columns)
        name = f"{quote(self.db)}.{quote(table)}"
        try:
            return session.rows(f"SELECT {names} FROM {name} ORDER BY {quote(lake_name(order))}")
        finally:
            session.close()

    def pipeline(self, **more: Any) -> dict[str, Any]:
        """There is one way to write."""
        section = super().pipeline(**more)
        section.pop("write", None)
        if "route" in section:
            section["route"] = [
                {key: value for key, value in route.items() if key != "write"}
                for route in section["route"]
            ]
        return section

    def write_config(self, **pipelines: Mapping[str, Any]) -> Path:
        """As the rig's, with the database in the lake's place."""
        path = super().write_config(**pipelines)
        text = path.read_text()
        begin, end = text.index("[sink.lake]"), text.index("[pipeline.")
        section = f'[sink.lake]\nkind = "jdbc"\nurl = "{self.server.url}"\nuser = "{USER}"\n'
        path.write_text(text[:begin] + section + text[end:])
        return path


@contextmanager
def database(name: str) -> Iterator[Server]:
    """Start a server and make the user."""
    with running(NAMES[name]) as server:
        session = server.connect()
        for statement in _grants(server):
            session.run(statement)
        session.close()
        yield server


def _grants(server: Server) -> list[str]:
    if server.is_postgres:
        return [f"CREATE ROLE {USER} LOGIN", f"GRANT ALL ON DATABASE postgres TO {USER}"]
    return [
        f"CREATE USER {USER}@'127.0.0.1'",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX,"
        f" CREATE TEMPORARY TABLES, TRIGGER ON *.* TO {USER}@'127.0.0.1'",
    ]


def end_sessions(server: Server, session: Session) -> int:
    """End all sessions of the daemons'; how many there were."""
    if server.is_postgres:
        text = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{USER}'"
        return len(session.rows(text))
    listed = session.rows(f"SELECT id FROM information_schema.processlist WHERE user = '{USER}'")
    for (number,) in listed:
        _kill(session, number)
    return len(listed)


def _kill(session: Session, number: int) -> None:
    try:
        session.run(f"KILL {number}")
    except DatabaseError as error:
        if "Unknown thread" not in str(error):  # it has ended by itself
            raise
