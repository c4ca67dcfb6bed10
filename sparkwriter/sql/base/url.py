"""JDBC's URLs of PostgreSQL, MySQL and MariaDB as values. Pure."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}

_TLS = {
    "postgresql": ("disable", "prefer", "require", "verify-ca", "verify-full"),
    "mysql": ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"),
    "mariadb": ("disable", "", "trust", "verify-ca", "verify-full"),
}
"""Each driver's words for the same five things."""

TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")

_PARAMETERS = {
    "postgresql": ("sslmode", "sslrootcert"),
    "mysql": ("sslMode", "serverSslCert"),
    "mariadb": ("sslMode", "serverSslCert"),
}
"""By the driver: the mode of encryption, the file of the certificates to trust."""


class BadUrl(ValueError):
    """What is wrong with a URL, in one line, without secrets."""


@dataclass(frozen=True, slots=True)
class JdbcUrl:
    """Where a database is. ``tls`` is one of ``TLS_MODES``; ``certificates`` a file's path.

    With several hosts the first that can be written is used.
    """

    kind: str
    hosts: tuple[tuple[str, int], ...]
    database: str
    tls: str = "prefer"
    certificates: str | None = None

    @property
    def is_postgres(self) -> bool:
        """Whether it is PostgreSQL; else MySQL or MariaDB."""
        return self.kind == "postgresql"

    def __str__(self) -> str:
        """Host, port and database."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{self.kind}://{hosts}/{self.database}"


def parse_url(text: str) -> JdbcUrl:
    """Read ``jdbc:KIND://HOST[:PORT][,…]/DATABASE[?NAME=VALUE&…]``. Raises BadUrl."""
    found = re.fullmatch(r"jdbc:([a-z]+)://([^/?#]*)(?:/([^?#]*))?(?:\?([^#]*))?", text)
    if found is None:
        raise BadUrl("is not jdbc:KIND://HOST:PORT/DATABASE")
    kind, hosts, database, query = found[1], found[2], unquote(found[3] or ""), found[4] or ""
    if kind not in PORTS:
        raise BadUrl(f"jdbc:{kind} is none of {', '.join(f'jdbc:{one}' for one in PORTS)}")
    if "@" in hosts:
        raise BadUrl("user and password are keys of their own")
    if kind == "postgresql" and not database:
        raise BadUrl("names no database")
    mode, certificates = _parameters(kind, query)
    return JdbcUrl(
        kind,
        tuple(_host(one, PORTS[kind]) for one in hosts.split(",")),
        database,
        mode,
        certificates,
    )


def _host(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]+))(?::(\d{1,5}))?", text)
    if found is None:
        raise BadUrl(f"{text!r} is not HOST or HOST:PORT")
    number = int(found[3]) if found[3] else port
    if not 0 < number < 65536:
        raise BadUrl(f"{number} is no port")
    return found[1] or found[2], number


def _parameters(kind: str, query: str) -> tuple[str, str | None]:
    mode_name, file_name = _PARAMETERS[kind]
    mode, file = "prefer", None
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == mode_name:
            words = _TLS[kind]
            if not value or value not in words:
                known = ", ".join(word for word in words if word)
                raise BadUrl(f"{name}={value} is none of {known}")
            mode = TLS_MODES[words.index(value)]
        elif name == file_name and value:
            file = value
        else:
            raise BadUrl(f"the parameter {name} is none of {mode_name}, {file_name}")
    if mode.startswith("verify") and file is None and kind != "postgresql":
        raise BadUrl(f"{mode_name} needs {file_name}, the file of the certificates to trust")
    return mode, file


# How a connection to MySQL or MariaDB is encrypted, by its URL.


def tls_of(url: JdbcUrl) -> ssl.SSLContext | None:
    """None: it is not."""
    if url.tls == "disable":
        return None
    context = ssl.create_default_context(cafile=url.certificates)
    context.check_hostname = url.tls == "verify-full"
    if not url.tls.startswith("verify"):
        context.verify_mode = ssl.CERT_NONE
    return context
