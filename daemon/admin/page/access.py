"""Who may read: the page and the metrics show names of tables and texts of errors. Pure.

Without a token the page is for this machine alone: an address of loopback, or a Unix socket, whose
mode says who may connect. The name in the request must be this machine's, too, or one of
``metrics.hosts``: else a foreign web site whose name leads here could read the page and the metrics
through a browser that reaches this machine. An address is nobody's name: no site can have it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from daemon.config.loopback import is_loopback

OPEN = ("/healthz", "/readyz")
"""For probes, which have no token."""

NOT_HERE = (
    "The page is served on a loopback address, on a Unix socket, or with a token: set "
    "metrics.token (docs/configuration.md). /metrics, /healthz and /readyz are served.\n"
)


class Headers(Protocol):
    """A request's headers, by a name in any case."""

    def get(self, name: str, /) -> str | None:
        """The value, None without one."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered. ``headers`` say what would be."""

    status: HTTPStatus
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Access:
    """The rule of one server. ``host`` None: a Unix socket. ``token`` empty: none is required.
    ``hosts``: further names by which clients may call it."""

    host: str | None
    token: str
    hosts: tuple[str, ...] = ()

    def refusal(self, path: str, headers: Headers) -> Refusal | None:
        """Why this request is not answered, None if it is. A probe is, for everybody:
        with its status alone where this gives a reason."""
        if self.token and path not in OPEN:
            return None if self._has_token(headers.get("Authorization") or "") else _ASK
        if self.host is None:
            return None
        if not is_loopback(self.host) and path not in (*OPEN, "/metrics"):
            return Refusal(HTTPStatus.FORBIDDEN, NOT_HERE)
        named = (headers.get("Host") or "").strip()
        if self._is_here(_host(named)) or (path in OPEN and not named):  # no browser leaves it out
            return None
        text = f"{named!a} is not a name of this machine: add it to metrics.hosts\n"
        return Refusal(HTTPStatus.FORBIDDEN, text)

    def _is_here(self, name: str) -> bool:
        """Whether a client that reached this machine may call it so."""
        if name in {host.lower() for host in self.hosts}:
            return True
        if self.host is not None and is_loopback(self.host):
            return is_loopback(name)
        own = {"", "localhost", socket.gethostname().lower()}
        return name in own or _is_address(name)

    def _has_token(self, said: str) -> bool:
        """As ``Bearer TOKEN``, or as the password of any user, which a browser asks for."""
        scheme, _, rest = said.partition(" ")
        given = rest.strip().encode()
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given, self.token.encode())


_ASK = Refusal(
    HTTPStatus.UNAUTHORIZED,
    "metrics.token is required: as Bearer, or as the password of any user\n",
    {"WWW-Authenticate": 'Basic realm="binlogd", charset="UTF-8"'},
)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host(named: str) -> str:
    """The host of ``host:port``, ``[::1]:port``, ``host``."""
    if named.startswith("["):
        return named[1:].partition("]")[0]
    return named.partition(":")[0].lower()
