"""Whether a table can be replaced is asked of its sink before the other one is filled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import TargetName
from daemon.config.config import Config
from databases.base.errors import Cause, DatabaseAway, database_error
from databases.mysql.session import MySqlSession
from sparkwriter.sinks import TRIED, left_behind, unreplaceable
from sparkwriter.sql.base.session import Session
from tests.sparkwriter.databases import Server, running

TARGET = "out.{database}.{table}"
OTHER = TargetName("none", "shop", "t")


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(request.param) as started:
        yield started


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """One with all rights, and a table."""
    made = server.connect()
    made.run("CREATE SCHEMA shop")
    made.run("CREATE TABLE shop.t (id bigint PRIMARY KEY, n int)")
    yield made
    made.run("DROP SCHEMA shop CASCADE" if server.is_postgres else "DROP SCHEMA shop")
    made.close()


def config(sink: dict[str, Any]) -> Config:
    return Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "sink": {"out": sink},
            "pipeline": {"p": {"topics": ["t"], "format": "canal-json", "target": TARGET}},
        }
    )


def said(server: Server, table: str = "t", user: str | None = None) -> str:
    """Why the table can't be replaced; empty where it can."""
    sink = {"kind": "jdbc", "url": server.url, "user": user or server.user}
    sink |= {"password": "geheim"} if user else {}
    target = TargetName("out", "shop", table)
    return unreplaceable(config(sink), [target]).get(target, "")


@pytest.mark.parametrize("ends_at", ["ALTER TABLE", "DROP TABLE"])
def test_what_a_crash_left_of_the_question_is_in_nobodys_way(
    ends_at: str, server: Server, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question after it was refused, for good. A table of somebody else's is named."""
    if server.is_postgres:
        pytest.skip("nothing is made there")
    run = MySqlSession.run

    def dies(self: MySqlSession, sql: str, values: Sequence[object] = ()) -> int:
        if sql.startswith(ends_at):
            raise database_error(Cause.AWAY, "killed")
        return run(self, sql, values)

    with monkeypatch.context() as patched:
        patched.setattr(MySqlSession, "run", dies)
        with pytest.raises(DatabaseAway):
            said(server)
    assert len(session.rows("SHOW TABLES FROM shop")) == 2
    assert said(server) == ""
    assert session.rows("SHOW TABLES FROM shop") == [("t",)]
    session.run(f"CREATE TABLE shop.t__rebuild_{TRIED} (a int)")
    assert "made by somebody else: rename it, or drop it" in said(server)


def test_a_plain_table_and_one_that_is_not_there_can_be(server: Server, session: Session) -> None:
    """Nothing is left of the question."""
    assert (said(server), said(server, "other"), said(server, "x" * 63)) == ("", "", "")
    count = (
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'shop' "
        "AND table_name NOT LIKE '\\_\\_%'"
    )
    assert session.rows(count) == [(1,)]


def test_what_hangs_on_it_is_named(server: Server, session: Session) -> None:
    """With what to do."""
    session.run("CREATE TABLE shop.child (a bigint, CONSTRAINT fk FOREIGN KEY (a) "
                "REFERENCES shop.t (id))")  # fmt: skip
    assert "fk" in said(server)
    assert "make it again afterwards" in said(server)
    session.run("DROP TABLE shop.child")
    assert said(server) == ""


def test_a_missing_right_is_named(server: Server, session: Session) -> None:
    """One that is enough for the stream, and not for the exchange."""
    name = f"u{abs(hash(server.url)) % 1000}"
    if server.is_postgres:
        session.run(f"CREATE ROLE {name} LOGIN PASSWORD 'geheim'")
        session.run("GRANT ALL ON SCHEMA public TO " + name)
        session.run(f"GRANT CREATE ON DATABASE {_database(session)} TO {name}")
        session.run(f"GRANT USAGE ON SCHEMA shop, binlogd TO {name}")
        session.run(f"GRANT ALL ON ALL TABLES IN SCHEMA binlogd TO {name}")
        session.run(f"GRANT ALL ON shop.t TO {name}")
        wanted = ["may make no table in shop", "may not rename it"]
    else:
        session.run(f"CREATE USER {name}@'%' IDENTIFIED BY 'geheim'")
        session.run(f"GRANT ALL ON binlogd.* TO {name}@'%'")
        session.run(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON shop.* TO {name}@'%'")
        wanted = ["ALTER command denied"]
    found = said(server, user=name)
    assert all(line in found for line in wanted), found


def _database(session: Session) -> str:
    return str(session.rows("SELECT current_database()")[0][0])


def test_a_sink_that_is_away_is_told(tmp_path: Path) -> None:
    """It is no refusal: the same plan may be made later."""
    sink = {"kind": "jdbc", "url": "jdbc:postgresql://127.0.0.1:1/x", "user": "u", "password": "p"}
    with pytest.raises(DatabaseAway):
        unreplaceable(config(sink), [TargetName("out", "shop", "t")])


def test_a_sink_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And a file of SQLite with a trigger."""
    path = tmp_path / "copy.db"
    sink = {"kind": "sqlite", "path": str(path)}
    target = TargetName("out", "shop", "t")
    assert unreplaceable(config(sink), [OTHER, target]) == {
        OTHER: "the configuration has no sink 'none'"
    }
    file = sqlite3.connect(path)
    file.execute('CREATE TABLE "shop.t" (id)')
    file.execute('CREATE TRIGGER tells AFTER INSERT ON "shop.t" BEGIN SELECT 1; END')
    file.close()
    assert "trigger tells" in unreplaceable(config(sink), [target])[target]


def test_what_is_to_be_made_again_is_named(server: Server, session: Session) -> None:
    """In the plan, before a row is read."""
    sink = {"kind": "jdbc", "url": server.url, "user": server.user}
    target = TargetName("out", "shop", "t")
    assert list(left_behind(config(sink), [target, target._replace(table="other")])) == []
    session.run("CREATE INDEX by_n ON shop.t (n)")
    lines = [f"{target}: to be recreated afterwards: index by_n"]
    assert list(left_behind(config(sink), [target])) == lines
