"""Statements that a setting of the session, which no message tells, gives another meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from changes.model.model import Ddl, DropColumn, TableName
from changes.sql.mysql.ddl import read_ddl
from tests.changes.sql.mysql.executed import Database, database, verdict

HEADER = TableName("shop", "users")

READ_TWO_WAYS = [
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT 'C:\temp'",
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT 'a\\b'",
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT '\Z\0\n'",
    r'ALTER TABLE users ADD c VARCHAR(20) DEFAULT "a\b"',
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT N'a\b'",
    r"ALTER TABLE users ADD c ENUM('a\\b','c') NOT NULL",
    r"ALTER TABLE users ADD c ENUM('a\\b','c') NOT NULL DEFAULT 'c'",
    r"""ALTER TABLE users COMMENT 'a\', DROP note, COMMENT "' -- " """.strip(),
    r"SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR "
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT 'C:\\temp'",
]
"""With NO_BACKSLASH_ESCAPES a backslash stands for itself."""

READ_ONE_WAY = [
    r"ALTER TABLE users ADD c INT DEFAULT 5 COMMENT 'in C:\temp'",
    r"ALTER TABLE users ADD c VARCHAR(20) DEFAULT 'it\'s'",
    r"ALTER TABLE users ADD c INT DEFAULT 5, COMMENT 'a\\b', DROP note",
    r"ALTER TABLE users ADD c INT COMMENT 'it\'s', ADD d VARCHAR(9) DEFAULT 'it\'s'",
]

FITTED = [
    "ALTER TABLE users ADD c VARCHAR(3) DEFAULT 'abc  '",
    "ALTER TABLE users ADD c VARCHAR(3) CHARACTER SET latin1 DEFAULT 'abc   '",
    "ALTER TABLE users ADD c ENUM('a','1') DEFAULT TRUE",
    "ALTER TABLE users ADD c SET('1','b') DEFAULT TRUE",
    *(
        f"ALTER TABLE users ADD c ENUM('{first}','{other}') DEFAULT '{other}'"
        for first, other in (
            "éE", "\uff41a", "øo", "ŁL", "Đd", "\u0131i", "かが", "カか", "😀😁", "йи",
            ("Ⅷ", "VIII"), ("æ", "AE"), ("ß", "ss"), ("œ", "oe"),
        )
    ),
]  # fmt: skip
"""Each value is another one than it is written, at some server or under some collation."""


def said(sql: str) -> tuple[Ddl, ...]:
    return read_ddl(sql, HEADER, session=True)


def is_told(sql: str) -> bool:
    return all(ddl.refused or ddl.unread for ddl in said(sql))


@pytest.mark.parametrize("sql", [*READ_TWO_WAYS, *FITTED])
def test_a_statement_that_settings_read_in_two_ways_is_told(sql: str) -> None:
    assert is_told(sql)


@pytest.mark.parametrize("sql", READ_ONE_WAY)
def test_a_backslash_that_changes_no_row_either_way_is_followed(sql: str) -> None:
    assert not is_told(sql)


def test_what_one_reading_refuses_stays_refused() -> None:
    """However the report of statements that are not understood is configured."""
    default = r"DEFAULT 'a\\b'"
    [told] = said(f"ALTER TABLE users ADD c VARCHAR(9) {default}, DROP PRIMARY KEY")
    assert told.refused == "DROP PRIMARY KEY"
    [told] = said(f"ALTER TABLE users ADD c VARCHAR(9) {default}, /*M! DROP PRIMARY KEY, */ FORCE")
    assert told.refused == "DROP PRIMARY KEY"


def test_labels_that_no_collation_takes_for_one_are_followed() -> None:
    assert not is_told("ALTER TABLE users ADD c ENUM('男','女','nein','да','нет') DEFAULT 'нет'")


def test_a_text_as_long_as_its_column_is_followed() -> None:
    assert not is_told("ALTER TABLE users ADD c VARCHAR(3) DEFAULT 'ab '")
    assert not is_told("ALTER TABLE users ADD c CHAR(3) DEFAULT 'abc    '")


@pytest.mark.parametrize("what", ["DATABASE", "SCHEMA"])
def test_a_database_that_is_replaced_takes_its_tables_with_it(what: str) -> None:
    [told] = said(f"CREATE OR REPLACE {what} archive")
    assert told.table == TableName("archive", "")
    assert told.refused == f"CREATE OR REPLACE {what} archive"
    assert said(f"CREATE {what} IF NOT EXISTS archive") == ()


@pytest.mark.parametrize("made", ["CREATE", "CREATE OR REPLACE"])
def test_a_temporary_table_in_the_log_hides_the_table_of_its_name(made: str) -> None:
    """A log of rows has none; in any other one ``TRUNCATE users`` may be of the temporary table."""
    [told] = said(f"{made} TEMPORARY TABLE users (id INT)")
    assert told.table == HEADER
    assert told.unread is not None
    assert "a log of rows" in told.unread
    assert said("CREATE TEMPORARY SEQUENCE s") == ()


def test_the_other_reading_of_a_comment_drops_a_column() -> None:
    r"""Without escapes ``'a\'`` is a whole text."""
    [told] = said(READ_TWO_WAYS[7])
    assert DropColumn("note") not in told.steps
    assert told.unread is not None


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Database]:
    with database(request.param) as started:
        yield started


@pytest.mark.long
@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
def test_servers_of_any_mode_do_what_is_said_or_it_is_told(server: Database, mode: str) -> None:
    statements = [*READ_TWO_WAYS, *READ_ONE_WAY, *FITTED, "CREATE OR REPLACE DATABASE archive"]
    found = {sql: verdict(server, sql, mode) for sql in statements}
    wrong = {sql: each for sql, each in found.items() if each not in ("equal", "told", "invalid")}
    assert wrong == {}
    assert sum(each == "told" for each in found.values()) >= 10
