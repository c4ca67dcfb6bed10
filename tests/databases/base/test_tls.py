"""Encrypted connections to real servers, and Unix sockets: for what reads and what writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.base.errors import DatabaseAway, DatabaseError, DatabaseRefused
from databases.base.section import DatabaseSection
from databases.base.url import parse_url
from sparkwriter.sql.connect import connect
from tests.certificates import Authority
from tests.databases.base.conftest import folder
from tests.databases.base.servers import opened
from tests.live.mariadb import MariaDb
from tests.live.postgres import Postgres
from tests.live.program import HOST

pytestmark = pytest.mark.integration


class Place:
    """A server with certificates. ``url``, ``socket``: as people write them."""

    def __init__(self, url: str, socket: str, user: str, ca: Path) -> None:
        self.url, self.socket, self.user, self.ca = url, socket, user, ca


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Its certificate is for 127.0.0.1."""
    with folder() as where:
        authority = Authority(where, "ca")
        cert, key = authority.signed("server")
        if request.param == "mariadb":
            options = [f"--ssl-ca={authority.file}", f"--ssl-cert={cert}", f"--ssl-key={key}"]
            server: MariaDb | Postgres = MariaDb(where / "server", options=options)
            kind, end, user = "mysql", "", "root"
            socket = str(where / "server" / "s")
        else:
            settings = {"ssl": "on", "ssl_cert_file": str(cert), "ssl_key_file": str(key)}
            server = Postgres(where / "server", settings)
            if os.geteuid() == 0:
                shutil.chown(key, "postgres", "postgres")
            kind, end, user = "postgresql", "/postgres", "postgres"
            socket = str(where / "server")
        server.start()
        try:
            url = f"{kind}://{HOST}:{server.port}{end}"
            at = socket.replace("/", "%2F")
            yield Place(url, f"{kind}://{at}:{server.port}{end}", user, authority.file)
        finally:
            server.program.kill()


SHOW = {
    "mysql": "SHOW STATUS LIKE 'Ssl_cipher'",
    "postgresql": "SELECT '', CASE WHEN ssl THEN cipher ELSE '' END FROM pg_stat_ssl"
    " WHERE pid = pg_backend_pid()",
}


def ciphers(place: Place, url: str, **keys: str) -> list[bool]:
    """Whether the connection that reads is encrypted, and the one that writes."""
    parsed = parse_url(url)
    database = opened(DatabaseSection(url=url, user=place.user, **keys))
    session = connect(parsed, place.user, None, **keys)
    try:
        shown = SHOW[parsed.kind]
        ((_, read),), ((_, written),) = database.ask(shown), session.rows(shown)
        return [bool(read), bool(written)]
    finally:
        database.close()
        session.close()


def test_on_this_machine_it_is_plain_unless_it_says_so(place: Place) -> None:
    """There is nobody on the way."""
    assert ciphers(place, place.url) == [False, False]
    assert ciphers(place, place.url, tls="required") == [True, True]
    assert ciphers(place, place.url, tls="verified", tls_ca=str(place.ca)) == [True, True]


def test_a_unix_socket(place: Place) -> None:
    """Its path stands in the host's place. Spark's tasks do not reach it."""
    assert ciphers(place, place.socket) == [False, False]
    database = opened(DatabaseSection(url=place.socket, user=place.user))
    with pytest.raises(DatabaseRefused, match="Spark reads by TCP alone"):
        database.jdbc()
    database.close()


def test_a_jdbc_url_of_before_goes_on_as_it_was(place: Place) -> None:
    """A source's was plain, a sink's encrypted where the server could."""
    assert ciphers(place, f"jdbc:{place.url}") == [False, True]


def test_a_server_that_nobody_vouches_for_is_refused(place: Place, tmp_path: Path) -> None:
    """By an authority that the machine does not know, and by another one's certificate."""
    for keys in ({}, {"tls_ca": str(Authority(tmp_path, "another").file)}):
        database = opened(DatabaseSection(url=place.url, user=place.user, tls="verified", **keys))
        with pytest.raises(DatabaseAway, match=r"(?i)certificate verify failed"):
            database.ask("SELECT 1")
        with pytest.raises(DatabaseError, match=r"(?i)certificate verify failed"):
            connect(parse_url(place.url), place.user, None, tls="verified", **keys)


def test_a_certificate_of_another_name_is_refused(place: Place) -> None:
    """The server that it was made for is another one."""
    url = place.url.replace(HOST, "localhost")
    keys = {"tls": "verified", "tls_ca": str(place.ca)}
    database = opened(DatabaseSection(url=url, user=place.user, **keys))
    with pytest.raises(DatabaseAway, match=r"(?i)hostname mismatch|does not match host name"):
        database.ask("SELECT 1")


def test_the_users_own_authorities_of_libpq_count(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the home folder, as `sslmode=verify-full` without one has always had it; Spark's
    driver looks there, too."""
    if not place.url.startswith("postgresql"):
        return
    monkeypatch.setenv("HOME", str(tmp_path))
    database = opened(DatabaseSection(url=place.url, user=place.user, tls="verified"))
    assert "DefaultJavaSSLFactory" in database.jdbc().url
    (tmp_path / ".postgresql").mkdir()
    shutil.copy(place.ca, tmp_path / ".postgresql" / "root.crt")
    assert ciphers(place, place.url, tls="verified") == [True, True]
    assert ciphers(place, f"jdbc:{place.url}?sslmode=verify-full") == [True, True]
    assert "DefaultJavaSSLFactory" not in database.jdbc().url
