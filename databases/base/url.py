"""Where a database is, as people write it: ``mysql://db.example:3306/shop``. Pure.

One language for what is read and what is written. ``jdbc:`` before it, with a driver's parameters
behind it, is read as well: files of earlier versions have it.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, unquote

Kind = Literal["mysql", "postgresql"]
"""What a database speaks. MariaDB is a mysql, too."""

Tls = Literal["off", "preferred", "required", "ca", "verified"]
"""How a connection is encrypted: not; where the server can; always; by a server that one of the
authorities vouches for; that they vouch for by its name. ``tls`` may be three of them."""

_KINDS: dict[str, Kind] = {
    "mysql": "mysql", "mariadb": "mysql", "postgresql": "postgresql", "postgres": "postgresql",
}  # fmt: skip
_PORTS = {"mysql": 3306, "postgresql": 5432}

_PARAMETERS = {
    "postgresql": ("sslmode", "sslrootcert", "disable prefer require verify-ca verify-full"),
    "mysql": (
        "sslMode", "serverSslCert", "DISABLED PREFERRED REQUIRED VERIFY_CA VERIFY_IDENTITY",
    ),
    "mariadb": ("sslMode", "serverSslCert", "disable - trust verify-ca verify-full"),
}  # fmt: skip
"""By JDBC's driver: the mode of encryption, the file of the certificates to trust, and its words
for the five of ``Tls``."""
_MODES: tuple[Tls, ...] = ("off", "preferred", "required", "ca", "verified")


class BadUrl(ValueError):
    """What is wrong with a URL, in one line, without secrets."""


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A server, or several of which one can be written. ``tls`` and ``tls_ca`` are a JDBC URL's
    parameters. A host that begins with a slash is a Unix socket's path."""

    kind: Kind
    hosts: tuple[tuple[str, int], ...]
    database: str
    tls: Tls | None = None
    tls_ca: str | None = None
    is_jdbc: bool = False

    def says_no_tls(self, tls: Tls | None) -> str | None:
        """What a file of an earlier version must say about encryption; None where nothing is open.
        ``tls``: the key of that name."""
        if tls or self.tls or not self.is_jdbc or all(is_local(host) for host, _ in self.hosts):
            return None
        return (
            "says nothing of tls, so the connection may be unencrypted, or with anybody; from the "
            'next release on the server\'s certificate is checked. Write tls = "verified" (and '
            'tls_ca = "FILE", of an authority of your own), or tls = "off"'
        )

    def unread_ca(self, tls: Tls | None, tls_ca: str | None) -> str | None:
        """What must be said of a file of authorities that nobody looks at; None where none is
        lost. ``tls``, ``tls_ca``: the keys of these names."""
        said = tls or self.tls
        if tls_ca is None or said not in ("off", "preferred", "required"):
            return None
        return (
            f"tls_ca is not looked at with tls = {said!r}, so the connection may be with anybody; "
            'tls = "verified" checks the server\'s certificate by it'
        )

    def logins(
        self,
        user: str | None,
        password: str | None,
        tls: Tls | None = None,
        tls_ca: str | None = None,
        before: Tls = "preferred",
    ) -> Iterator[Login]:
        """One for each host. Where nothing is said, it is plain on this machine alone, and verified
        where ``tls_ca`` says by whom. ``before``: how a JDBC URL was encrypted that says nothing
        of it."""
        for host, port in self.hosts:
            plain = host.startswith("/") or (is_local(host) and tls_ca is None)
            unsaid: Tls = "off" if plain else "verified"
            said = tls or self.tls or (before if self.is_jdbc else unsaid)
            ca = tls_ca or self.tls_ca
            yield Login(self.kind, host, port, self.database, user, password, said, ca)


@dataclass(frozen=True, slots=True)
class Login:
    """One server, as whom, and how the connection is encrypted."""

    kind: Kind
    host: str
    port: int
    database: str
    user: str | None
    password: str | None = field(repr=False)
    tls: Tls = "verified"
    tls_ca: str | None = None

    def __str__(self) -> str:
        """Host and port."""
        return self.host if self.is_socket else f"{self.host}:{self.port}"

    @property
    def is_socket(self) -> bool:
        """Whether ``host`` is a Unix socket's path."""
        return self.host.startswith("/")

    @property
    def shown_host(self) -> str:
        """The host inside of a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def context(self) -> ssl.SSLContext | None:
        """The encryption, for a client that takes Python's; None: there is none."""
        if self.tls == "off":
            return None
        context = ssl.create_default_context(cafile=self.tls_ca)
        context.check_hostname = self.tls == "verified"
        if self.tls in ("preferred", "required"):
            context.verify_mode = ssl.CERT_NONE
        return context


def is_local(host: str) -> bool:
    """Whether it can only be this machine: nobody is on the way who could listen."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")


def parse_url(text: str) -> DatabaseUrl:
    """Read ``KIND://HOST[:PORT][,…][/DATABASE]``. Raises BadUrl."""
    if not unquote(text).isprintable():
        raise BadUrl("holds a character that can't be seen, such as a line's end")
    found = re.fullmatch(r"(jdbc:)?([a-z]+)://([^/?#]*)(?:/([^?#]*))?(?:\?([^#]*))?", text)
    if found is None or found[2] not in _KINDS:
        raise BadUrl("is not KIND://HOST:PORT/DATABASE, KIND being mysql, mariadb or postgresql")
    is_jdbc, hosts, database, query = bool(found[1]), found[3], unquote(found[4] or ""), found[5]
    kind = _KINDS[found[2]]
    if "@" in hosts:
        raise BadUrl("user and password are keys of their own")
    if kind == "postgresql" and not database:
        raise BadUrl("names no database: postgresql://HOST/DATABASE")
    if query and not is_jdbc:
        raise BadUrl("takes nothing behind ?: tls and tls_ca are keys of their own")
    mode, ca = _parameters(found[2], query) if query else (None, None)
    places = tuple(_host(one, _PORTS[kind]) for one in hosts.split(","))
    return DatabaseUrl(kind, places, database, mode, ca, is_jdbc)


def _host(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]+))(?::(\d{1,5}))?", text, re.ASCII)
    if found is None:
        raise BadUrl(f"{text!r} is not HOST or HOST:PORT")
    number = int(found[3]) if found[3] else port
    if not 0 < number < 65536:
        raise BadUrl(f"{number} is no port")
    host = found[1] or unquote(found[2])
    if "," in host:  # a client takes it for several hosts
        raise BadUrl(f"{host!r} is no host")
    return host, number


def _parameters(driver: str, query: str) -> tuple[Tls | None, str | None]:
    if driver not in _PARAMETERS:
        raise BadUrl(f"jdbc:{driver} is no driver: {', '.join(_PARAMETERS)}")
    mode_name, file_name, words = _PARAMETERS[driver]
    modes = dict(zip(words.split(), _MODES, strict=True))
    mode, file = None, None
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == mode_name:
            if value not in modes or value == "-":
                known = ", ".join(word for word in modes if word != "-")
                raise BadUrl(f"{name}={value} is none of {known}")
            mode = modes[value]
        elif name == file_name and value:
            file = value
        else:
            raise BadUrl(f"the parameter {name} is none of {mode_name}, {file_name}")
    return mode, file
