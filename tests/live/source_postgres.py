"""PostgreSQL as a source of changes: a seed has a database with two schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.comparison import Found
from tests.live.hostile import FIRST, of_role
from tests.live.postgres import Postgres
from tests.live.postgres_kinds import HOSTILE, KINDS
from tests.live.postgres_published import NAME, Published, added, is_picked
from tests.live.postgres_read import published, read
from tests.live.postgres_rows import full, mark
from tests.live.program import HOST, LiveError
from tests.live.schema import Maker, Name, Schema, Table
from tests.live.sources import MARKER, MOST_PARTITIONS, markers, numbered

BINLOGD = "binlogd"
"""By which it reads tables, with no more rights than the docs name."""


class PostgresSource:
    """A ``Source``. One thread's."""

    prefix = "p"
    tells_statements = False
    publication = NAME
    kinds: Mapping[Maker, float] = KINDS
    hostile: Mapping[Maker, float] = HOSTILE

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; raises LiveError where PostgreSQL is missing."""
        self._server = Postgres(folder)
        self.port = self._server.port
        self.program = self._server.program

    def start(self) -> None:
        self._server.start()
        if not self._server.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{BINLOGD}'").rows:
            made = (f"CREATE ROLE {BINLOGD} LOGIN", f"GRANT pg_read_all_data TO {BINLOGD}")
            self._must("postgres", [*made, *of_role(BINLOGD)])

    def prepare(self, seed: int, images: Sequence[str]) -> Schema:
        schemas = (f"p{seed}_a", f"p{seed}_b")
        self._must("postgres", [_DROP_UNUSED])
        self._must("postgres", [f"CREATE DATABASE p{seed}"])
        self._must(f"p{seed}", [f"CREATE SCHEMA {name}" for name in schemas])
        if is_picked(seed):
            self._must(f"p{seed}", [f"CREATE PUBLICATION {NAME}"])
            for marker in markers(MOST_PARTITIONS):
                table = Table((schemas[0], marker), (), ("id",))
                made = f"CREATE TABLE {full(table.name)} (id int PRIMARY KEY)"
                self._must(f"p{seed}", [made, added(table, Published())])
        else:
            self._must(f"p{seed}", [f"CREATE PUBLICATION {NAME} FOR ALL TABLES"])
        return Schema(schemas, hostile=seed >= FIRST, published=is_picked(seed))

    def connector(self, seed: int, folder: Path) -> Mapping[str, str]:
        slot = f"live_p{seed}"
        if is_picked(seed):
            # A snapshot would have what the publication leaves out: the reader begins here.
            made = f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"
            self._must(f"p{seed}", [made])
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": HOST, "database.port": str(self._server.port),
            "database.user": "postgres", "database.dbname": f"p{seed}",
            "plugin.name": "pgoutput", "slot.name": slot, "slot.retry.delay.ms": "1000",
            "snapshot.mode": "no_data" if is_picked(seed) else "initial",
            "publication.name": NAME,
            "publication.autocreate.mode": "disabled",
        }  # fmt: skip

    def readers(self) -> frozenset[str]:
        query = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE active;"
        return frozenset(":".join(row) for row in self._server.ask(query).rows)

    def run(self, schema: Schema, statements: Sequence[str]) -> str:
        return self._server.run(_database(schema), statements)

    def mark(self, schema: Schema, number: int) -> None:
        """A row of each table is written anew before it: columns that changed show in no other
        way, and a table whose rows all stand before the change would differ unknown to anybody."""
        shown = published(self._server, _database(schema))
        touched = [(table, shown.get(table.name, Published())) for table in schema.tables]
        self._must(_database(schema), [_touch(table, has.rows) for table, has in touched])
        self.beat(schema, number)

    def beat(self, schema: Schema, number: int, partitions: int = 1) -> None:
        for marker in markers(partitions):
            name = full((schema.databases[0], marker))
            made = f"CREATE TABLE IF NOT EXISTS {name} (id int PRIMARY KEY)"
            self._must(_database(schema), [made, f"INSERT INTO {name} VALUES ({number})"])

    def write(self, schema: Schema, numbers: Sequence[range]) -> str:
        marker = full((schema.databases[0], MARKER))
        return self._server.run(_database(schema), numbered(marker, numbers))

    def address(self, seed: int) -> tuple[str, str, str]:
        return f"jdbc:postgresql://{HOST}:{self.port}/p{seed}", BINLOGD, ""

    def log_address(self, seed: int) -> tuple[str, str, str]:
        return f"jdbc:postgresql://{HOST}:{self.port}/p{seed}", "postgres", ""

    def read(self, schema: Schema) -> Mapping[Name, Found]:
        return read(self._server, _database(schema), schema.databases)

    def _must(self, database: str, statements: Sequence[str]) -> None:
        if error := self._server.run(database, statements):
            raise LiveError(f"PostgreSQL: {error}")


_DROP_UNUSED = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
)
"""The slots of rounds that have ended; nothing of the next round reads yet. A connector does not
drop its own: one that is started again after an outage would have nowhere to go on from."""


def _touch(table: Table, rows: str | None) -> str:
    """``rows``: the filter of those that the stream has."""
    name, key = full(table.name), mark(table.key[0])
    where = "" if rows is None else f" WHERE {rows}"
    some = f"SELECT ctid FROM ONLY {name}{where} LIMIT 1"
    return f"UPDATE ONLY {name} SET {key} = {key} WHERE ctid IN ({some})"


def _database(schema: Schema) -> str:
    """The database that has a seed's schemas."""
    return schema.databases[0].removesuffix("_a")
