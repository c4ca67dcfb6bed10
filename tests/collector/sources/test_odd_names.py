"""Names and passwords that mean something to Connect, to regular expressions or to topics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import records, rows, running

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]

_PASSWORD = "a'b\"c\\d $e ${file:/x:y} =#!:,é"


def test_odd_names_and_an_odd_password(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """A database with a comma, a dot and signs of expressions; tables that differ only in their
    case, or in what a topic's name can't have; a row of 10 MB, one table without a key."""
    database = f"{name},a.b+(c)$"
    at = f"`{database}`"
    word = _PASSWORD.replace("\\", "\\\\").replace("'", "''")
    tables = ("t", "T", "a$b", "a%b", "a`b", "Ä-b", "t u")
    sql = [table.replace("`", "``") for table in tables]
    assert not mariadb.run([
        f"CREATE USER {name}@'%' IDENTIFIED BY '{word}'", f"GRANT ALL ON *.* TO {name}@'%'",
        f"CREATE DATABASE {at}",
        *(f"CREATE TABLE {at}.`{one}` (id INT PRIMARY KEY, v LONGTEXT)" for one in sql),
        f"CREATE TABLE {at}.keyless (id INT)",
        f"CREATE DATABASE {name}b", f"CREATE TABLE {name}b.t (id INT PRIMARY KEY)",
    ])  # fmt: skip
    text = _PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = f'url = "mariadb://127.0.0.1:{mariadb.port}/"\nuser = "{name}"\npassword = "{text}"'
    more = 'topics = "tables"'
    with running(tmp_path, broker, login, f"{database}.*", more, topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mariadb.run([
            *(f"INSERT INTO {at}.`{one}` VALUES (1, '{at}')" for one in sql),
            f"INSERT INTO {at}.keyless VALUES (1), (1)",
            f"INSERT INTO {name}b.t VALUES (1)",
            f"INSERT INTO {at}.t VALUES (2, REPEAT('x', 10000000))",
        ])  # fmt: skip
        topic = f"{name}.{name}_a.b__c__"
        it.until("running", lambda f: len(rows(broker, f"{topic}.t", "t")) == 2)
        found = {table: rows(broker, f"{topic}.{_plain(table)}", table) for table in tables}
        assert {table: len(some) for table, some in found.items()} == {
            table: 1 + (table == "t") for table in tables
        }
        assert len(found["t"][1]["after"]["v"]) == 10_000_000
        assert len(rows(broker, f"{topic}.keyless", "keyless")) == 2
        assert records(broker, name)


def _plain(table: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", table)
