"""What MySQL and MariaDB lack to be followed: the told statement, run there, ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from collector.checks.look import Looked, look_at
from collector.checks.seen import SeenSource
from databases.base.errors import DatabaseRefused
from databases.base.findings import Finding
from tests.databases.base.conftest import folder
from tests.databases.base.servers import Server, as_server, replicated
from tests.needs import needed

pytestmark = pytest.mark.integration

READER = 'reader\'of "logs"'
PASSWORD = "word"
_NAME = READER.replace("'", "''")


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Iterator[Server]:
    """A server with ``seen.orders``, and a user who may do nothing."""
    found = servers[request.param]
    fresh(found)
    yield found
    found.run(["DROP SCHEMA seen", f"DROP USER '{_NAME}'@'127.0.0.1'"])


def fresh(server: Server) -> None:
    server.run([
        "DROP SCHEMA IF EXISTS seen", "CREATE SCHEMA seen",
        "CREATE TABLE seen.orders (id INT PRIMARY KEY, v VARCHAR(9))",
        f"DROP USER IF EXISTS '{_NAME}'@'127.0.0.1'",
        f"CREATE USER '{_NAME}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
    ])  # fmt: skip


def rights(server: Server) -> dict[str, str]:
    """All that is needed, by right."""
    client = "REPLICATION CLIENT" if server.kind == "mysql" else "BINLOG MONITOR"
    return {"REPLICATION SLAVE": "*.*", client: "*.*", "RELOAD": "*.*", "SELECT": "seen.*"}


def give(server: Server, *but: str) -> None:
    """All rights but these."""
    for right, where in rights(server).items():
        if right not in but:
            server.run([f"GRANT {right} ON {where} TO '{_NAME}'@'127.0.0.1'"])


def look(server: Server, patterns: Sequence[str] = ("seen.*",)) -> SeenSource:
    section = server.section().model_copy(update={"user": READER, "password": PASSWORD})
    looked = Looked("database.shop", section, section.login, patterns)
    return look_at(looked, lambda: time.time_ns() // 1000)


def wrong(seen: SeenSource) -> list[Finding]:
    of_tables = [one for table in seen.tables for one in table.findings]
    return [one for one in (*seen.server, *of_tables) if one.wrong]


def told(server: Server, seen: SeenSource, text: str) -> Finding:
    """The one thing that is wrong, which has this in its text."""
    (found,) = wrong(seen)
    assert text in found.line
    return found


def test_nothing_lacks_where_all_rights_are_given(server: Server) -> None:
    """The tables can be followed."""
    give(server)
    seen = look(server)
    assert wrong(seen) == []
    assert [(str(one.name), one.is_followed) for one in seen.tables] == [("seen.orders", True)]


def test_a_user_without_rights_gets_them_by_the_told_statements_alone(server: Server) -> None:
    """From nothing to ready, with what is told and nothing else."""
    for _ in range(2):
        for finding in wrong(look(server)):
            assert finding.mend
            server.run(finding.mend)
    assert wrong(look(server)) == []


@pytest.mark.parametrize("number", range(4))
def test_each_right_that_lacks_is_told_with_its_grant(server: Server, number: int) -> None:
    """One finding, whose statement ends it."""
    lacking = list(rights(server))[number]
    give(server, lacking)
    found = told(server, look(server), f"GRANT {lacking} ON ")
    server.run(found.mend)
    assert wrong(look(server)) == []


def test_a_right_to_some_columns_is_none_to_the_table(server: Server) -> None:
    """Its rows would come without the others."""
    give(server, "SELECT")
    server.run([f"GRANT SELECT (id) ON seen.orders TO '{_NAME}'@'127.0.0.1'"])
    found = told(server, look(server), "GRANT SELECT ON `seen`.`orders` TO ")
    server.run(found.mend)
    assert wrong(look(server)) == []


def test_rights_by_a_role_count(server: Server) -> None:
    """Where the role is the user's default."""
    server.run(["DROP ROLE IF EXISTS followers", "CREATE ROLE followers"])
    for right, where in rights(server).items():
        server.run([f"GRANT {right} ON {where} TO followers"])
    on = "FOR" if server.kind == "mariadb" else "TO"
    server.run([
        f"GRANT followers TO '{_NAME}'@'127.0.0.1'",
        f"SET DEFAULT ROLE followers {on} '{_NAME}'@'127.0.0.1'",
    ])  # fmt: skip
    try:
        assert wrong(look(server)) == []
    finally:
        server.run(["DROP ROLE followers"])


@pytest.mark.parametrize(
    ("setting", "value", "back"),
    [
        ("binlog_row_image", "'MINIMAL'", "'FULL'"),
        ("binlog_format", "'STATEMENT'", "'ROW'"),
    ],
)
def test_a_setting_of_the_log_is_told_with_its_statement(
    server: Server, setting: str, value: str, back: str
) -> None:
    """The collector could not follow, or would take what lacks for NULL."""
    give(server)
    server.run([f"SET GLOBAL {setting} = {value}"])
    try:
        found = told(server, look(server), f"{setting} is {value.strip(chr(39))}")
        server.run(found.mend)
        assert wrong(look(server)) == []
    finally:
        server.run([f"SET GLOBAL {setting} = {back}"])


