"""Real databases for the sinks' tests: one server of each kind a run; tests have tables of their
own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from actors.runtime.programs import ProgramMissing
from changes.model.model import TargetName
from databases.base.url import parse_url
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.stored import read_table
from tests.live.mariadb import MariaDb
from tests.live.mysql import MySql
from tests.live.postgres import Postgres
from tests.live.program import LiveError
from tests.needs import missing

AnyServer = MariaDb | MySql | Postgres
KINDS: dict[str, type[AnyServer]] = {"postgres": Postgres, "mariadb": MariaDb, "mysql": MySql}


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    user: str
    program: AnyServer

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("jdbc:postgresql")

    @property
    def exact_text(self) -> str:
        """A type of MySQL's that keys can be compared by."""
        name = "nopad" if self.url.startswith("jdbc:mariadb") else "0900"
        return f"varchar(20) COLLATE utf8mb4_{name}_bin"

    def connect(self) -> Session:
        """One more connection."""
        return connect(parse_url(self.url), self.user, None)


@contextmanager
def running(kind: str) -> Iterator[Server]:
    """A server of the kind. Skips the test where the machine has none."""
    folder = Path(tempfile.mkdtemp(prefix=f"binlogd-{kind}-"))
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own
    try:
        made = KINDS[kind](folder / "server")
    except ProgramMissing:
        shutil.rmtree(folder)
        raise
    except LiveError as error:
        shutil.rmtree(folder)
        missing(kind, str(error))
    try:
        made.start()
        if kind == "postgres":
            yield Server(f"jdbc:postgresql://127.0.0.1:{made.port}/postgres", "postgres", made)
        else:
            yield Server(f"jdbc:{kind}://127.0.0.1:{made.port}/", "root", made)
    finally:
        made.program.kill()
        shutil.rmtree(folder)


class JdbcTables:
    """A database's tables as the contract asks for them (``tests.sparkwriter.kit.conftest``)."""

    def __init__(self, server: Server, connect: Callable[[], Session] | None = None) -> None:
        self.server = server
        self._connect = connect or server.connect
        self._made: list[JdbcStore] = []

    def store(self) -> JdbcStore:
        self._made.append(JdbcStore(self._connect, "binlogd"))
        return self._made[-1]

    def swaps(self) -> LedgeredWriter:
        return LedgeredWriter(self.store())

    def read(self, target: TargetName) -> pa.Table:
        store = self.store()
        seen = store.look(target)
        assert not isinstance(seen, Absent)
        return read_table(store.session, seen)

    def close(self) -> None:
        for store in self._made:
            store.close()
