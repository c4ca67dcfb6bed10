"""``binlogd replicate`` up to the start: what it shows, writes and refuses, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.cli.replicate import command
from daemon.config.file import load
from tests.databases.base.servers import Server

pytestmark = pytest.mark.integration

PASSWORD = "s3cret of the reader"
BROKER = "127.0.0.1:1"


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Iterator[Server]:
    """A server with three tables, one without a key, and a user who may follow the others."""
    found = servers[request.param]
    made = ["CREATE SCHEMA cli", "CREATE TABLE cli.orders (id INT PRIMARY KEY, v VARCHAR(9))",
            "CREATE TABLE cli.items (id INT PRIMARY KEY, d DECIMAL(10,2))",
            "CREATE TABLE cli.log (v INT)"]  # fmt: skip
    if found.kind == "postgresql":
        gone = ["DROP PUBLICATION IF EXISTS binlogd", "DROP SCHEMA IF EXISTS cli CASCADE"]
        found.run([
            *gone, *made, f"CREATE ROLE cli LOGIN REPLICATION PASSWORD '{PASSWORD}'",
            "GRANT USAGE ON SCHEMA cli TO cli", "GRANT SELECT ON ALL TABLES IN SCHEMA cli TO cli",
        ])  # fmt: skip
        ended = [*gone, "DROP ROLE cli"]
    else:
        gone = ["DROP SCHEMA IF EXISTS cli", "DROP USER IF EXISTS cli"]
        found.run([
            *gone, *made, f"CREATE USER cli IDENTIFIED BY '{PASSWORD}'",
            "GRANT SELECT ON cli.* TO cli", "GRANT BINLOG MONITOR, RELOAD ON *.* TO cli",
        ])  # fmt: skip
        ended = gone
    yield found
    found.run(ended)


def source(server: Server) -> str:
    if server.kind == "postgresql":
        return f"postgresql://cli@127.0.0.1:{server.port}/postgres"
    return f"mariadb://cli@127.0.0.1:{server.port}/cli"


def ready(server: Server) -> None:
    """Run what it tells."""
    server.run([
        'CREATE PUBLICATION "binlogd" FOR TABLE "cli"."items", "cli"."orders"'
        " WITH (publish_via_partition_root = true)"
        if server.kind == "postgresql" else "GRANT REPLICATION SLAVE ON *.* TO cli"
    ])  # fmt: skip


def replicate(server: Server, folder: Path, *more: str, password: str = PASSWORD) -> Result:
    tables = ("--tables", "cli.*")
    where = ("--dir", str(folder), "--into", f"sqlite:{folder / 'copy.db'}", "--broker", BROKER)
    environment = {"BINLOGD_PASSWORD": password}
    return CliRunner().invoke(
        app, ["replicate", source(server), *where, *tables, *more], env=environment
    )


def test_what_lacks_is_told_before_anything_is_written(server: Server, tmp_path: Path) -> None:
    """Status 2, with the very statement."""
    done = replicate(server, tmp_path, "--yes")
    assert done.exit_code == 2
    if server.kind == "postgresql":
        assert 'CREATE PUBLICATION "binlogd" FOR TABLE "cli"."items", "cli"."orders"' in done.stdout
    else:
        assert "      GRANT REPLICATION SLAVE ON *.* TO 'cli'@'%';" in done.stdout.splitlines()
    assert "run these statements there, then this command again" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_the_plan_and_writes_nothing(server: Server, tmp_path: Path) -> None:
    ready(server)
    done = replicate(server, tmp_path, "--dry-run")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"source: {source(server)}"
    assert lines[2].startswith("tables: 2 to follow, ")
    assert [line.split()[0] for line in lines[3:5]] in (
        ["cli.items", "cli.orders"], ["cli.orders", "cli.items"],
    )  # fmt: skip
    assert "  cli.log has no key" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_plan_as_a_document(server: Server, tmp_path: Path) -> None:
    ready(server)
    done = replicate(server, tmp_path, "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert sorted(one["table"] for one in found["tables"]) == ["cli.items", "cli.orders"]
    assert [one["table"] for one in found["left_out"]] == ["cli.log"]
    assert found["lacks"] == []


def test_it_writes_and_then_goes_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call asks nothing; another one is refused by name; no password is anywhere but in
    its own file."""
    went: list[object] = []
    monkeypatch.setattr(command, "go_on", lambda asked, *rest: went.append(asked.source.name))
    ready(server)
    done = replicate(server, tmp_path, "--yes")
    assert (done.exit_code, len(went)) == (0, 1)
    config = load(tmp_path / "config.toml")
    (name,) = config.pipeline
    assert went == [name]
    assert config.database[name].password == PASSWORD
    assert "cli.log" in config.pipeline[name].exclude
    holding = [
        path.name for path in tmp_path.rglob("*") if path.is_file()
        and PASSWORD in path.read_text(errors="replace")
    ]  # fmt: skip
    assert holding == ["source"]
    assert PASSWORD not in done.output
    server.run(["DROP TABLE cli.orders"])  # the plan is made once
    again = replicate(server, tmp_path, "--yes", password="not asked for")
    assert (again.exit_code, len(went)) == (0, 2)
    other = replicate(server, tmp_path, "--yes", "--tables", "cli.items")
    assert (other.exit_code, len(went)) == (2, 2)
    assert "replicates something else: tables is cli.* here" in other.stderr


def test_a_wrong_password_is_one_line_without_it(server: Server, tmp_path: Path) -> None:
    """Of PostgreSQL, which trusts this machine, any is right."""
    ready(server)
    done = replicate(server, tmp_path, "--dry-run", password="wr0ng word")
    if server.kind == "postgresql":
        assert done.exit_code == 0
        return
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "Access denied" in done.stderr
    assert "wr0ng" not in done.output


def test_a_configuration_of_somebody_else_stays(server: Server, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mine")
    done = replicate(server, tmp_path, "--yes")
    assert (done.exit_code, "not from this command: --dir" in done.stderr) == (2, True)
    assert (tmp_path / "config.toml").read_text() == "mine"


def test_nobody_is_there_to_say_yes(server: Server, tmp_path: Path) -> None:
    done = replicate(server, tmp_path)
    assert (done.exit_code, "--yes begins without asking" in done.stderr) == (2, True)
