"""A connection to MySQL or MariaDB that writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from changes.model.model import TargetName
from databases.base.errors import Cause
from databases.base.session import Purpose
from databases.base.session_settings import Server, writing
from databases.base.url import Login
from databases.mysql.session import MySqlSession
from settings.counted import counted
from sparkwriter.sql.base.session import LOCK_WITHIN_S, LoadedColumn, Session
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.mysql import catalog
from sparkwriter.sql.mysql.checks import grants, sees_triggers, tried
from sparkwriter.sql.mysql.words import MySqlDialect, inserts

STATEMENT_BYTES = 4 << 20
"""Of an INSERT at most, and never more than three quarters of the server's max_allowed_packet.
Smaller ones cost the server more; larger ones memory."""

_LIMITS = dict.fromkeys(("innodb_lock_wait_timeout", "lock_wait_timeout"), str(LOCK_WITHIN_S))


def _settings(server: Server) -> dict[str, str]:
    return {**writing(server), **_LIMITS}


class MySqlWriter(MySqlSession, Session):
    """See ``Session``."""

    transactional_ddl = False
    lasting_identity = False
    queries = catalog.QUERIES

    def __init__(self, login: Login) -> None:
        """Connect. Raises DatabaseError."""
        super().__init__(login, Purpose(_settings))
        self.dialect = MySqlDialect(mariadb=self.is_mariadb)

    def load(self, table: str, columns: Sequence[LoadedColumn]) -> None:
        """INSERTs of many rows: LOAD DATA would make warnings of errors, and needs a right of the
        server's that is off as it comes."""
        names = ", ".join(self.dialect.quote(column.name) for column in columns)
        head = f"INSERT INTO {table} ({names}) VALUES ".encode()
        added = 0
        for statement in inserts(head, columns, min(STATEMENT_BYTES, self.packet * 3 // 4)):
            if len(statement) >= self.packet:
                text = f"a row of {len(statement)} bytes, and max_allowed_packet is {self.packet}"
                raise self.error(Cause.REFUSED, text)
            with self._errors():
                added += self._connection.query(statement)
        if added != len(columns[0].texts):
            raise self.error(
                Cause.REFUSED, f"{counted(added, 'row was', 'rows were')} inserted, not all"
            )

    def describe(self, target: TargetName) -> DbTable | None:
        name = (target.namespace, target.table)
        table = self.rows(catalog.TABLE, name)
        if not table:
            return None
        others = (catalog.COLUMNS, catalog.UNIQUE, catalog.FOREIGN, catalog.TRIGGERS)
        found = (self.rows(query, name) for query in others)
        return catalog.table_of(table, *found)

    def identity(self, target: TargetName) -> str | None:
        return catalog.identity_of(self.rows(catalog.TABLE, target[1:]))

    def has_one_unique(self, target: TargetName) -> bool:
        found = self.rows(catalog.UNIQUE, (target.namespace, target.table))
        return all(is_primary for _, _, is_primary in found)

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """By trial. Locks are not to be seen without a right of their own."""
        return tried(self, into, aside) if self.has_schema(target.namespace) else []

    def sees_triggers(self, target: TargetName) -> bool:
        """With the right TRIGGER, the user's own or of a role."""
        return sees_triggers(grants(self.rows), target)

    def use(self, schema: str) -> None:
        """Temporary tables are in a database, too."""
        self.run(f"USE {self.dialect.quote(schema)}")

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """By a lock that the server has by names."""
        lock = f"SELECT GET_LOCK({self.dialect.literal(name)}, @@lock_wait_timeout)"
        if self.rows(lock) != [(1,)]:
            raise self.error(Cause.LATER, f"another connection has the lock {name}")
        try:
            yield
        finally:
            self.rows(f"SELECT RELEASE_LOCK({self.dialect.literal(name)})")

    def remarks(self) -> Iterator[str]:
        """Of durability: marks that a crash takes back would be below what is recorded."""
        ((flush,),) = self.rows("SELECT @@innodb_flush_log_at_trx_commit")
        if flush != 1:
            yield (
                f"innodb_flush_log_at_trx_commit is {flush}: a crash of the machine takes back the "
                "last commits, and the tables are then refused as rolled back; make it 1"
            )
