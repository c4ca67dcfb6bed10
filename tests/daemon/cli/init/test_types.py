"""``binlogd init --database``: types of tables whose messages name none."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from daemon.config.file import load
from tests.daemon.cli.init.test_command import init, source
from tests.databases.base.servers import PASSWORD, Server

pytestmark = pytest.mark.integration


def maxwell(table: str) -> bytes:
    row = {"id": 7, "name": "x", "price": 1.5}
    return json.dumps(
        {"database": "typed", "table": table, "type": "insert", "ts": 1, "data": row,
         "primary_key_columns": ["id"]}
    ).encode()  # fmt: skip


def test_columns_get_the_databases_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: dict[str, Server]
) -> None:
    """In a route of the table alone, whatever its name matches; texts need none. A table that the
    database lacks is told, and stays text."""
    server = servers["mariadb"]
    server.run([
        "CREATE DATABASE typed", "CREATE TABLE typed.`o[1]` (id BIGINT UNSIGNED PRIMARY KEY, "
        "name VARCHAR(9), price DECIMAL(10,2), day DATE, at DATETIME(6), seen TIMESTAMP(3), "
        "state ENUM('a','b'), ok BIT(1), raw BLOB, ratio DOUBLE, count INT, big BIGINT, d TIME)",
    ])  # fmt: skip
    source(monkeypatch, maxwell("o[1]"), maxwell("gone"))
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    url = f"mariadb://jobs@127.0.0.1:{server.port}/"
    done = init(tmp_path, "--database", url, "--database-password-file", str(password))
    assert done.exit_code == 0, done.stderr
    first, gone, *_ = done.stdout.splitlines()
    assert "1 of them with text columns alone, 1 of them with the database's types" in first
    assert gone.startswith("typed.gone: ")
    config = load(tmp_path / "c.toml")
    others, own = config.pipeline["shop"].route
    assert (others.tables, others.exclude) == (["*"], ["typed.o[[]1]"])
    assert own.tables == ["typed.o[[]1]"]
    document = tomllib.loads((tmp_path / "c.toml").read_text())
    assert document["pipeline"]["shop"]["route"][1]["types"] == {
        "id": "bigint unsigned", "price": "decimal(10, 2)", "day": "date", "at": "timestamp",
        "seen": "timestamptz", "ok": "boolean", "raw": "binary", "ratio": "double", "count": "int",
        "big": "bigint",
    }  # fmt: skip
    assert PASSWORD not in (tmp_path / "c.toml").read_text()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://jobs:secret@127.0.0.1/", "has a password in it"),
        ("mysql://127.0.0.1/", "names no user"),
        ("mysql://jobs@127.0.0.1:1/", "--database: "),
    ],
)
def test_a_database_that_cant_be_asked_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    """Types are decided when a table is made: none is guessed."""
    source(monkeypatch, maxwell("orders"))
    done = init(tmp_path, "--database", url)
    assert done.exit_code == 2
    assert why in done.stderr
    assert not list(tmp_path.iterdir())
