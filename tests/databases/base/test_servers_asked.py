"""Questions to real servers: definitions, moments, what fails and how it is told, the check."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from changes.model.model import TableName
from databases.base.database import Database
from databases.base.errors import DatabaseAway, DatabaseRefused
from tests.databases.base.servers import Server, opened

pytestmark = pytest.mark.integration
ORDERS = TableName("asked", "orders")
KINDS = ["mariadb", "mysql", "postgresql"]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    """A server with an empty table ``asked.orders``."""
    found = servers[request.param]
    cascade = " CASCADE" * (found.kind == "postgresql")
    found.run([
        f"DROP SCHEMA IF EXISTS asked{cascade}", "CREATE SCHEMA asked",
        "CREATE TABLE asked.orders (id INT PRIMARY KEY, v VARCHAR(9))",
    ])  # fmt: skip
    return found


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A connection of the user for jobs."""
    found = server.open()
    yield found
    found.close()


def now_us() -> int:
    return time.time_ns() // 1000


def test_tables_are_found_by_pattern(server: Server, database: Database) -> None:
    """Base tables alone, none of the server's own."""
    server.run(["CREATE TABLE asked.other (id INT)", "CREATE VIEW asked.o AS SELECT 1 AS a"])
    assert database.tables("asked.o*") == [ORDERS, TableName("asked", "other")]
    assert database.tables("asked.orders") == [ORDERS]
    assert {name.database for name in database.tables("*")}.isdisjoint(
        {"mysql", "sys", "information_schema", "pg_catalog", "performance_schema"}
    )


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN w INT", "DROP COLUMN v", "ADD UNIQUE (v)", "DROP PRIMARY KEY",
        "ALTER TYPE",
    ],
)  # fmt: skip
def test_a_definition_changes_with_what_a_load_rests_on(
    server: Server, database: Database, change: str
) -> None:
    """Columns, types, keys; not rows, nor an index that is none."""
    before = database.describe(ORDERS)
    server.run(["INSERT INTO asked.orders VALUES (1, 'a')"])
    assert database.describe(ORDERS).definition == before.definition
    postgresql = server.kind == "postgresql"
    if change == "ALTER TYPE":
        change = "ALTER v TYPE varchar(10)" if postgresql else "MODIFY v VARCHAR(10)"
    elif change == "DROP PRIMARY KEY" and postgresql:
        change = "DROP CONSTRAINT orders_pkey"
    elif change == "ADD UNIQUE (v)":
        if not postgresql:
            return  # MySQL rebuilds the table's definition: beginning again is harmless
        server.run([f"ALTER TABLE asked.orders {change}"])
        assert database.describe(ORDERS).definition == before.definition
        return
    server.run([f"ALTER TABLE asked.orders {change}"])
    assert database.describe(ORDERS).definition != before.definition


def test_a_definition_changes_when_postgresql_truncates(servers: dict[str, Server]) -> None:
    """The stream of PostgreSQL has no statement for it in some versions of readers."""
    server = servers["postgresql"]
    server.run(["DROP SCHEMA IF EXISTS asked CASCADE", "CREATE SCHEMA asked"])
    server.run(["CREATE TABLE asked.orders (id INT PRIMARY KEY)"])
    database = server.open()
    try:
        before = database.describe(ORDERS).definition
        server.run(["TRUNCATE asked.orders"])
        assert database.describe(ORDERS).definition != before
        before = database.describe(ORDERS).definition
        server.run(["DROP TABLE asked.orders", "CREATE TABLE asked.orders (id INT PRIMARY KEY)"])
        assert database.describe(ORDERS).definition != before
    finally:
        database.close()


def test_a_table_that_is_not_there_is_refused(server: Server, database: Database) -> None:
    """By name; a view is no table, and a name in another case is another one."""
    server.run(["CREATE VIEW asked.o AS SELECT 1 AS a"])
    for name in ("gone", "ORDERS", "o"):
        with pytest.raises(DatabaseRefused, match=rf"asked\.{name}"):
            database.describe(TableName("asked", name))


def test_a_moment_moves_on_with_the_log(server: Server, database: Database) -> None:
    """The position rises with each commit, the clock is this machine's."""
    first = database.moment()
    assert abs(first.unix_us - now_us()) < 5_000_000
    assert first.position is not None
    server.run(["INSERT INTO asked.orders VALUES (1, 'a')"])
    second = database.moment()
    assert second.position is not None
    assert second.unix_us > first.unix_us
    numbers = [int(str(one.position).rpartition(":")[2]) for one in (first, second)]
    assert numbers[0] < numbers[1]
    assert first.position.startswith("lsn:" if server.kind == "postgresql" else "mysql:")


def test_nothing_can_be_written(server: Server, database: Database) -> None:
    """The session is read-only, whatever its user may do."""
    server.run([
        'GRANT ALL ON SCHEMA asked TO jobs; GRANT ALL ON asked.orders TO jobs'
        if server.kind == "postgresql" else "GRANT ALL ON asked.* TO jobs@'%'"
    ])  # fmt: skip
    fresh = server.open()
    try:
        for text in ("INSERT INTO asked.orders VALUES (1, 'a')", "DROP TABLE asked.orders"):
            with pytest.raises((DatabaseRefused, DatabaseAway), match=r"(?i)read.only"):
                fresh.ask(text)
        assert fresh.ask("SELECT count(*) FROM asked.orders") == [(0,)]
    finally:
        fresh.close()


