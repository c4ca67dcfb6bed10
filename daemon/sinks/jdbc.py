"""PostgreSQL, MySQL and MariaDB as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from actors.contract.ports import ResettableSink, SinkUnavailable, TargetRefused
from changes.model import TargetName
from changes.routing import Route
from daemon.config.config import Config
from daemon.config.rotation import RotatedSettings
from daemon.config.sections import SparkSection
from daemon.databases.port import Database
from daemon.sinks.jdbc_tables import open_target
from daemon.sinks.port import Sessions
from daemon.sinks.sections import JdbcSection
from sparkwriter.jdbc.connect import connect
from sparkwriter.jdbc.session import DbError, Session
from sparkwriter.jdbc.store import JdbcStore
from sparkwriter.jdbc.try_out import try_out
from sparkwriter.jdbc.url import BadUrl, parse_url
from sparkwriter.ledgered.store import LedgeredWriter


class JdbcSink:
    """``daemon.sinks.port.Sink``."""

    def __init__(self, name: str, section: JdbcSection, config: Config) -> None:
        self._name = name
        self._section = section
        self._config = config

    def problems(self) -> Iterator[str]:
        """The URL, and the file of certificates that it names."""
        try:
            url = parse_url(self._section.url)
        except BadUrl as error:
            yield f"url: {error}"
            return
        if url.certificates is not None and not Path(url.certificates).is_file():
            yield f"url: {url.certificates}, the file of certificates, is not there"

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """A password on an open wire."""
        try:
            url = parse_url(self._section.url)
        except BadUrl:
            return
        local = all(host in ("localhost", "127.0.0.1", "::1") for host, _ in url.hosts)
        if not local and url.tls in ("disable", "prefer"):
            yield "url: the connection may be unencrypted: set sslmode (MySQL, MariaDB: sslMode)"

    @property
    def single_writer(self) -> str | None:
        """The ledger's rows keep writers apart."""
        return None

    def probe(self) -> bool:
        """Nothing can be tried without connecting, which ``try_out`` does."""
        return False

    def catalog(self) -> Mapping[str, str] | None:
        """It is written without Spark."""
        return None

    def keeps_names(self) -> str | None:
        """Its tables can be renamed."""
        return None

    def exchanges(self) -> JdbcStore:
        """A connection of its own."""
        return self._store()

    def database(self) -> Database:
        """As ``[database.NAME]`` would name it. See ``daemon.sinks.port.Sink``."""
        return open_target(f"sink {self._name}", self._settings_now())

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Make the ledger."""
        store = self._store()
        try:
            assert store.ledger
        except (DbError, TargetRefused) as error:
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

    def prepare_stop(self) -> None:
        """It does nothing but write."""

    def _store(self) -> JdbcStore:
        section = self._section
        return JdbcStore(
            self._connect(),
            section.ledger_schema,
            section.write_timeout_s,
            or_null=section.unstorable == "null",
        )

    def _connect(self) -> partial[Session]:
        """With the secrets that its files have at the time of each connection."""
        rotated = RotatedSettings(self._config, self._section.settings(), self._name)
        return partial(_connect, self._section.settings(), rotated)

    def _settings_now(self) -> Mapping[str, str]:
        settings = self._section.settings()
        return {**settings, **RotatedSettings(self._config, settings, self._name).take()}


def _connect(settings: Mapping[str, str], rotated: RotatedSettings) -> Session:
    now = {**settings, **rotated.take()}
    return connect(parse_url(now["url"]), now.get("user"), now.get("password"))
