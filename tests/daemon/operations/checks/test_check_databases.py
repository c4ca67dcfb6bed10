"""Databases in ``check-config``: drivers, the plan, and what a server has against a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from actors.runtime import jars
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.operations.checks.check_databases import check_databases
from databases.opening import open_database
from settings.rotation import current_password
from tests.databases.base.servers import PASSWORD, Server
from tests.databases.base.test_section import SHOP, TEXT

LAKE = TEXT.replace(
    'kind = "sqlite"\npath = "copy.db"',
    'kind = "iceberg"\ncatalog = { type = "hadoop", warehouse = "lake" }',
)


def written(folder: Path, text: str, secret: str = PASSWORD) -> Path:
    (folder / "secret").write_text(secret)
    (folder / "secret").chmod(0o600)
    file = folder / "config.toml"
    file.write_text(text)
    return file


def checked(file: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check-config", "--config", str(file), *options])
    return result.exit_code, result.output


def test_a_missing_driver_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database of no pipeline, too: jobs may be asked of it. Spark alone reads by drivers."""
    monkeypatch.setattr(jars, "extras_folder", lambda: tmp_path / "extras")
    code, output = checked(written(tmp_path, LAKE + SHOP))
    assert code == 2
    wanted = "database.shop: needs the jars of mariadb: run `make setup EXTRAS=mariadb`"
    assert wanted in output.replace("\n", " ")


def test_the_plan_has_the_database_without_its_password(tmp_path: Path, drivers: None) -> None:
    """Its address, its role, its bound."""
    code, output = checked(written(tmp_path, TEXT + 'database = "shop"\n' + SHOP, "hidden-word"))
    assert code == 0
    wanted = "database shop: jdbc:mysql://db.example.com/ (primary), at most 2 connections"
    assert wanted in output
    assert "hidden-word" not in output


@pytest.mark.integration
def test_a_real_server_is_asked_about_the_pipelines_tables(
    servers: dict[str, Server], tmp_path: Path
) -> None:
    """Those of its routes, of the schemas that lie in this database; each line with its name."""
    server = servers["mariadb"]
    server.run([
        "DROP SCHEMA IF EXISTS conf", "CREATE SCHEMA conf", "CREATE TABLE conf.keyless (a INT)",
        "CREATE TABLE conf.left_out (a INT)", "DROP SCHEMA IF EXISTS conf_other",
        "CREATE SCHEMA conf_other", "CREATE TABLE conf_other.keyless (a INT)",
    ])  # fmt: skip
    shop = SHOP.replace("jdbc:mysql://db.example.com/", f"jdbc:mariadb://127.0.0.1:{server.port}")
    shop = shop.replace('user = "reader"', 'user = "jobs"')
    more = 'exclude = ["*.left_out"]\ndatabases = { "conf" = "shop" }\n'
    config = load(written(tmp_path, TEXT + more + shop), {})
    found = check_databases(config)
    assert found.problems == ()
    assert [line for line in found.warnings if "keyless" in line or "left_out" in line] == [
        "database.shop: conf.keyless has no key: it can't be loaded or verified"
    ]


@pytest.mark.integration
def test_a_server_that_is_away_is_one_problem(servers: dict[str, Server], tmp_path: Path) -> None:
    """Told with its section; the others are asked all the same."""
    server = servers["mariadb"]
    here = SHOP.replace("jdbc:mysql://db.example.com/", f"jdbc:mariadb://127.0.0.1:{server.port}")
    here = here.replace('user = "reader"', 'user = "jobs"')
    away = SHOP.replace("db.example.com", "127.0.0.1:1").replace("database.shop", "database.away")
    found = check_databases(load(written(tmp_path, TEXT + away + here), {}))
    assert [line.partition(":")[0] for line in found.problems] == ["database.away"]
    assert "\n" not in found.problems[0]
    assert any(line.startswith("database.shop: binlog_row_metadata") for line in found.warnings)


@pytest.mark.integration
def test_a_rotated_password_is_taken_by_the_next_connection(
    servers: dict[str, Server], tmp_path: Path
) -> None:
    """As its file has it then; it is masked, too."""
    server = servers["mariadb"]
    server.run(["CREATE OR REPLACE USER turning@'%' IDENTIFIED BY 'first-word'"])
    shop = SHOP.replace("jdbc:mysql://db.example.com/", f"jdbc:mariadb://127.0.0.1:{server.port}")
    shop = shop.replace('user = "reader"', 'user = "turning"')
    config = load(written(tmp_path, TEXT + shop, "first-word"), {})
    database = open_database(config, "shop")
    assert database.ask("SELECT 1") == [(1,)]
    database.close()
    server.run(["ALTER USER turning@'%' IDENTIFIED BY 'second-word'"])
    (tmp_path / "secret").write_text("second-word")
    assert database.ask("SELECT 1") == [(1,)]
    assert database.jdbc().password == "second-word"
    assert config.redactor.text("a second-word") == "a ***"
    database.close()
    (tmp_path / "secret").unlink()
    assert current_password(config, "shop") == "first-word"  # what can't be read is as at the start