def test_a_server_without_a_number_is_told(servers: dict[str, Server]) -> None:
    """MySQL gives its log to nobody then; MariaDB takes no zero."""
    server = servers["mysql"]
    fresh(server)
    give(server)
    server.run(["SET GLOBAL server_id = 0"])
    server.run(told(server, look(server), "server_id is 0").mend)
    assert wrong(look(server)) == []


def test_a_log_that_is_purged_soon_is_told(server: Server) -> None:
    """With the seconds, and the statement."""
    give(server)
    server.run(["SET GLOBAL binlog_expire_logs_seconds = 3600"])
    try:
        (found,) = (one for one in look(server).server if "kept for 3600 s" in one.text)
        server.run(found.mend)
        assert not any("is kept for" in one.text for one in look(server).server)
    finally:
        server.run(["SET GLOBAL binlog_expire_logs_seconds = 0"])


@pytest.mark.parametrize("mode", ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE"])
def test_positions_without_gtids_are_told(servers: dict[str, Server], mode: str) -> None:
    """MySQL's, in all its steps."""
    server = servers["mysql"]
    fresh(server)
    give(server)
    down = ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]
    server.run([f"SET GLOBAL gtid_mode = {step}" for step in down[: down.index(mode) + 1]])
    (found,) = (one for one in look(server).server if "gtid_mode" in one.text)
    server.run(found.mend)
    assert not any("gtid_mode" in one.text for one in look(server).server)


def test_a_table_without_a_key_is_left_out_by_name(server: Server) -> None:
    """Others are not touched by it; the told statement gives it one."""
    give(server)
    server.run(["CREATE TABLE seen.log (v INT)", "INSERT INTO seen.log VALUES (1), (1)"])
    seen = look(server)
    assert [str(one.name) for one in seen.tables if one.is_followed] == ["seen.orders"]
    found = told(server, seen, "seen.log has no key")
    server.run(found.mend)
    assert all(one.is_followed for one in look(server).tables)


def test_rows_that_a_foreign_key_changes_are_told(server: Server) -> None:
    """No log has them."""
    give(server)
    server.run([
        "CREATE TABLE seen.lines (id INT PRIMARY KEY, orders INT,"
        " FOREIGN KEY (orders) REFERENCES seen.orders (id) ON DELETE CASCADE)"
    ])  # fmt: skip
    (lines,) = (one for one in look(server).tables if one.name.table == "lines")
    assert lines.is_followed
    assert "changes of `orders` change its rows by a foreign key (ON DELETE CASCADE)" in (
        lines.findings[0].text
    )


def test_a_table_in_memory_is_told(server: Server) -> None:
    """A restart empties it, and no row tells that."""
    give(server)
    server.run(["CREATE TABLE seen.held (id INT PRIMARY KEY) ENGINE = MEMORY"])
    (held,) = (one for one in look(server).tables if one.name.table == "held")
    assert [one.text for one in held.findings] == [
        "seen.held is in memory: a restart of the server empties it by a statement, which the "
        "collector does not read"
    ]


def test_a_column_whose_value_can_t_be_had_leaves_its_table_out(server: Server) -> None:
    """By name; others are followed."""
    give(server)
    server.run(["CREATE TABLE seen.odd (id INT PRIMARY KEY, e ENUM('a,b', 'c'))"])
    found = told(server, look(server), "seen.odd, column e")
    assert "can't be loaded" in found.text


def test_a_pattern_that_matches_nothing_is_told(server: Server) -> None:
    """The server does not show what may not be read, so the right is named as well."""
    give(server)
    found = told(server, look(server, ("seen.*", "other.*")), "no table is called other.*")
    assert "GRANT SELECT ON `other`.* TO " in found.line


def test_a_wrong_password_is_one_line(server: Server) -> None:
    """Nothing else is asked."""
    section = server.section().model_copy(update={"user": READER, "password": "not-it"})
    looked = Looked("database.shop", section, section.login, ("seen.*",))
    with pytest.raises(DatabaseRefused, match="Access denied") as error:
        look_at(looked, lambda: time.time_ns() // 1000)
    assert "not-it" not in str(error.value)


@pytest.mark.long
def test_a_replica_that_does_not_log_what_it_applies_is_told() -> None:
    """Its own log is read; MariaDB leaves there out what comes from the primary."""
    with needed(), folder() as where, replicated(where) as (_, replica):
        server = as_server(replica)
        fresh(server)
        give(server)
        (unknown,) = (one for one in look(server).server if "whether it is a replica" in one.text)
        server.run(unknown.mend)
        (found,) = wrong(look(server))
        assert "is a replica of 127.0.0.1, and its log lacks what it applies" in found.text
