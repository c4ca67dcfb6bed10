"""Real database servers for tests, each with a user of its own for jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from actors.runtime.programs import ProgramMissing
from databases.base.database import Database
from databases.base.section import DatabaseSection
from databases.opening import ADAPTERS
from tests.live.mariadb import MariaDb
from tests.live.mysql import MySql
from tests.live.postgres import Postgres
from tests.live.program import HOST, LiveError

PASSWORD = 'jobs\' "secret"'


def opened(section: DatabaseSection) -> Database:
    """A database of a section, named shop."""
    return ADAPTERS[section.address.kind]("database.shop", section, section.login)


class Server:
    """A running server."""

    def __init__(self, kind: str, port: int, run: Callable[[Sequence[str]], str], ask: str) -> None:
        """``run`` gives the error of statements, or nothing; ``ask`` counts readers of its log."""
        self.kind, self.port = kind, port
        self._run, self._readers = run, ask

    def run(self, statements: Sequence[str]) -> None:
        """Run statements of one session as its owner. Raises LiveError."""
        if error := self._run(statements):
            raise LiveError(f"{self.kind}: {error}")

    def section(self, **more: object) -> DatabaseSection:
        """Its section in a configuration."""
        word = "mysql" if self.kind == "mysql" else self.kind
        end = "/postgres" if self.kind == "postgresql" else ""
        return DatabaseSection(
            url=f"jdbc:{word}://{HOST}:{self.port}{end}", user="jobs", password=PASSWORD, **more
        )

    def open(self, **more: object) -> Database:
        """A connection of the user for jobs."""
        section = self.section(**more)
        return opened(section)

    def readers(self) -> int:
        """How many follow its log."""
        database = self.open()
        try:
            return len(database.ask(self._readers))
        finally:
            database.close()


_BINLOG_READERS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog%'"
_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE active"


def users(rights: Sequence[str]) -> list[str]:
    """The statements that make the user for jobs, with these rights, and the readers'."""
    password = PASSWORD.replace("'", "''")
    return [
        f"CREATE USER jobs@'%' IDENTIFIED BY '{password}'",
        *(f"GRANT {right} ON *.* TO jobs@'%'" for right in rights),
        "CREATE USER live@'%' IDENTIFIED BY 'live'", "GRANT ALL ON *.* TO live@'%'",
    ]  # fmt: skip


@contextmanager
def mariadb(folder: Path) -> Iterator[Server]:
    """MariaDB."""
    try:
        server = MariaDb(folder)
    except LiveError as error:
        raise ProgramMissing("mariadb", str(error)) from error
    server.start()
    try:
        started = as_server(server)
        started.run(users(("SELECT, PROCESS, BINLOG MONITOR, REPLICA MONITOR",)))
        yield started
    finally:
        server.program.kill()


@contextmanager
def mysql(folder: Path) -> Iterator[Server]:
    """MySQL."""
    server = MySql(folder)
    server.start()
    try:
        started = Server("mysql", server.port, server.run, _BINLOG_READERS)
        started.run(users(("SELECT, PROCESS, REPLICATION CLIENT",)))
        yield started
    finally:
        server.program.kill()


@contextmanager
def postgresql(folder: Path) -> Iterator[Server]:
    """PostgreSQL, where passwords are not asked for."""
    try:
        server = Postgres(folder)
    except LiveError as error:
        raise ProgramMissing("postgresql", str(error)) from error
    server.start()
    try:
        started = Server(
            "postgresql", server.port, lambda script: server.run("postgres", script), _SLOTS
        )
        started.run(["CREATE USER jobs", "GRANT pg_read_all_data TO jobs"])
        yield started
    finally:
        server.program.kill()


@contextmanager
def replicated(folder: Path) -> Iterator[tuple[MariaDb, MariaDb]]:
    """MariaDB, and a replica of it that has applied what was there. The first is number 2."""
    rights = ("SELECT, PROCESS, BINLOG MONITOR, REPLICA MONITOR",)
    with ExitStack() as stack:
        both = []
        for number in (2, 3):
            try:
                server = MariaDb(folder / str(number), number=number)
            except LiveError as error:
                raise ProgramMissing("mariadb", str(error)) from error
            server.start()
            stack.callback(server.program.kill)
            _done(server, *users(rights))
            both.append(server)
        primary, replica = both
        made, right = "CREATE USER repl@'%' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.*"
        _done(primary, made, f"{right} TO repl@'%'")
        file, offset = primary.ask("SHOW MASTER STATUS").rows[0][:2]
        source = (
            f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={primary.port},"
            " MASTER_USER='repl', MASTER_PASSWORD='r',"
            f" MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}"
        )
        _done(replica, source, "START SLAVE")
        yield primary, replica


def as_server(server: MariaDb) -> Server:
    """One of these, as any other."""
    return Server("mariadb", server.port, server.run, _BINLOG_READERS)


def within(seconds: float, so: Callable[[], bool]) -> None:
    """Return when it is so, or fail."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not so():
        assert time.monotonic() < deadline
        pause.wait(0.1)


def _done(server: MariaDb, *statements: str) -> None:
    if error := server.run(statements):
        raise LiveError(f"MariaDB: {error}")


SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "mariadb": mariadb,
    "mysql": mysql,
    "postgresql": postgresql,
}
