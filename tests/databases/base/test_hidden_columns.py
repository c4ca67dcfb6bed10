"""MySQL's and MariaDB's columns that the user for jobs may not read: their catalog leaves them out,
so a table with such columns is refused, or its rows would be loaded without their values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from changes.model.model import TableName
from databases.base.errors import DatabaseRefused
from tests.databases.base.servers import Server

pytestmark = pytest.mark.integration

TABLE = TableName("hidden_columns", "t")
RIGHTS = {
    "a value": "a, b",
    "the last but one": "a, b, d",
    "a part of the key": "a, c, d",
    "the key": "c, d",
    "one that SELECT * leaves out": "a, b, c",
}
"""What may be read of the columns a, b (the key), c and d, which is invisible."""


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Iterator[Server]:
    """A table; the user for jobs may read nothing but what a test grants."""
    found = servers[request.param]
    found.run([
        "CREATE DATABASE hidden_columns",
        f"CREATE TABLE {TABLE} (a INT, b INT, c INT, d INT INVISIBLE, PRIMARY KEY (a, b))",
        "REVOKE SELECT ON *.* FROM jobs@'%'",
    ])  # fmt: skip
    yield found
    found.run(["DROP DATABASE hidden_columns", "GRANT SELECT ON *.* TO jobs@'%'"])


@pytest.mark.parametrize("readable", RIGHTS.values(), ids=RIGHTS)
def test_a_table_with_columns_that_may_not_be_read_is_refused(
    server: Server, readable: str
) -> None:
    """By name, with the statement that leads out."""
    server.run([f"GRANT SELECT ({readable}) ON {TABLE} TO jobs@'%'"])
    database = server.open()
    try:
        with pytest.raises(DatabaseRefused, match=r"command denied.*GRANT SELECT ON"):
            database.describe(TABLE)
        server.run([f"GRANT SELECT ON {TABLE} TO jobs@'%'"])
        database.close()
        assert [column.name for column in database.describe(TABLE).columns] == list("abcd")
    finally:
        database.close()
        server.run([f"REVOKE SELECT ({readable}), SELECT ON {TABLE} FROM jobs@'%'"])


def test_a_definition_need_not_be_utf8(server: Server) -> None:
    """The bytes of a binary default are in it as they are; the session goes on."""
    server.run([
        f"GRANT SELECT ON {TABLE} TO jobs@'%'",
        f"ALTER TABLE {TABLE} ADD e BINARY(4) DEFAULT X'A8FF0001'",
        f"ALTER TABLE {TABLE} ADD f VARBINARY(9) DEFAULT X'FF'",
    ])  # fmt: skip
    database = server.open()
    try:
        for _ in range(2):
            found = database.describe(TABLE)
            assert [column.name for column in found.columns] == list("abcdef")
    finally:
        database.close()
        server.run([f"REVOKE SELECT ON {TABLE} FROM jobs@'%'"])


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_text_that_is_not_utf8_refuses_a_question_by_name(server: Server) -> None:
    """Whether its rows are read at once or as they come; the next question has its own answer."""
    server.run([
        f"GRANT SELECT ON {TABLE} TO jobs@'%'",
        f"ALTER TABLE {TABLE} ADD e BINARY(4) DEFAULT X'A8FF0001'",
    ])  # fmt: skip
    database = server.open()
    text = f"SHOW CREATE TABLE {TABLE}"
    try:
        for read in (database.ask, lambda sql: list(database.stream(sql, 9))):
            with pytest.raises(DatabaseRefused, match="not UTF-8"):
                read(text)
            assert database.ask("SELECT 1") == [(1,)]
    finally:
        database.close()
        server.run([f"REVOKE SELECT ON {TABLE} FROM jobs@'%'"])


def test_a_right_that_goes_amid_is_found(server: Server) -> None:
    """A load looks at the table before and after each range."""
    server.run([f"GRANT SELECT ON {TABLE} TO jobs@'%'"])
    database = server.open()
    try:
        assert len(database.describe(TABLE).columns) == 4
        server.run([
            f"REVOKE SELECT ON {TABLE} FROM jobs@'%'", f"GRANT SELECT (a, b) ON {TABLE} TO jobs@'%'"
        ])  # fmt: skip
        with pytest.raises(DatabaseRefused, match="GRANT SELECT ON"):
            database.describe(TABLE)
    finally:
        database.close()
