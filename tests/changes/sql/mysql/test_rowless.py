"""Statements that a careless reader takes for harmless, and those that truly are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.model import AddColumn, Column, DropTable, RenameTable, TableName, TruncateTable
from changes.sql.mysql.ddl import read_ddl

HEADER = TableName("shop", "t")


@pytest.mark.parametrize(
    "prefix",
    [
        "SET STATEMENT max_statement_time=10 FOR",
        "set statement lock_wait_timeout = 5, sql_mode = concat(@@sql_mode, ',x') for",
        "SET STATEMENT a=1 FOR SET STATEMENT b='FOR' FOR",
        "/* a comment */ -- another\n # and one\n SET STATEMENT a=1 FOR",
        "/*!50000 SET STATEMENT a=1 FOR */",
    ],
)
def test_set_statement_is_read_behind_its_for(prefix: str) -> None:
    """MariaDB logs the statement with the settings that it ran under."""
    (ddl,) = read_ddl(f"{prefix} TRUNCATE t", HEADER)
    assert ddl.steps == (TruncateTable(),)
    assert read_ddl(f"{prefix} CREATE PROCEDURE p() BEGIN DROP TABLE t; END", HEADER) == ()
    (ddl,) = read_ddl(f"{prefix} ANALYSE t", HEADER)
    assert ddl.unread is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SET STATEMENT max_statement_time=10",
        "BEGIN NOT ATOMIC TRUNCATE t",
        "DELIMITER //",
        "ANALYZE t",
        "OPTIMIZE t",
        "START t",
        "CHANGE t",
        "LOCK t",
        "CLONE INSTANCE FROM a",
        "RENAME t TO u",
        "CREATE FROB VIEW v AS SELECT 1",
        "CREATE FROB t (a int)",
        "CREATE TABLES t",
        "CREATE SPATIAL REFERENCE t",
        "ALTER FROB t ADD SCHEMA int",
        "ALTER DATABASE b UPGRADE DATA DIRECTORY NAME",
        "DROP FROB t",
        "DROP t, VIEW",
        "DROP TABLE t, u v",
        "DROP TABLE t u",
        "TRUNCATE t, u",
        "TRUNCATE TABLE t PARTITION p",
        "IMPORT TABLE FROM 'x.sdi'",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "(SELECT 1)",
        "`SET` x",
        "'SHOW'",
    ],
)
def test_a_beginning_that_nobody_knows_is_not_harmless(sql: str) -> None:
    """Only a closed list passes; the rest is told by name."""
    found = read_ddl(sql, HEADER)
    assert {ddl.unread is not None for ddl in found} == {True}, found
    assert HEADER in {ddl.table for ddl in found}


@pytest.mark.parametrize(
    "sql",
    [
        "SET PASSWORD FOR a = 'b'",
        "BEGIN",
        "BEGIN WORK",
        "START TRANSACTION READ ONLY",
        "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
        "REPAIR LOCAL TABLE t",
        "LOCK TABLES t READ",
        "CHECKSUM TABLE t",
        "CHANGE MASTER TO a = 'b'",
        "CREATE OR REPLACE DEFINER=CURRENT_USER() SQL SECURITY INVOKER VIEW v AS SELECT 1",
        "CREATE DEFINER=a@10.0.0.1 TRIGGER x BEFORE INSERT ON t FOR EACH ROW DROP TABLE t",
        "CREATE OR REPLACE AGGREGATE FUNCTION f() RETURNS int BEGIN TRUNCATE t; END",
        "ALTER ALGORITHM=MERGE DEFINER='a'@'%' VIEW v AS SELECT 1",
        "ALTER DEFINER=a@b EVENT e DO TRUNCATE t",
        "CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
        "CREATE UNDO TABLESPACE u ADD DATAFILE 'x'",
        "CREATE RESOURCE GROUP r TYPE = USER",
        "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "DROP TEMPORARY TABLE t",
        "DROP PACKAGE BODY p",
        "ALTER DATABASE CHARACTER SET utf8mb4",
    ],
)
def test_harmless_beginnings(sql: str) -> None:
    """What makes, alters or drops no table changes no row of one."""
    assert read_ddl(sql, HEADER) == ()


@pytest.mark.parametrize(
    ("sql", "steps"),
    [
        ("DROP TABLE IF EXISTS t WAIT 5", (DropTable(),)),
        ("DROP TABLE t RESTRICT", (DropTable(),)),
        ("TRUNCATE t NOWAIT", (TruncateTable(),)),
        ("CREATE OR REPLACE TABLE t LIKE u", (DropTable(),)),
        ("CREATE OR REPLACE TABLE t SELECT 1 AS x", (DropTable(),)),
        ("RENAME TABLES IF EXISTS t WAIT 3 TO u", (RenameTable(TableName("shop", "u")),)),
        ("/*M!101000 TRUNCATE t */", (TruncateTable(),)),
        ("/* 50701 DROP TABLE u */ TRUNCATE t", (TruncateTable(),)),
    ],
)
def test_rare_forms_of_what_is_followed(sql: str, steps: tuple[object, ...]) -> None:
    """Servers log them so. A conditional comment that was not executed is logged without its !"""
    assert read_ddl(sql, HEADER)[0].steps == steps


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD UNIQUE u (a)",
        "ADD UNIQUE INDEX (a)",
        "ADD CONSTRAINT c CHECK (a > 0)",
        "ADD PRIMARY KEY (a)",
        "MODIFY a int",
        "CHANGE a b int",
        "ADD INDEX i (a), MODIFY a int",
        "CONVERT TO CHARACTER SET latin1",
        "ADD b int UNIQUE DEFAULT 5",
        "DROP COLUMN a",
        "PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (10))",
        "FORCE, ENGINE=InnoDB",
        "FORCE MODIFY a int",
        "COMMENT 'x' MODIFY a int",
        "FROBNICATE",
    ],
)
def test_alter_ignore_that_looks_at_rows_is_refused(clauses: str) -> None:
    """It deletes rows (a new key, a check, a partitioning) or changes values, without events."""
    for verb in ("ALTER IGNORE TABLE", "ALTER ONLINE IGNORE TABLE"):
        (ddl,) = read_ddl(f"{verb} t {clauses}", HEADER)
        assert "ALTER IGNORE TABLE" in str(ddl.refused)
        assert (ddl.table, ddl.steps, ddl.lenient) == (HEADER, (), ())


@pytest.mark.parametrize(
    "clauses",
    [
        "FORCE",
        "ADD INDEX i (a), ADD KEY (b), DROP INDEX c",
        "RENAME INDEX a TO b",
        "ALTER a SET DEFAULT 5, ALGORITHM=COPY, LOCK = SHARED",
        "COMMENT='x'",
    ],
)
def test_alter_ignore_that_looks_at_no_row(clauses: str) -> None:
    """It changes nothing that a target shows."""
    (ddl,) = read_ddl(f"ALTER IGNORE TABLE t {clauses}", HEADER)
    assert (ddl.refused, ddl.unread, ddl.steps) == (None, None, ())


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ALTER TABLE t ADD SYSTEM VERSIONING", "ADD SYSTEM VERSIONING"),
        ("ALTER TABLE t DROP SYSTEM VERSIONING", "DROP SYSTEM VERSIONING"),
        ("CREATE TABLE t (a int) WITH SYSTEM VERSIONING", "WITH SYSTEM VERSIONING"),
        (
            "CREATE TABLE t (a int) ENGINE=InnoDB WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME",
            "WITH SYSTEM VERSIONING",
        ),
        ("ALTER TABLE t ENGINE=BLACKHOLE", "ENGINE BLACKHOLE"),
        ("ALTER TABLE t COMMENT='x' ENGINE = blackhole", "ENGINE BLACKHOLE"),
    ],
)
def test_tables_that_rows_tell_wrongly_of(sql: str, said: str) -> None:
    """Rows of history have the key of the present one; an engine without rows drops them all."""
    (ddl,) = read_ddl(sql, HEADER)
    assert said in str(ddl.refused)


def test_periods_change_no_row() -> None:
    """A column may have that name, too."""
    sql = "ALTER TABLE t ADD PERIOD FOR p (a, b), DROP PERIOD FOR q, DROP PERIOD IF EXISTS FOR r"
    (ddl,) = read_ddl(sql, HEADER)
    assert (ddl.refused, ddl.unread, ddl.steps) == (None, None, ())
    (ddl,) = read_ddl("ALTER TABLE t ADD period int", HEADER)
    assert ddl.steps == (AddColumn(Column("period", pa.int32())),)


@pytest.mark.parametrize(
    "clause",
    [
        "EXCHANGE PARTITION p0 WITH TABLE other.u",
        "CONVERT TABLE other.u TO PARTITION p VALUES LESS THAN (5)",
        "CONVERT PARTITION p0 TO TABLE other.u",
    ],
)
def test_a_table_that_exchanges_rows_with_another_is_refused_with_it(clause: str) -> None:
    """Both show other rows afterwards, and no event tells of them."""
    found = read_ddl(f"ALTER TABLE t {clause}", HEADER)
    assert [str(ddl.table) for ddl in found] == ["shop.t", "other.u"]
    assert all("PARTITION" in str(ddl.refused) for ddl in found)
