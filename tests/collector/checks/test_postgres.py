"""What PostgreSQL lacks to be followed: the told statement, run there, ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from collector.checks.look import Looked, look_at
from collector.checks.seen import SeenSource
from databases.base.findings import Finding
from tests.databases.base.servers import Server

pytestmark = pytest.mark.integration

READER = 'reader"of logs'
_NAME = '"reader""of logs"'
_ALL = (
    f"ALTER ROLE {_NAME} REPLICATION",
    f"GRANT USAGE ON SCHEMA seen TO {_NAME}",
    f"GRANT SELECT ON ALL TABLES IN SCHEMA seen TO {_NAME}",
)
_PUBLISHED = (
    "CREATE PUBLICATION binlogd FOR TABLE seen.orders WITH (publish_via_partition_root = true)"
)


@pytest.fixture
def server(servers: dict[str, Server]) -> Iterator[Server]:
    """A server with ``seen.orders``, and a user who may do nothing."""
    found = servers["postgresql"]
    gone = ["DROP PUBLICATION IF EXISTS binlogd", "DROP SCHEMA IF EXISTS seen CASCADE"]
    found.run([
        *gone, "CREATE SCHEMA seen", "CREATE TABLE seen.orders (id int PRIMARY KEY, v text)",
        f"CREATE ROLE {_NAME} LOGIN",
    ])  # fmt: skip
    yield found
    found.run([*gone, f"DROP ROLE {_NAME}"])


def look(server: Server, patterns: Sequence[str] = ("seen.*",)) -> SeenSource:
    section = server.section().model_copy(update={"user": READER, "password": ""})
    looked = Looked("database.shop", section, section.login, patterns, slot="binlogd_shop")
    return look_at(looked, lambda: time.time_ns() // 1000)


def wrong(seen: SeenSource) -> list[Finding]:
    of_tables = [one for table in seen.tables for one in table.findings]
    return [one for one in (*seen.server, *of_tables) if one.wrong]


def told(seen: SeenSource, text: str) -> Finding:
    """The one thing that is wrong, which has this in its text."""
    (found,) = wrong(seen)
    assert text in found.line
    return found


def test_nothing_lacks_where_all_is_given(server: Server) -> None:
    """The table can be followed."""
    server.run([*_ALL, _PUBLISHED])
    seen = look(server)
    assert wrong(seen) == []
    assert [(str(one.name), one.is_followed) for one in seen.tables] == [("seen.orders", True)]


def test_a_user_without_rights_gets_them_by_the_told_statements_alone(server: Server) -> None:
    """From nothing to ready; a publication is told once a table may be published."""
    for _ in range(3):
        for finding in wrong(look(server)):
            assert finding.mend
            server.run(finding.mend)
    assert wrong(look(server)) == []


@pytest.mark.parametrize("number", range(3))
def test_each_right_that_lacks_is_told_with_its_statement(server: Server, number: int) -> None:
    """One finding, whose statement ends it."""
    server.run([one for at, one in enumerate(_ALL) if at != number])
    server.run([_PUBLISHED])
    texts = ("ALTER ROLE", "GRANT USAGE ON SCHEMA", "GRANT SELECT ON")
    server.run(told(look(server), texts[number]).mend)
    assert wrong(look(server)) == []


def test_a_publication_that_lacks_a_table_is_told(server: Server) -> None:
    """No change of it would come."""
    server.run([_PUBLISHED, "CREATE TABLE seen.more (id int PRIMARY KEY)", *_ALL])
    found = told(look(server), "publication binlogd does not have seen.more")
    assert found.mend == ('ALTER PUBLICATION "binlogd" ADD TABLE "seen"."more"',)
    server.run(found.mend)
    assert all(one.is_followed for one in look(server).tables)


def test_a_publication_without_deletes_is_told(server: Server) -> None:
    """Deleted rows would stay."""
    server.run([*_ALL, _PUBLISHED, "ALTER PUBLICATION binlogd SET (publish = 'insert, update')"])
    server.run(told(look(server), "lacks delete and truncate").mend)
    assert wrong(look(server)) == []


@pytest.mark.parametrize(
    ("made", "mend"),
    [
        ("CREATE TABLE seen.t (id int NOT NULL UNIQUE)", 'USING INDEX "t_id_key"'),
        ("CREATE TABLE seen.t (id int PRIMARY KEY); ALTER TABLE seen.t REPLICA IDENTITY NOTHING",
         "REPLICA IDENTITY DEFAULT"),
        ("CREATE TABLE seen.t (id int NOT NULL) PARTITION BY RANGE (id);"
         " CREATE TABLE seen.t1 PARTITION OF seen.t (PRIMARY KEY (id)) FOR VALUES FROM (0) TO (9)"
         "; ALTER TABLE seen.t ADD PRIMARY KEY (id)"
         "; ALTER TABLE seen.t1 REPLICA IDENTITY NOTHING",
         'ALTER TABLE "seen"."t1" REPLICA IDENTITY DEFAULT'),
    ],
)  # fmt: skip
def test_a_replica_identity_is_told_before_the_table_is_published(
    server: Server, made: str, mend: str
) -> None:
    """Published without one, the source's own updates would fail."""
    server.run([_PUBLISHED, made, *_ALL])
    found = told(look(server), mend)
    assert "takes no UPDATE nor DELETE" in found.text
    server.run(found.mend)
    server.run(told(look(server), "ALTER PUBLICATION").mend)
    server.run(["INSERT INTO seen.t VALUES (1)", "UPDATE seen.t SET id = 2", "DELETE FROM seen.t"])
    assert all(one.is_followed for one in look(server).tables)


