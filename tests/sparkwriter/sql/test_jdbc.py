"""A database as a configured sink: what is told before the start, and secrets that change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from daemon.config.file import load
from sparkwriter.sql.adapter import JdbcSink
from sparkwriter.sql.section import JdbcSection
from sparkwriter.sql.try_out import try_out
from tests.sparkwriter.databases import Server, running


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each in turn."""
    with running(request.param) as made:
        yield made


@pytest.fixture
def sink(tmp_path: Path) -> Any:
    """The sink of a configuration, by its keys."""

    def make(keys: str) -> JdbcSink:
        path = tmp_path / "config.toml"
        path.write_text(
            f"""
[daemon]
state_dir = "state"
staging_dir = "staging"
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.copy]
kind = "jdbc"
{keys}
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
include = ["shop.orders"]
target = "copy.shop.orders"
"""
        )
        config = load(path)
        section = config.sink["copy"]
        assert isinstance(section, JdbcSection)
        return JdbcSink("copy", section, config)

    return make


def test_a_url_that_is_none(sink) -> None:
    """By its key."""
    assert list(sink('url = "jdbc:oracle://db/x"').problems()) == [
        "url: is not KIND://HOST:PORT/DATABASE, KIND being mysql, mariadb or postgresql"
    ]
    missing = sink('url = "jdbc:mysql://db?sslMode=VERIFY_CA&serverSslCert=/nowhere"')
    assert list(missing.problems()) == ["tls_ca: /nowhere, the file of certificates, is not there"]


def test_a_connection_that_may_be_open(sink) -> None:
    """To another machine."""
    (line,) = sink('url = "jdbc:mysql://db/"').warnings(None)
    assert line.startswith("url says nothing of tls, so the connection may be unencrypted")
    for said in ('"jdbc:mysql://localhost/"', '"mysql://db/"', '"jdbc:mysql://db/"\ntls = "off"'):
        assert list(sink(f"url = {said}").warnings(None)) == []


def test_a_server_that_is_not_there(sink) -> None:
    """When it starts, and when it is checked."""
    none = sink('url = "jdbc:postgresql://127.0.0.1:1/x"')
    with pytest.raises(SinkUnavailable, match=r"sink copy: 127\.0\.0\.1:1"):
        none.open("me", None)
    (line,) = none.try_out(None, [])
    assert line.startswith("sink copy: 127.0.0.1:1: ")


def test_nothing_is_left_of_a_check(server: Server) -> None:
    """Neither the ledger nor its schema."""
    told = list(try_out(server.connect, "checked", []))
    assert all("flush_log" in line for line in told)
    session = server.connect()
    assert not session.has_schema("checked")
    session.close()


def test_what_is_wrong_with_tables_is_told(server: Server) -> None:
    """Each in a line that begins with its name."""
    session = server.connect()
    if not session.has_schema("told"):
        session.run("CREATE SCHEMA told")
    rounds = "timestamp(3)" if server.is_postgres else "datetime(3)"
    session.run(f"CREATE TABLE told.bad (n int, at {rounds})")
    session.run("CREATE TABLE told.good (id bigint PRIMARY KEY, n int)")
    session.close()
    targets = [TargetName("copy", "told", name) for name in ("bad", "good", "none")]
    told = [line for line in try_out(server.connect, "checked", targets) if "flush" not in line]
    assert [line.split(":")[0] for line in told] == ["copy.told.bad"] * 2
    assert any("it rounds" in line for line in told)
    assert any("has no primary key" in line for line in told)


def test_a_password_that_is_rotated(server: Server, sink, tmp_path: Path) -> None:
    """It is read again for each connection."""
    session = server.connect()
    secret = tmp_path / "password"
    secret.write_text("first-one")
    if server.is_postgres:
        return  # the test's server trusts everybody, so that no password is wrong
    session.run("CREATE USER rotated@'127.0.0.1' IDENTIFIED BY 'first-one'")
    session.run("GRANT ALL ON *.* TO rotated@'127.0.0.1'")
    made = sink(f'url = "{server.url}"\nuser = "rotated"\npassword = "${{file:{secret}}}"')
    made.open("me", None)
    session.run("ALTER USER rotated@'127.0.0.1' IDENTIFIED BY 'second-one'")
    with pytest.raises(SinkUnavailable, match="Access denied"):
        made.open("me", None)
    secret.write_text("second-one")
    made.open("me", None)
    session.close()
