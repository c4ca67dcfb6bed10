"""Where a database is and as whom it is read or written: ``mysql://reader@db.example/shop``. Pure.

A password has no place in it: every user of the machine sees the arguments of a command, and the
shell keeps them.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from databases.base.url import BadUrl, DatabaseUrl, parse_url

_WITH_USER = re.compile(r"([a-z]+)://(?:([^@/?#]*)@)?([^@]*)")

KINDS = ("mysql", "mariadb", "postgresql", "postgres")


class BadAddress(ValueError):
    """What is wrong, in one line, without any of it that may be secret."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """``url`` is what ``[database.NAME]`` takes: without the user."""

    url: str
    user: str

    def __str__(self) -> str:
        kind, _, rest = self.url.partition("://")
        return f"{kind}://{self.user}@{rest}"

    @property
    def parts(self) -> DatabaseUrl:
        """Of the url."""
        return parse_url(self.url)

    @property
    def name(self) -> str:
        """For its sections: the database's, else the host's, as far as a name may hold it."""
        parts = self.parts
        plain = re.sub(r"[^A-Za-z0-9_]+", "-", parts.database or parts.hosts[0][0]).strip("-")
        return plain if re.match("[A-Za-z]", plain) else f"db-{plain}".rstrip("-")


def is_database(text: str) -> bool:
    """Whether it names a database server."""
    return text.partition("://")[0].removeprefix("jdbc:") in KINDS


def parse_address(text: str, what: str) -> DatabaseAddress:
    """Read it; ``what``: how messages call it. Raises BadAddress."""
    if text.startswith("jdbc:"):
        raise BadAddress(f"{what}: is written without jdbc:, as mysql://USER@HOST:PORT/DATABASE")
    found = _WITH_USER.fullmatch(text)
    if found is None or found[1] not in KINDS:
        if ":" in text.partition("://")[2].rpartition("@")[0]:
            raise BadAddress(_OPEN.format(what))
        raise BadAddress(f"{what}: is not mysql://, mariadb:// or postgresql://USER@HOST/DATABASE")
    kind, user, rest = found.groups()
    if ":" in (user or ""):
        raise BadAddress(_OPEN.format(what))
    if not user:
        raise BadAddress(f"{what}: names no user: {kind}://USER@{rest}")
    address = DatabaseAddress(f"{kind}://{rest}", unquote(user))
    try:
        parts = address.parts
    except BadUrl as error:
        hint = "; --tls and --tls-ca say how it is encrypted" if "?" in rest else ""
        raise BadAddress(f"{what}: {error}{hint}") from error
    if len(parts.hosts) > 1:
        raise BadAddress(f"{what}: names several servers: one is read")
    if parts.hosts[0][0].startswith("/"):
        raise BadAddress(f"{what}: is a Unix socket: collector and Spark connect by TCP alone")
    return address


_OPEN = (
    "{}: has a password in it, which every user of this machine can see (ps) and the shell keeps. "
    "Leave it out: a prompt asks for it, or --password-file, or the environment. Change this one"
)


def patterns_of(
    address: DatabaseAddress, tables: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Patterns of ``database.table`` that are followed, and those that are left out (``!``).

    A name without a point is a table of the address's database (PostgreSQL: of the schema public).
    Raises BadAddress.
    """
    parts = address.parts
    home = "public" if parts.kind == "postgresql" else parts.database
    named = [one.strip() for text in tables for one in text.split(",") if one.strip()]
    whole = [_whole(one, home) for one in named]
    taken = tuple(dict.fromkeys(one for one in whole if not one.startswith("!")))
    left = tuple(dict.fromkeys(one[1:] for one in whole if one.startswith("!")))
    if taken:
        return taken, left
    return (f"{parts.database}.*" if parts.kind == "mysql" and parts.database else "*",), left


def _whole(name: str, home: str) -> str:
    sign, plain = ("!", name[1:]) if name.startswith("!") else ("", name)
    if "." in plain or (plain == "*" and not home):
        return sign + plain
    if not home:
        raise BadAddress(f"--tables {name}: write DATABASE.TABLE: the address names no database")
    return f"{sign}{home}.{plain}"


def is_same_server(one: DatabaseAddress, other: DatabaseAddress) -> bool:
    """Whether both are one server, as far as names and ports tell. Asks the machine's resolver."""
    return bool(_places(one) & _places(other))


def _places(address: DatabaseAddress) -> set[tuple[str, int]]:
    ((host, port),) = address.parts.hosts
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, port)}
    except OSError:  # the connection reports it
        found = set()
    return {(place, port) for place in found | {host}}