def test_a_statement_that_takes_too_long_may_be_asked_again(server: Server) -> None:
    """The server ends it; the next question is answered."""
    database = server.open(statement_timeout_s=0.3)
    many = "SELECT count(*) FROM information_schema.columns a, information_schema.columns b"
    slow = "SELECT pg_sleep(20)" if server.kind == "postgresql" else (
        f"{many}, information_schema.columns c, information_schema.columns d"
    )  # fmt: skip
    try:
        with pytest.raises(DatabaseAway):
            database.ask(slow)
        assert database.ask("SELECT 1") == [(1,)]
    finally:
        database.close()


def test_a_server_that_goes_away_may_be_asked_again(server: Server, database: Database) -> None:
    """A connection that was cut is made again with the next question."""
    if server.kind == "postgresql":
        server.run([
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'jobs'"
        ])  # fmt: skip
        assert database.ask("SELECT 1") == [(1,)]  # it was not open yet
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'jobs'"
    else:
        ((number,),) = database.ask("SELECT CONNECTION_ID()")
        cut = f"KILL {number}"
    server.run([cut])
    with pytest.raises(DatabaseAway, match=r"database\.shop: "):
        database.ask("SELECT 1")
    assert database.ask("SELECT 1") == [(1,)]


def test_an_address_where_nobody_listens_is_away(server: Server) -> None:
    """One line with the section's name, without the password."""
    from actors.runtime.programs import free_port

    section = server.section()
    away = section.model_copy(
        update={"url": section.url.replace(str(server.port), str(free_port()))}
    )
    with pytest.raises(DatabaseAway) as told:
        opened(away).ask("SELECT 1")
    assert str(told.value).startswith("database.shop: ")
    assert "\n" not in str(told.value)
    assert section.password not in str(told.value)


def test_a_wrong_password_is_refused(servers: dict[str, Server]) -> None:
    """It is not tried for ever."""
    section = servers["mariadb"].section().model_copy(update={"password": "another-word"})
    with pytest.raises(DatabaseRefused, match="Access denied") as told:
        opened(section).ask("SELECT 1")
    assert "another-word" not in str(told.value)


def test_a_check_of_a_server_as_it_should_be(server: Server, database: Database) -> None:
    """No problem, and no warning but of this MariaDB's row metadata."""
    found = database.check([ORDERS], now_us)
    assert found.problems == ()
    wanted = ["binlog_row_metadata is NO_LOG"] if server.kind == "mariadb" else []
    assert [line.partition(":")[0] for line in found.warnings] == wanted


def test_a_check_names_clocks_roles_rights_and_tables(server: Server) -> None:
    """One line each, with the statement that helps."""
    postgresql = server.kind == "postgresql"
    odd = "real[]" if postgresql else "VARCHAR(9)"
    server.run([f"CREATE TABLE asked.keyless (a {odd})"])
    if postgresql:
        server.run(["REVOKE pg_read_all_data FROM jobs"])
    replica = server.open(role="replica")
    try:
        names = [TableName("asked", "keyless"), TableName("asked", "gone")]
        found = replica.check(names, lambda: now_us() - 60_000_000)
    finally:
        replica.close()
        if postgresql:
            server.run(["GRANT pg_read_all_data TO jobs"])
    text = "\n".join(found.problems)
    assert "its clock is 60 s ahead of this machine's" in text
    assert 'role is "replica", but it ' in text
    assert "asked.gone" in text or "relation" in text or "permission denied" in text
    if postgresql:
        assert 'GRANT SELECT ON ALL TABLES IN SCHEMA … TO "jobs"' in text
    else:
        assert "asked.keyless has no key" in "\n".join(found.warnings)


def test_a_user_without_rights_is_told_the_grant(servers: dict[str, Server]) -> None:
    """For the tables, and for the position in the log."""
    server = servers["mariadb"]
    server.run([
        "DROP SCHEMA IF EXISTS asked", "CREATE SCHEMA asked", "CREATE TABLE asked.orders (id INT)",
        "CREATE OR REPLACE USER poor@'%' IDENTIFIED BY 'word'",
    ])  # fmt: skip
    section = server.section().model_copy(update={"user": "poor", "password": "word"})
    poor = opened(section)
    try:
        found = poor.check([ORDERS], now_us)
        assert len(found.problems) == 1
        assert "GRANT SELECT ON *.* TO 'poor'@'%'" in found.problems[0]
        assert any("GRANT BINLOG MONITOR ON *.* TO 'poor'@'%'" in line for line in found.warnings)
        assert poor.moment().position is None
    finally:
        poor.close()


def test_a_log_that_carries_parts_of_documents_is_a_problem(servers: dict[str, Server]) -> None:
    """Readers of the log do not know that kind of event."""
    server = servers["mysql"]
    server.run(["SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'"])
    database = server.open()
    try:
        (found,) = database.check([], now_us).problems
        assert "binlog_row_value_options is PARTIAL_JSON" in found
        assert "SET GLOBAL binlog_row_value_options = ''" in found
    finally:
        database.close()
        server.run(["SET GLOBAL binlog_row_value_options = ''"])
