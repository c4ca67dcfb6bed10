"""MariaDB as a source of changes: a seed has two databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.comparison import Found
from tests.live.hostile import FIRST, init_connect, row_image
from tests.live.mariadb import MariaDb
from tests.live.mariadb_kinds import KINDS
from tests.live.mariadb_read import read
from tests.live.mariadb_rows import full
from tests.live.program import HOST, LiveError
from tests.live.schema import Maker, Name, Schema
from tests.live.sources import MARKER, markers, numbered

BINLOGD, PASSWORD = "binlogd", "k3y-of-binlogd"
"""By which it reads tables, with no more rights than the docs name."""
COLLECTOR = "collector"
"""By which it reads the log. Its password is no word: binlogd's own log has asterisks for it."""


class MariaDbSource:
    """A ``Source``. One thread's."""

    prefix = "m"
    tells_statements = True
    publication = ""
    kinds: Mapping[Maker, float] = KINDS
    hostile: Mapping[Maker, float] = {}

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; raises LiveError where MariaDB is missing."""
        self._server = MariaDb(folder)
        self._images: dict[str, str] = {}
        self.port = self._server.port
        self.program = self._server.program

    def start(self) -> None:
        self._server.start()
        self._must(
            [
                "CREATE USER IF NOT EXISTS live@'%' IDENTIFIED BY 'live'",
                "GRANT ALL ON *.* TO live@'%'",
                f"CREATE USER IF NOT EXISTS {COLLECTOR}@'%' IDENTIFIED BY '{PASSWORD}'",
                f"GRANT ALL ON *.* TO {COLLECTOR}@'%'",
                f"CREATE USER IF NOT EXISTS {BINLOGD}@'%' IDENTIFIED BY '{PASSWORD}'",
                f"GRANT SELECT, BINLOG MONITOR ON *.* TO {BINLOGD}@'%'",
                init_connect(),
            ]
        )

    def prepare(self, seed: int, images: Sequence[str]) -> Schema:
        databases = (f"m{seed}_a", f"m{seed}_b")
        self._images[databases[0]] = row_image(seed, images)
        self._must([f"CREATE DATABASE {name}" for name in databases])
        return Schema(databases, hostile=seed >= FIRST)

    def connector(self, seed: int, folder: Path) -> Mapping[str, str]:
        history = "schema.history.internal"
        words = {"column.propagate.source.type": ".*"} if seed // 2 % 2 else {}
        return words | {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": HOST, "database.port": str(self._server.port),
            "database.user": "live", "database.password": "live",
            "database.server.id": str(1000 + seed % 1_000_000),
            "database.include.list": f"m{seed}_.*",
            "bigint.unsigned.handling.mode": "precise",
            "include.schema.changes": "true",
            # After an outage; a minute of its own accord, in which nothing would be tried.
            "connect.keep.alive.interval.ms": "1000",
            history: "io.debezium.storage.file.history.FileSchemaHistory",
            f"{history}.file.filename": str(folder / f"history-m{seed}"),
            f"{history}.store.only.captured.databases.ddl": "true",
        }  # fmt: skip

    def readers(self) -> frozenset[str]:
        query = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog%'"
        return frozenset(f"{self.port}:{row[0]}" for row in self._server.ask(query).rows)

    def run(self, schema: Schema, statements: Sequence[str]) -> str:
        image = self._images[schema.databases[0]]
        before = [] if image == "FULL" else [f"SET SESSION binlog_row_image = '{image}'"]
        return self._server.run([*before, *statements])

    def write(self, schema: Schema, numbers: Sequence[range]) -> str:
        return self._server.run(numbered(full((schema.databases[0], MARKER)), numbers))

    def address(self, seed: int) -> tuple[str, str, str]:
        return f"jdbc:mariadb://{HOST}:{self.port}/", BINLOGD, PASSWORD

    def log_address(self, seed: int) -> tuple[str, str, str]:
        return f"jdbc:mariadb://{HOST}:{self.port}/", COLLECTOR, PASSWORD

    def mark(self, schema: Schema, number: int) -> None:
        self.beat(schema, number)

    def beat(self, schema: Schema, number: int, partitions: int = 1) -> None:
        for marker in markers(partitions):
            name = full((schema.databases[0], marker))
            self._must([
                f"CREATE TABLE IF NOT EXISTS {name} (id INT PRIMARY KEY)",
                f"INSERT INTO {name} VALUES ({number})",
            ])  # fmt: skip

    def read(self, schema: Schema) -> Mapping[Name, Found]:
        return read(self._server, schema.databases)

    def _must(self, statements: Sequence[str]) -> None:
        if error := self._server.run(statements):
            raise LiveError(f"MariaDB: {error}")
