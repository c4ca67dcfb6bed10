"""``binlogd query`` over a file of SQLite: what is shown, and what is refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app

CONFIG = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[sink.other]
kind = "sqlite"
path = "other.db"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "rest"
uri = "http://127.0.0.1:1"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "copy.{database}.{table}"
"""


class Asked:
    """A configuration with several sinks, one of them with three rows of ``shop.orders``."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "config.toml"
        self.copy = folder / "copy.db"
        self.file.write_text(CONFIG)
        with closing(sqlite3.connect(self.copy)) as file:
            file.execute('CREATE TABLE "shop.orders" (id, note, raw)')
            rows = [(1, "a", None), (2, "b\x1b[2J", b"\xff"), (3, "[bold]c", None)]
            file.executemany('INSERT INTO "shop.orders" VALUES (?, ?, ?)', rows)
            file.commit()

    def run(self, sql: str, *words: str) -> Result:
        return CliRunner().invoke(app, ["query", sql, "--config", str(self.file), *words])


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_rows_are_a_table(asked: Asked) -> None:
    """No value of it acts on a terminal, or on the table's own marks."""
    done = asked.run("select * from copy.shop.orders order by id;")
    assert (done.exit_code, done.stderr) == (0, "")
    head, first, second, third, count = done.stdout.splitlines()
    assert head.split() == ["id", "note", "raw"]
    assert first.split() == ["1", "a", "<null>"]
    assert second.split() == ["2", "b\\x1b[2J", "/w=="]
    assert third.split() == ["3", "[bold]c", "<null>"]
    assert count == "3 rows"


def test_rows_as_json_and_as_csv(asked: Asked) -> None:
    sql = "select id, raw from copy.shop.orders where id < 3 order by 1"
    assert json.loads(asked.run(sql, "--json").stdout) == {
        "columns": ["id", "raw"], "rows": [[1, None], [2, "/w=="]], "cut": False,
    }  # fmt: skip
    assert asked.run(sql, "--csv").stdout == "id,raw\n1,\n2,/w==\n"


def test_a_cut_is_told(asked: Asked) -> None:
    done = asked.run("select id from copy.shop.orders", "--limit", "2", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["cut"] is True
    assert len(json.loads(done.stdout)["rows"]) == 2
    assert done.stderr == "binlogd: cut at 2 rows: --limit shows more\n"
    whole = asked.run("select id from copy.shop.orders", "--limit", "3")
    assert whole.stderr == ""


@pytest.mark.parametrize(
    "sql",
    ["delete from copy.shop.orders", "drop table copy.shop.orders", "create table x (a)",
     "insert into copy.shop.orders values (4, 'd', null)",
     "with x as (select 1) delete from copy.shop.orders", "pragma query_only = off",
     "select 1; delete from copy.shop.orders"],
)  # fmt: skip
def test_a_write_is_refused_by_the_file_itself(asked: Asked, sql: str) -> None:
    before = asked.copy.read_bytes()
    assert asked.run(sql, "--sink", "copy").exit_code == 2
    assert asked.copy.read_bytes() == before


def test_another_file_is_not_written_by_way_of_this_one(asked: Asked, tmp_path: Path) -> None:
    done = asked.run(f"attach '{tmp_path}/new.db' as new", "--sink", "copy")
    assert done.exit_code == 2
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("sql", "words", "said"),
    [
        ("select 1", [], "names no target, such as SINK.DATABASE.TABLE; sinks: copy, other, lake"),
        ("select 1 from copy.a.b, other.a.b", [], "this one names copy, other"),
        ("select 1", ["--sink", "x"], "there is no sink 'x'; have: copy, other, lake"),
        ("select 1 from copy.shop.none", [], "no such table"),
        ("select 1 from copy.shop.orders", ["--at", "2h"], "keeps the present rows alone"),
        ("select 1 from copy.shop.orders", ["--at", "noon"], "--at: a snapshot's id, or a time"),
        ("select 1 from other.shop.orders", [], "unable to open database file"),
        ("select 1 from lake.shop.orders", [], "catalog (type = rest) is not on this machine"),
        ("select 1", ["--csv", "--json"], "--csv or --json"),
    ],
)
def test_what_can_not_be_answered_is_named(
    asked: Asked, sql: str, words: list[str], said: str
) -> None:
    done = asked.run(sql, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_without_duckdb_the_command_says_how_to_get_it(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("sparkwriter.iceberg.queries.import_module", absent)
    elsewhere = asked.run("select 1 from lake.shop.orders")
    assert "its catalog (type = rest) is not on this machine" in elsewhere.stderr
    assert "pip install" not in elsewhere.stderr
    rest = 'type = "rest"\nuri = "http://127.0.0.1:1"\n'
    here = f'type = "hadoop"\nwarehouse = "{asked.file.parent}"\n'
    asked.file.write_text(CONFIG.replace(rest, here))
    metadata = asked.file.parent / "shop" / "orders" / "metadata"
    metadata.mkdir(parents=True)
    metadata.joinpath("version-hint.text").write_text("1")
    done = asked.run("select 1 from lake.shop.orders")
    assert done.exit_code == 2
    assert "pip install 'binlogd[query]'" in done.stderr
    assert "-r requirements-query.txt" in done.stderr
    monkeypatch.setattr(sys, "prefix", "/usr/lib/binlogd")
    packaged = asked.run("select 1 from lake.shop.orders")
    assert "apt install ./binlogd-query_*.deb" in packaged.stderr
    assert "pip" not in packaged.stderr


def test_how_other_tools_read_a_table_is_printed(asked: Asked) -> None:
    """What is printed is run as it stands."""

    def how(target: str, *words: str) -> Result:
        command = ["tables", "list", "--how", target, "--config", str(asked.file), *words]
        return CliRunner().invoke(app, command)

    printed = how("copy.shop.orders").stdout
    assert "# binlogd\nbinlogd query 'SELECT * FROM copy.shop.orders'\n" in printed
    sqlite = json.loads(how("copy.shop.orders", "--json").stdout)["SQLite"]
    assert sqlite in printed
    if shutil.which("sqlite3"):
        done = subprocess.run(["bash", "-c", sqlite], capture_output=True, check=True)
        assert b"1|a|" in done.stdout
    assert "there is no sink 'elsewhere'" in how("elsewhere.shop.orders").stderr
    assert "not a target's name" in how("orders").stderr
