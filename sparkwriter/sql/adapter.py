"""PostgreSQL, MySQL and MariaDB as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.routes.routing import Route
from databases.base.database import Database
from databases.base.errors import DatabaseAway, DatabaseError
from databases.base.section import TargetSection
from databases.base.url import BadUrl, Login, parse_url
from databases.opening import ADAPTERS
from settings.rotation import RotatedSettings, SecretSettings
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.port import Sessions, Sink
from sparkwriter.kit.readers import HowToRead, by_query, spelt
from sparkwriter.session.section import SparkSection
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.connect import connect_to
from sparkwriter.sql.queries import DatabaseQueries
from sparkwriter.sql.section import JdbcSection
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.try_out import try_out


def open_target(name: str, logins: Sequence[Login]) -> Database:
    """The database of a sink, whose tables are compared by the same texts as a source's: the first
    host that can be written, as for the sink's own connection. ``name``: as messages have it.
    Raises DatabaseAway, DatabaseRefused."""
    failed = list[str]()
    for login in logins:
        database = _opened(name, login)
        try:
            ((read_only,),) = database.ask(_READ_ONLY[login.kind])
        except DatabaseError as error:
            failed.append(str(error))
        else:
            if str(read_only) == "0" or len(logins) == 1:
                return database
            failed.append(f"{login} is read-only")
        database.close()
    raise DatabaseAway("; ".join(dict.fromkeys(failed)))


def _opened(name: str, login: Login) -> Database:
    section = TargetSection(url=f"{login.kind}://x/x", user=login.user or getpass.getuser())
    return ADAPTERS[login.kind](name, section, lambda: login)


_READ_ONLY = {
    "mysql": "SELECT @@global.read_only",
    "postgresql": "SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END",
}


class JdbcSink(Sink):
    """The ledger's rows keep writers apart."""

    def __init__(self, name: str, section: JdbcSection, config: SecretSettings) -> None:
        self._name = name
        self._section = section
        self._config = config

    def problems(self) -> Iterator[str]:
        """The URL, and the file of certificates that it names."""
        try:
            ca = self._section.tls_ca or parse_url(self._section.url).tls_ca
        except BadUrl as error:
            yield f"url: {error}"
            return
        if ca is not None and not Path(ca).is_file():
            yield f"tls_ca: {ca}, the file of certificates, is not there"

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """A password on an open wire."""
        yield from (f"url {line}" for line in self._section.warnings())

    def exchanges(self) -> JdbcStore:
        """A connection of its own."""
        return self._store()

    def database(self) -> Database:
        """As ``[database.NAME]`` would name it."""
        return open_target(f"sink {self._name}", self._logins(self._rotated()))

    def queries(self) -> DatabaseQueries:
        """A connection of its own."""
        return DatabaseQueries(self._name, self.database())

    def readers(self, target: TargetName) -> Iterator[HowToRead]:
        """By the database's own client, which asks for the password."""
        yield by_query(target)
        url, user = parse_url(self._section.url), self._section.user
        (host, port), *_ = url.hosts
        if url.kind == "postgresql":
            words = ["psql", "-h", host, "-p", str(port), *(["-U", user] if user else [])]
            words += ["-d", url.database, "-c", f"SELECT * FROM {spelt(*target[1:])}"]
            yield HowToRead("psql", shlex.join(words))
        else:
            place = ["-S", host] if host.startswith("/") else ["-h", host, "-P", str(port)]
            words = ["mariadb", *place, *(["-u", user] if user else []), "-p"]
            words += ["-e", f"SELECT * FROM {spelt(*target[1:], mark='`')}"]
            yield HowToRead("mariadb, mysql", shlex.join(words))

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Make the ledger."""
        store = self._store()
        try:
            assert store.ledger
        except (DatabaseError, TargetRefused) as error:
            raise SinkUnavailable(f"sink {self._name}: {error}") from error
        finally:
            store.close()

    def try_out(self, sessions: Sessions | None, routes: Iterable[Route]) -> Iterator[str]:
        """Connect, and look at the targets whose names are known."""
        own = (route for route in routes if route.template.split(".")[0] == self._name)
        targets: dict[TargetName, None] = dict.fromkeys(
            target for route in own for target in route.known_targets()
        )
        lines = try_out(self._connect(), self._section.ledger_schema, targets)
        yield from (f"sink {self._name}: {line}" for line in lines)

    def writer(self) -> ResettableSink:
        """One connection, made with its first call."""
        return LedgeredWriter(self._store())

    def _store(self) -> JdbcStore:
        section = self._section
        return JdbcStore(
            self._connect(),
            section.ledger_schema,
            section.write_timeout_s,
            or_null=section.unstorable == "null",
        )

    def _connect(self) -> Callable[[], Session]:
        """With the secrets that its files have at the time of each connection."""
        rotated = self._rotated()
        return lambda: connect_to(self._logins(rotated))

    def _rotated(self) -> RotatedSettings:
        return RotatedSettings(self._config, self._section.settings(), self._name)

    def _logins(self, rotated: RotatedSettings) -> list[Login]:
        said = self._section
        now = {**said.settings(), **rotated.take()}
        url, user, password = parse_url(now["url"]), now.get("user"), now.get("password")
        return list(url.logins(user, password, said.tls, said.tls_ca))


def make_sink(name: str, section: JdbcSection, config: SecretSettings) -> Sink:
    """See ``sparkwriter.sections``."""
    return JdbcSink(name, section, config)
