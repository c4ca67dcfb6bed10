"""A connection to PostgreSQL that writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from changes.model.model import TargetName
from databases.base.errors import Cause
from databases.base.session import Purpose
from databases.base.session_settings import Server, writing
from databases.base.url import Login
from databases.postgres.session import PostgreSqlSession
from settings.counted import counted
from sparkwriter.sql.base.session import LOCK_WITHIN_S, CatalogQueries, LoadedColumn, Session
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.postgres.catalog import DEPENDENTS, HELD, REFERENCED, RIGHTS, TABLE, table_of
from sparkwriter.sql.postgres.taken_over import LEFT, take_over
from sparkwriter.sql.postgres.words import PostgreSqlDialect, copy_text

PIECE_BYTES = 1 << 20


def _settings(server: Server) -> dict[str, str]:
    return {**writing(server), "lock_timeout": f"{LOCK_WITHIN_S}s"}


class PostgreSqlWriter(PostgreSqlSession, Session):
    """See ``Session``."""

    dialect = PostgreSqlDialect()
    transactional_ddl = True
    lasting_identity = True
    queries = CatalogQueries(
        REFERENCED, DEPENDENTS, LEFT, "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    )

    def __init__(self, login: Login) -> None:
        """Connect. Raises DatabaseError."""
        super().__init__(login, Purpose(_settings))

    def load(self, table: str, columns: Sequence[LoadedColumn]) -> None:
        """COPY."""
        names = ", ".join(self.dialect.quote(column.name) for column in columns)
        data = copy_text(columns)
        with self._errors(), self._connection.cursor() as cursor:
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
                for at in range(0, len(data), PIECE_BYTES):
                    copy.write(data[at : at + PIECE_BYTES])
            if cursor.rowcount != len(columns[0].texts):
                raise self.error(
                    Cause.REFUSED, f"COPY took {counted(cursor.rowcount, 'row')}, not all"
                )

    def describe(self, target: TargetName) -> DbTable | None:
        found = self.rows(TABLE, (target.namespace, target.table))
        return table_of(found[0] if found else None)

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """As the catalog says; nothing is locked for it."""
        name = (target.namespace, target.table)
        ((_, may_make, is_ours, user, owner, may_own),) = self.rows(RIGHTS, name)
        lines = []
        if not may_make:
            what = f"GRANT CREATE ON SCHEMA {self.dialect.quote(target.namespace)} TO {user}"
            lines.append(f"{user} may make no table in {target.namespace}: {what}")
        if not is_ours:
            lines.append(
                f"the table is {owner}'s, and {user} may not rename it: make {user} its owner, or a"
                f" member of {owner}"
            )
        if not may_own:
            schema = self.dialect.quote(target.namespace)
            lines.append(
                f"the table is {owner}'s, who may be given no other one in {target.namespace}: "
                f"GRANT CREATE ON SCHEMA {schema} TO {owner}"
            )
        for pid, whose, seconds in self.rows(HELD, name):
            lines.append(
                f"a transaction of {whose} has had a lock on it for {seconds} s (process {pid}): "
                "wait until it ends, or end it"
            )
        return lines

    def take_over(self, old: TargetName, new: TargetName) -> Iterator[str]:
        return take_over(self, old, new)

    def remarks(self) -> Iterator[str]:
        """fsync is the server's."""
        ((fsync,),) = self.rows("SHOW fsync")
        if fsync == "off":
            yield "fsync is off: after a crash of the machine the database may be damaged"
