"""PostgreSQL, MySQL and MariaDB as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.routes.routing import Route
from databases.base.errors import DatabaseAway, DatabaseError, DatabaseRefused
from databases.base.port import Database
from databases.base.section import DatabaseSection, TargetSection
from databases.opening import ADAPTERS
from settings.rotation import Configuration, RotatedSettings
from sparkwriter.kit.marks_table.store import LedgeredWriter
from sparkwriter.kit.port import Sessions
from sparkwriter.session.section import SparkSection
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.base.url import BadUrl, JdbcUrl, parse_url
from sparkwriter.sql.connect import connect
from sparkwriter.sql.section import JdbcSection
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.try_out import try_out

# Opens the database of a sink as ``port.Database``: its tables are compared by the same texts.

Tls = Literal["off", "required", "verified"]

_TLS: Mapping[str, tuple[Tls, ...]] = {
    "disable": ("off",),
    "prefer": ("required", "off"),
    "require": ("required",),
    "verify-ca": ("verified",),
    "verify-full": ("verified",),
}
_WRITABLE = {
    "mysql": "SELECT @@global.read_only",
    "postgresql": "SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END",
}


def open_target(name: str, settings: Mapping[str, str]) -> Database:
    """The first host that can be written, as for the sink's own connection; ``settings`` are its
    section's. ``name``: as messages have it. Raises DatabaseAway, DatabaseRefused."""
    url, failed = parse_url(settings["url"]), list[str]()
    for section in _sections(url, settings):
        password = partial(str, section.password)
        database = ADAPTERS[section.address.kind](name, section, password)
        try:
            ((read_only,),) = database.ask(_WRITABLE[section.address.kind])
        except (DatabaseAway, DatabaseRefused) as error:
            failed.append(str(error))
        else:
            if str(read_only) == "0" or len(url.hosts) == 1:
                return database
            failed.append(f"{section.url} is read-only")
        database.close()
    raise DatabaseAway("; ".join(dict.fromkeys(failed)))


def _sections(url: JdbcUrl, settings: Mapping[str, str]) -> Iterator[DatabaseSection]:
    for (host, port), tls in product(url.hosts, _TLS[url.tls]):
        shown = f"[{host}]" if ":" in host else host
        yield TargetSection(
            url=f"jdbc:{url.kind}://{shown}:{port}/{url.database}",
            user=settings.get("user") or getpass.getuser(),
            password=settings.get("password", ""),
            tls=tls,
            tls_ca=url.certificates,
        )


class JdbcSink:
    """``sparkwriter.kit.port.Sink``."""

    def __init__(self, name: str, section: JdbcSection, config: Configuration) -> None:
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
        """As ``[database.NAME]`` would name it. See ``sparkwriter.kit.port.Sink``."""
        return open_target(f"sink {self._name}", self._settings_now())

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
