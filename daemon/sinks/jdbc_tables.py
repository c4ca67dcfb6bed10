"""Opens the database of a sink as ``port.Database``: its tables are compared by the same texts."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Literal

from daemon.databases.opening import ADAPTERS
from daemon.databases.port import Database, DatabaseAway, DatabaseRefused
from daemon.databases.sections import DatabaseSection, TargetSection
from sparkwriter.jdbc.url import JdbcUrl, parse_url

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