def test_a_replica_identity_without_the_key_is_told(server: Server) -> None:
    """Its deletes would be those of other rows. One that has more than the key is none of these."""
    server.run([
        "CREATE TABLE seen.t (id int PRIMARY KEY, u int NOT NULL UNIQUE)",
        "ALTER TABLE seen.t REPLICA IDENTITY USING INDEX t_u_key", *_ALL, _PUBLISHED,
    ])  # fmt: skip
    found = told(look(server), "replica identity without its primary key")
    server.run(["CREATE UNIQUE INDEX more ON seen.t (u, id)"])
    server.run(["ALTER TABLE seen.t REPLICA IDENTITY USING INDEX more"])
    assert not any("replica identity" in one.line for one in wrong(look(server)))
    server.run(found.mend)
    assert not any("replica identity" in one.line for one in wrong(look(server)))


def test_a_table_without_a_key_is_left_out_by_name(server: Server) -> None:
    """Others are not touched by it; the told statement gives it one."""
    server.run([_PUBLISHED, "CREATE TABLE seen.log (v int)", *_ALL])
    seen = look(server)
    assert [str(one.name) for one in seen.tables if one.is_followed] == ["seen.orders"]
    server.run(told(seen, "seen.log has no key").mend)
    server.run(told(look(server), "ALTER PUBLICATION").mend)
    assert all(one.is_followed for one in look(server).tables)


def test_rows_that_a_policy_hides_are_told(server: Server) -> None:
    """They would be taken for deleted."""
    server.run([
        *_ALL, _PUBLISHED, "ALTER TABLE seen.orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON seen.orders USING (id > 5)",
    ])  # fmt: skip
    found = told(look(server), "row security hides rows")
    server.run(found.mend)
    assert wrong(look(server)) == []


def test_an_unlogged_table_is_told(server: Server) -> None:
    """No log has it."""
    server.run([_PUBLISHED, "CREATE UNLOGGED TABLE seen.u (id int PRIMARY KEY)", *_ALL])
    server.run(told(look(server), "seen.u is UNLOGGED").mend)
    server.run(told(look(server), "ALTER PUBLICATION").mend)
    assert wrong(look(server)) == []


def test_slots_that_are_all_taken_are_told(server: Server) -> None:
    """The collector's own one does not count."""
    server.run([*_ALL, _PUBLISHED])
    database = server.open()
    try:
        ((most,),) = database.ask("SELECT current_setting('max_replication_slots')::int")
        ((taken,),) = database.ask("SELECT count(*) FROM pg_replication_slots")
    finally:
        database.close()
    names = ["binlogd_shop", *(f"taken_{n}" for n in range(int(str(most)) - int(str(taken)) - 1))]
    made = [f"SELECT pg_create_physical_replication_slot('{name}')" for name in names]
    gone = [f"SELECT pg_drop_replication_slot('{name}')" for name in names]
    server.run(made)
    try:
        assert wrong(look(server)) == []
        server.run([gone[0], "SELECT pg_create_physical_replication_slot('other')"])
        found = told(look(server), "max_replication_slots is")
        assert found.mend[0].startswith("ALTER SYSTEM SET max_replication_slots = ")
    finally:
        server.run([*gone[1:], "SELECT pg_drop_replication_slot('other')"])


def test_a_log_that_is_kept_without_a_bound_is_told(server: Server) -> None:
    """While nobody reads it, the source's disk may fill."""
    server.run([*_ALL, _PUBLISHED])
    (found,) = (one for one in look(server).server if "max_slot_wal_keep_size" in one.text)
    assert not found.wrong
    try:
        server.run(found.mend)
        assert not any("max_slot_wal_keep_size" in one.text for one in look(server).server)
    finally:
        server.run(["ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()"])
