"""Databases as files of 0.1.0 name them: ``jdbc:`` URLs, and nothing of TLS. One release more."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.config.file import load
from daemon.operations.checks.check import warnings
from databases.base.url import parse_url
from sparkwriter.sinks import says_no_tls

BEFORE = """
[daemon]
state_dir = "state"
staging_dir = "staging"
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[sink.copy]
kind = "jdbc"
url = "{sink}"
user = "binlogd"
[database.shop]
url = "{source}"
user = "binlogd"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
database = "shop"
target = "copy.{{database}}.{{table}}"
"""


def configured(folder: Path, sink: str, source: str) -> Config:
    (folder / "config.toml").write_text(BEFORE.format(sink=sink, source=source))
    return load(folder / "config.toml")


@pytest.mark.parametrize("kind", ["mysql", "mariadb", "postgresql"])
def test_a_file_without_tls_goes_on_and_is_told_what_to_write(kind: str, tmp_path: Path) -> None:
    """A source plain, a sink encrypted where the server can; both are named, before the check and
    in the daemon's log."""
    config = configured(tmp_path, f"jdbc:{kind}://db.example/x", f"jdbc:{kind}://db.example/x")
    assert config.database["shop"].login().tls == "off"
    (login,) = parse_url(config.sink["copy"].settings()["url"]).logins("binlogd", None)
    assert login.tls == "preferred"
    told = [line for line in warnings(config, tmp_path / "config.toml") if ".url " in line]
    assert [line.split(" ")[0] for line in told] == ["sink.copy.url", "database.shop.url"]
    assert all('Write tls = "verified"' in line for line in told)
    assert {at for at, _ in says_no_tls(config)} == {"sink.copy.url", "database.shop.url"}


@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("jdbc:postgresql://db.example/x?sslmode=disable", "off"),
        ("jdbc:postgresql://db.example/x?sslmode=prefer", "preferred"),
        ("jdbc:mysql://db.example/?sslMode=REQUIRED", "required"),
        ("jdbc:mariadb://db.example/?sslMode=verify-ca&serverSslCert=/ca.pem", "ca"),
        ("jdbc:postgresql://db.example/x?sslmode=verify-full&sslrootcert=/ca.pem", "verified"),
    ],
)
def test_a_drivers_parameters_are_read(url: str, tls: str, tmp_path: Path) -> None:
    """Nothing of it is told."""
    config = configured(tmp_path, url, "jdbc:mysql://127.0.0.1/")
    (login,) = parse_url(config.sink["copy"].settings()["url"]).logins("binlogd", None)
    assert (login.tls, login.tls_ca) == (tls, "/ca.pem" if "ca.pem" in url else None)
    assert list(says_no_tls(config)) == []
