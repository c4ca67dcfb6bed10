"""Queries of a database sink: by the server, which takes one statement that only reads."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from daemon.config.file import load
from databases.base.errors import DatabaseError
from sparkwriter.kit.queries import NoAnswer
from sparkwriter.sections import make_sink
from sparkwriter.sql.queries import DatabaseQueries
from tests.sparkwriter.databases import Server

pytestmark = pytest.mark.integration


CONFIG = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.db]
kind = "jdbc"
url = "{url}"
user = "{user}"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "db.{{database}}.{{table}}"
"""


def opened(folder: Path, url: str, user: str) -> object:
    file = folder / "config.toml"
    file.write_text(CONFIG.format(url=url, user=user))
    config = load(file)
    return make_sink("db", config.sink["db"], config).queries()


@pytest.fixture
def queries(server: Server, tmp_path: Path) -> DatabaseQueries:
    found = opened(tmp_path, server.url, server.user)
    assert isinstance(found, DatabaseQueries)
    return found


def asked(queries: DatabaseQueries, sql: str) -> tuple[list[str], list[Any]]:
    with queries.answer(sql, [], None) as answer:
        return list(answer.columns), [tuple(row) for row in answer.rows]


def test_rows_come_with_their_columns(writer, staging, orders, target, queries) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "50%", None)), 1))
    name = queries.spell(target)
    found = asked(queries, f"select id, note, n from {name} where note like '%' order by 1")
    assert found == (["id", "note", "n"], [(1, "a", 1), (2, "50%", None)])
    assert asked(queries, f"select id as a from {name} where id = 9") == (["a"], [])


@pytest.mark.parametrize(
    "sql",
    ["delete from {0}", "insert into {0} values (3, 'c', 3)", "drop table {0}",
     "select 1; delete from {0}", "select 1; commit; delete from {0}",
     "create table shop.x (a int)", "selec 1"],
)  # fmt: skip
def test_a_write_is_refused_by_the_server(
    writer, staging, orders, target, queries, sql: str
) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with pytest.raises(DatabaseError):
        asked(queries, sql.format(queries.spell(target)))
    assert asked(queries, f"select id from {queries.spell(target)}")[1] == [(1,)]


def test_it_keeps_no_former_state(queries) -> None:
    with pytest.raises(NoAnswer, match="keeps the present rows alone"):  # noqa: SIM117
        with queries.answer("select 1", [], 5):
            pass


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"127\.0\.0\.1"):
        opened(tmp_path, "jdbc:postgresql://127.0.0.1:1/x", "x")


def test_the_databases_client_reads_it(
    writer, staging, orders, target, server: Server, tmp_path: Path
) -> None:
    """What ``tables list --how`` prints is run as it stands, but for the password, which the
    client asks a person for."""
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(url=server.url, user=server.user))
    config = load(file)
    writer.write(staging.batch(orders(("U", 1, "text 1", 1), ("U", 2, "text 2", 2)), 1))
    ours, theirs = make_sink("db", config.sink["db"], config).readers(target)
    assert ours.text == f"binlogd query 'SELECT * FROM {target}'"
    client = theirs.text.split()[0]
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")
    done = subprocess.run(
        ["bash", "-c", theirs.text.replace(" -p -e", " -e")],
        text=True, capture_output=True, timeout=60, check=False, env=os.environ | {"MYSQL_PWD": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "text 1" in done.stdout
    assert "text 2" in done.stdout
