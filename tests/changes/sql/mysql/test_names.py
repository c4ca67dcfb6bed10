"""Which database a statement's names are in, by what each format's message tells."""

from __future__ import annotations

import pytest

from changes.formats.canal.json import CanalJson
from changes.formats.maxwell.ddl import read_statement
from changes.model.model import (
    Ddl,
    DropColumn,
    DropTable,
    FormatOptions,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
from changes.sql.mysql.ddl import read_ddl
from tests.changes.formats.canal.messages import message


def canal(sql: str, database: str, table: str, kind: str = "RENAME") -> tuple[Ddl, ...]:
    """What Canal's JSON says: ``database`` is that of the first table, a new name's at that."""
    value = message(kind, None, sql=sql, isDdl=True, database=database, table=table)
    return CanalJson(FormatOptions()).ddl(value)


@pytest.mark.parametrize(
    ("sql", "database", "table"),
    [
        ("RENAME TABLE orders TO archive.old, fresh TO orders", "archive", "old"),
        ("RENAME TABLE orders TO Archive.old", "archive", "old"),
        ("ALTER TABLE orders RENAME archive.x", "archive", "x"),
        ("DROP TABLE archive.b, orders", "archive", "b"),
        ("ALTER TABLE archive.t ADD a int, RENAME orders", "archive", "t"),
        ("DROP TABLE archive.b; TRUNCATE orders", "archive", "b"),
    ],
)
def test_a_name_whose_database_is_not_told_is_refused(sql: str, database: str, table: str) -> None:
    """The header's database is that of a name that has one: the others' may be any."""
    found = canal(sql, database, table)
    assert all("session's is unknown" in str(ddl.refused) for ddl in found)
    assert "orders" in {ddl.table.table for ddl in found if ddl.table.database == ""}
    assert not any(ddl.steps or ddl.lenient for ddl in found)


def test_the_sessions_database_is_told_where_no_name_has_it() -> None:
    """``USE app; ALTER TABLE other.t RENAME t2`` makes ``app.t2``, and Canal says ``app``."""
    old, new = TableName("other", "t"), TableName("app", "t2")
    assert [(ddl.table, ddl.steps) for ddl in canal("ALTER TABLE other.t RENAME t2", *new)] == [
        (old, (RenameTable(new),)),
        (new, (TakeName(old),)),
    ]
    dropped = canal("DROP TABLE a, other.b", "app", "a", "ERASE")
    assert [(str(ddl.table), ddl.refused) for ddl in dropped] == [
        ("app.a", None),
        ("other.b", None),
    ]


def test_a_message_that_tells_the_sessions_database_mixes_names_freely() -> None:
    """Canal's protobuf carries it (``ddlSchemaName``)."""
    found = read_ddl("RENAME TABLE a TO shop.b, c TO a", TableName("shop", "b"), session=True)
    assert {str(ddl.table) for ddl in found} == {"shop.a", "shop.b", "shop.c"}
    assert not any(ddl.refused for ddl in found)


def test_use_says_which_database_comes_next() -> None:
    """A name behind it needs no header, a name before it does."""
    found = read_ddl("DROP TABLE other.a; USE shop; TRUNCATE b", TableName("other", "a"))
    assert [(str(ddl.table), ddl.steps) for ddl in found] == [
        ("other.a", (DropTable(),)),
        ("shop.b", (TruncateTable(),)),
    ]
    assert read_ddl("USE shop", TableName("", "")) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE t",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t ADD a int",
        "RENAME TABLE t TO shop.u",
        "DROP TABLE IF EXISTS t",
    ],
)
def test_a_name_without_any_database_is_not_understood(sql: str) -> None:
    """Canal sends QUERY and an empty database where its own parser gives up."""
    found = canal(sql, "", "", "QUERY")
    assert {ddl.unread is not None for ddl in found} == {True}
    assert TableName("", "t") in {ddl.table for ddl in found}
    assert not any(ddl.steps for ddl in found)


def test_what_changes_nothing_may_be_anywhere() -> None:
    """An index or a new table is nothing to a target, whatever database it is in."""
    for sql in ("CREATE INDEX i ON t (a)", "CREATE TABLE t (a int)", "ALTER TABLE t COMMENT 'x'"):
        assert canal(sql, "", "", "QUERY") == (Ddl(TableName("", "t"), sql),)
    mixed = canal("CREATE TABLE t LIKE archive.u", "archive", "t", "CREATE")
    assert [(str(ddl.table), ddl.refused) for ddl in mixed] == [("archive.t", None)]


def test_a_refusal_stays_one_where_the_database_is_not_told() -> None:
    """What can't be followed is refused in any database, not only reported."""
    (ddl,) = canal("ALTER TABLE t DROP PRIMARY KEY", "", "", "QUERY")
    assert (ddl.table, ddl.refused, ddl.unread) == (TableName("", "t"), "DROP PRIMARY KEY", None)


@pytest.mark.parametrize(
    ("sql", "header", "tables"),
    [
        ("FROBNICATE TABLE shop.t", "hr.x", {"hr.x", "shop.t"}),
        ("FROBNICATE `s``h` . `t`", "hr.x", {"hr.x", "s`h.t"}),
        ("FROBNICATE TABLE orders TO hr.x", "hr.x", {"hr.x", "."}),
        ("FROBNICATE shop.t 'never ends", "hr.x", {"hr.x", "shop.t"}),
        ("FROBNICATE " + ", ".join(f"d.t{n}" for n in range(99)), "hr.x", {"."}),
        ("FROBNICATE", ".", {"."}),
    ],
)
def test_what_can_not_be_read_is_told_of_each_table_in_it(
    sql: str, header: str, tables: set[str]
) -> None:
    """The header names one table; the statement may be about others, in any database."""
    found = read_ddl(sql, TableName(*header.split(".")))
    assert all(ddl.unread for ddl in found)
    assert {str(ddl.table) for ddl in found} >= tables
    assert len(found) < 20


def test_maxwell_names_both_tables_itself() -> None:
    """Its statement's own names are read only as far as they are the message's table."""
    value = (
        b'{"type":"table-alter","database":"other","table":"t","old":{"database":"other",'
        b'"table":"t"},"def":{"database":"app","table":"t2"},"ts":1,'
        b'"sql":"ALTER TABLE other.t DROP a, RENAME t2"}'
    )
    old, new = TableName("other", "t"), TableName("app", "t2")
    assert [(ddl.table, ddl.steps) for ddl in read_statement(value)] == [
        (old, (DropColumn("a"), RenameTable(new))),
        (new, (TakeName(old),)),
    ]


def test_maxwells_statement_about_another_table_is_refused_also_with_a_new_name() -> None:
    """Its clauses would be lost otherwise."""
    value = (
        b'{"type":"table-alter","database":"shop","table":"t","old":{"database":"shop",'
        b'"table":"t"},"def":{"database":"shop","table":"u"},"ts":1,'
        b'"sql":"ALTER TABLE z DROP a, RENAME u"}'
    )
    (ddl,) = read_statement(value)
    assert (ddl.table, ddl.steps) == (TableName("shop", "t"), ())
    assert "shop.z" in str(ddl.refused)
