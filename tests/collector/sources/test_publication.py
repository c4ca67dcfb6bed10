"""The publication that a collector keeps at a real PostgreSQL: tables that come join it."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.postgres import Postgres
from tests.collector.running import rows, running
from tests.collector.sources.test_postgres import source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def test_tables_that_come_join_without_a_restart(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """An empty database is followed; what was written before a table joined is loaded, all after
    that is read. Names are what they are."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    odd = '"Odd ""Name, 1.\'s"'
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "CREATE TABLE late (id int PRIMARY KEY)", "INSERT INTO late VALUES (1)",
            f"CREATE TABLE {odd} (id int PRIMARY KEY)",
            "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        ])  # fmt: skip
        it.until("running", lambda f: sum(map(len, it.loads)) == 3)
        assert sorted(sum(it.loads, ())) == sorted(
            ["public.Odd \"Name, 1.'s", "public.late", "public.parts"]
        )
        assert not postgres.run(name, [
            "INSERT INTO late VALUES (2)", f"INSERT INTO {odd} VALUES (3)",
            "INSERT INTO parts VALUES (4)",
        ])  # fmt: skip
        it.until("running", lambda f: bool(rows(broker, name, "parts")))
        assert [one["after"]["id"] for one in rows(broker, name, "late")] == [2]
        assert [one["after"]["id"] for one in rows(broker, name, "Odd \"Name, 1.'s")] == [3]
        assert it.figures()["reason"] == ""
        assert it.keeper.figures()[0].starts == 1


def test_a_table_that_can_not_join_is_told_and_holds_up_no_other(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Of another owner, or without a replica identity: published, the source itself would refuse
    its UPDATE. The task starts again beside them, as it does after a kill."""
    assert not postgres.run("postgres", [
        f"CREATE ROLE {name} LOGIN REPLICATION", f"CREATE DATABASE {name} OWNER {name}",
    ])  # fmt: skip
    assert not postgres.run(name, [
        f"GRANT ALL ON SCHEMA public TO {name}",
        f"SET ROLE {name}", "CREATE TABLE t (id int PRIMARY KEY)",
    ])  # fmt: skip
    login = source(postgres, name).replace('user = "postgres"', f'user = "{name}"')
    with running(tmp_path, broker, login, "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "CREATE TABLE theirs (id int PRIMARY KEY)", f"SET ROLE {name}",
            "CREATE TABLE keyless (id int)", "INSERT INTO keyless VALUES (1)",
            "CREATE TABLE ours (id int PRIMARY KEY)",
        ])  # fmt: skip
        found = it.until("running", lambda f: it.loads == [("public.ours",)])
        assert "must be owner of table theirs" in found["reason"]
        assert 'ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL' in found["reason"]
        assert not postgres.run(name, ["UPDATE keyless SET id = 2"])
        starts = it.keeper.figures()[0].starts
        it.kill_worker()
        it.until("running", lambda f: it.keeper.figures()[0].starts > starts)
        assert not postgres.run(name, [
            "INSERT INTO ours VALUES (1)", "ALTER TABLE keyless REPLICA IDENTITY FULL",
            f"ALTER TABLE theirs OWNER TO {name}",
        ])  # fmt: skip
        it.until("running", lambda f: bool(rows(broker, name, "ours")))
        it.until("running", lambda f: f["reason"] == "" and len(sum(it.loads, ())) == 3)


def test_a_table_joins_once_its_writers_have_ended(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """A transaction that has written before and commits after would be neither read nor loaded."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, ["CREATE EXTENSION IF NOT EXISTS dblink"])
        # The writer is a second session, which the first one's dblink holds open.
        link = f"host=127.0.0.1 port={postgres.port} dbname={name} user=postgres"
        answer = postgres.ask(f"""
            SELECT dblink_connect('w', '{link}');
            SELECT dblink_exec('w', 'CREATE TABLE late (id int PRIMARY KEY)');
            SELECT dblink_exec('w', 'BEGIN');
            SELECT dblink_exec('w', 'INSERT INTO late VALUES (1)');
            SELECT pg_sleep(12);
            SELECT count(*) FROM pg_publication_tables WHERE tablename = 'late';
            SELECT dblink_exec('w', 'COMMIT');
        """, name)  # fmt: skip
        assert not answer.error, answer.error
        told = [row[0] for row in answer.rows]
        assert told[-2:] == ["0", "COMMIT"]
        it.until("running", lambda f: it.loads == [("public.late",)])


def test_what_a_configured_publication_lacks_is_told(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """With the statement: it is somebody else's."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    assert not postgres.run(name, [
        "CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION theirs FOR TABLE t",
        "CREATE TABLE more (id int PRIMARY KEY)",
    ])  # fmt: skip
    login = source(postgres, name) + '\npublication = "theirs"'
    with running(tmp_path, broker, login, "public.*", topic=name) as it:
        found = it.until("running", lambda f: bool(f["reason"]))
        assert 'ALTER PUBLICATION "theirs" ADD TABLE "public"."more"' in found["reason"]


@pytest.mark.parametrize(
    "cut",
    ["SET (publish = 'insert')", "SET TABLE t (id)", "SET TABLE t WHERE (id > 5)", "DROP TABLE t"],
)
def test_a_publication_that_somebody_has_cut_down_is_whole_again(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str, cut: str
) -> None:
    """To some kinds of change, rows or columns, or without a table: what was left out is loaded."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    assert not postgres.run(name, ["CREATE TABLE t (id int PRIMARY KEY, v int)"])
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            f"ALTER PUBLICATION binlogd_{name} {cut}", "INSERT INTO t VALUES (1, 1)",
            "UPDATE t SET v = 2",
        ])  # fmt: skip
        it.until("running", lambda f: it.loads == [("public.t",)])
        assert not postgres.run(name, ["UPDATE t SET v = 3", "INSERT INTO t VALUES (2, 2)"])
        it.until("running", lambda _: values(broker, name)[-2:] == [(1, 3), (2, 2)])


def values(broker: DevBroker, name: str) -> list[tuple[int, int]]:
    return [(one["after"]["id"], one["after"].get("v")) for one in rows(broker, name, "t")]


def test_what_a_configured_publication_has_in_part_is_told(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Kinds of change that it leaves out, and a table that it cuts."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    assert not postgres.run(name, [
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "CREATE PUBLICATION theirs FOR TABLE t (id) WITH (publish = 'insert, update')",
    ])  # fmt: skip
    login = source(postgres, name) + '\npublication = "theirs"'
    with running(tmp_path, broker, login, "public.*", topic=name) as it:
        found = it.until("running", lambda f: bool(f["reason"]))
        assert "publication theirs lacks delete and truncate" in found["reason"]
        assert 'has a part of public.t alone: ALTER PUBLICATION "theirs" DROP' in found["reason"]


def test_a_replica_identity_without_the_key_is_told(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Debezium would delete the row whose key is 0. Once it is right, the table is loaded."""
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    assert not postgres.run(name, [
        "CREATE TABLE t (id int PRIMARY KEY, u int NOT NULL UNIQUE)", "INSERT INTO t VALUES (1, 1)",
    ])  # fmt: skip
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "ALTER TABLE t REPLICA IDENTITY USING INDEX t_u_key", "DELETE FROM t",
        ])  # fmt: skip
        found = it.until("running", lambda f: "without its primary key" in f["reason"])
        mend = 'ALTER TABLE "public"."t" REPLICA IDENTITY DEFAULT'
        assert mend in found["reason"]
        assert not it.loads
        assert not postgres.run(name, [mend])
        it.until("running", lambda f: it.loads == [("public.t",)] and not f["reason"])
