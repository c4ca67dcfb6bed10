"""Statements that people run, and what binlogd makes of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import (
    AddColumn,
    BadMessage,
    ChangeColumn,
    Column,
    Ddl,
    DdlStep,
    DropColumn,
    DropTable,
    FormatOptions,
    RenameColumn,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
from changes.model.types import TIMESTAMP, TIMESTAMP_UTC
from changes.sql.mysql.ddl import read_ddl
from tests.changes.formats.canal.messages import message

HEADER = TableName("shop", "t")
TEXT = pa.string()


def added(name: str, kind: pa.DataType, default: object = None) -> AddColumn:
    return AddColumn(Column(name, kind), default)


def only(sql: str) -> Ddl:
    found = read_ddl(sql, HEADER)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD a int", [added("a", pa.int32())]),
        ("ADD COLUMN a int NULL", [added("a", pa.int32())]),
        ("add column `a` INT(11) UNSIGNED NOT NULL DEFAULT '0'", [added("a", pa.int64(), 0)]),
        ("ADD a int DEFAULT -5 AFTER `id`", [added("a", pa.int32(), -5)]),
        ("ADD a int DEFAULT +5 FIRST", [added("a", pa.int32(), 5)]),
        ("ADD a int DEFAULT (7)", [added("a", pa.int32(), 7)]),
        ("ADD a bigint unsigned NOT NULL", [added("a", pa.decimal128(20, 0), Decimal(0))]),
        ("ADD a int UNIQUE KEY", [added("a", pa.int32())]),
        ("ADD a bool NOT NULL DEFAULT TRUE", [added("a", pa.int32(), 1)]),
        ("ADD a tinyint(1) DEFAULT b'1' COMMENT 'it''s, ok;'", [added("a", pa.int32(), 1)]),
        ("ADD a decimal(10,2) DEFAULT 1.5", [added("a", pa.decimal128(10, 2), Decimal("1.50"))]),
        ("ADD a float DEFAULT 0.5", [added("a", pa.float32(), 0.5)]),
        ("ADD a double precision NOT NULL", [added("a", pa.float64(), 0.0)]),
        (
            "ADD a varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL",
            [added("a", TEXT, "")],
        ),
        ("ADD a varchar(9) CHARSET utf8 DEFAULT 'x\\'y' COMMENT \"c\"", [added("a", TEXT, "x'y")]),
        ("ADD a varchar(9) DEFAULT _utf8mb4'x' INVISIBLE", [added("a", TEXT, "x")]),
        ("ADD a varchar(9) DEFAULT 0", [added("a", TEXT, "0")]),
        ("ADD a varchar(9) DEFAULT -1.05", [added("a", TEXT, "-1.05")]),
        ("ADD a double(8,2) DEFAULT 1.5", [added("a", pa.float64(), 1.5)]),
        ("ADD a char(9) DEFAULT 'x  '", [added("a", TEXT, "x")]),
        ("ADD a text NOT NULL", [added("a", TEXT, "")]),
        ("ADD a text DEFAULT ('x')", [added("a", TEXT, "x")]),
        ("ADD a json", [added("a", TEXT)]),
        ("ADD a json DEFAULT NULL", [added("a", TEXT)]),
        ("ADD a blob", [added("a", pa.binary())]),
        ("ADD a enum('x','y,z') NOT NULL DEFAULT 'y,z'", [added("a", TEXT, "y,z")]),
        ("ADD a enum('Big','it''s') DEFAULT 'BIG'", [added("a", TEXT, "Big")]),
        ("ADD a enum('x','y') NOT NULL", [added("a", TEXT, "x")]),
        ("ADD a set('x','y','z') DEFAULT 'z,x'", [added("a", TEXT, "x,z")]),
        ("ADD a set('x') NOT NULL", [added("a", TEXT, "")]),
        ("ADD a bit(1) NOT NULL DEFAULT b'1'", [added("a", pa.bool_(), True)]),
        ("ADD a bit(8) DEFAULT b'101'", [added("a", pa.int64(), 5)]),
        ("ADD a bit(64) DEFAULT 0xFF", [added("a", pa.decimal128(20, 0), Decimal(255))]),
        ("ADD a bit(9) NOT NULL", [added("a", pa.int64(), 0)]),
        ("ADD a int DEFAULT x'10'", [added("a", pa.int32(), 16)]),
        ("ADD a varchar(9) DEFAULT x'4142'", [added("a", TEXT, "AB")]),
        ("ADD a varbinary(9) DEFAULT x'00ff'", [added("a", pa.binary(), b"\0\xff")]),
        ("ADD a varbinary(9) DEFAULT 'ab'", [added("a", pa.binary(), b"ab")]),
        ("ADD a binary(4) DEFAULT 'ab'", [replace(added("a", pa.binary(), b"ab"), fixed_bytes=4)]),
        ("ADD a binary(4) NOT NULL", [replace(added("a", pa.binary(), b""), fixed_bytes=4)]),
        ("ADD a blob NOT NULL", [added("a", pa.binary(), b"")]),
        ("ADD a time DEFAULT '-101:00:00'", [added("a", TEXT, "-101:00:00")]),
        ("ADD a time NOT NULL DEFAULT '01:02:03'", [added("a", TEXT, "01:02:03")]),
        ("ADD a year DEFAULT '2024'", [added("a", pa.int32(), 2024)]),
        ("ADD a year NOT NULL", [added("a", pa.int32(), 0)]),
        ("ADD a date DEFAULT '2024-01-02'", [added("a", pa.date32(), date(2024, 1, 2))]),
        (
            "ADD a datetime(3) NOT NULL DEFAULT '2024-01-02 03:04:05'",
            [added("a", TIMESTAMP, datetime(2024, 1, 2, 3, 4, 5))],
        ),
        (
            "ADD a datetime DEFAULT '2024-01-02 03:04:05.000'",
            [added("a", TIMESTAMP, datetime(2024, 1, 2, 3, 4, 5))],
        ),
        (
            "ADD a datetime(3) DEFAULT '2024-01-02 03:04:05.678000'",
            [added("a", TIMESTAMP, datetime(2024, 1, 2, 3, 4, 5, 678000))],
        ),
        ("ADD a varchar(9) DEFAULT _latin1'x'", [added("a", TEXT, "x")]),
        ("ADD a varchar(9) DEFAULT _utf8mb4'é' NOT NULL", [added("a", TEXT, "é")]),
        ("ADD a varchar(9) DEFAULT '_x' NOT NULL", [added("a", TEXT, "_x")]),
        ("ADD a datetime NULL ON UPDATE CURRENT_TIMESTAMP(3)", [added("a", TIMESTAMP)]),
        ("ADD a timestamp NULL", [added("a", TIMESTAMP_UTC)]),
        ("ADD a timestamp NULL DEFAULT NULL", [added("a", TIMESTAMP_UTC)]),
        ("ADD a int CHECK (a > 0) NOT ENFORCED", [added("a", pa.int32())]),
        ("ADD a int REFERENCES o (id) ON DELETE SET NULL", [added("a", pa.int32())]),
        ("ADD IF NOT EXISTS a int", [added("a", pa.int32())]),
        ("ADD COLUMN IF NOT EXISTS a int", [added("a", pa.int32())]),
        (
            "ADD (a int, b varchar(9) DEFAULT 'q', INDEX i (a))",
            [added("a", pa.int32()), added("b", TEXT, "q")],
        ),
        (
            "ADD a int, ADD COLUMN b int NOT NULL AFTER a, ADD KEY i (a, b)",
            [added("a", pa.int32()), added("b", pa.int32(), 0)],
        ),
        ("ADD a int, ALGORITHM=INPLACE, LOCK=NONE", [added("a", pa.int32())]),
        ("ADD a int /* , DROP b */ -- , DROP c\n # DROP d", [added("a", pa.int32())]),
        ("ADD a int /*!80023 INVISIBLE */", [added("a", pa.int32())]),
        ("/*!50100 ADD a int */", [added("a", pa.int32())]),
        ("ADD 2fa int", [added("2fa", pa.int32())]),
        ("ADD `a b``c` int", [added("a b`c", pa.int32())]),
        ("ADD 名前 varchar(9)", [added("名前", TEXT)]),
        ("ADD a time(6) NOT NULL", [added("a", TEXT, "00:00:00")]),
        ("ADD a time(3) DEFAULT '-01:02:03.5'", [added("a", TEXT, "-01:02:03.500000")]),
        ("ADD a time DEFAULT '101:02:03.000'", [added("a", TEXT, "101:02:03")]),
    ],
)
def test_added_columns(clauses: str, expected: list[AddColumn]) -> None:
    """A new column has its type, and the value that MySQL shows in the rows already there."""
    ddl = only(f"ALTER TABLE t {clauses}")
    assert (ddl.refused, list(ddl.steps), ddl.table) == (None, expected, HEADER)


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("ADD a datetime DEFAULT CURRENT_TIMESTAMP", "ADD COLUMN a: DEFAULT CURRENT_TIMESTAMP"),
        ("ADD a datetime(3) DEFAULT CURRENT_TIMESTAMP(3)", "DEFAULT CURRENT_TIMESTAMP"),
        ("ADD a datetime DEFAULT now() ON UPDATE now()", "DEFAULT now"),
        ("ADD a varchar(36) DEFAULT (uuid())", "DEFAULT .* uuid"),
        ("ADD a int DEFAULT (1 + 1)", "not a constant"),
        ("ADD a time(1) DEFAULT '01:02:03.55'", "DEFAULT '01:02:03.55'"),
        ("ADD a int GENERATED ALWAYS AS (b + 1) STORED", "generated"),
        ("ADD a int AS (b + 1)", "generated"),
        ("ADD a int AUTO_INCREMENT UNIQUE", "AUTO_INCREMENT"),
        ("ADD a date NOT NULL", "NOT NULL without DEFAULT"),
        ("ADD a json NOT NULL", "NOT NULL without DEFAULT"),
        ("ADD a timestamp", "TIMESTAMP"),
        ("ADD a timestamp NULL DEFAULT '2024-01-01 00:00:00'", "time zone"),
        ("ADD a datetime DEFAULT '0000-00-00 00:00:00'", "does not fit"),
        ("ADD a datetime DEFAULT '2024-01-02 03:04:05.6'", "is unknown"),
        ("ADD a datetime(3) DEFAULT '2024-01-02 03:04:05.6789'", "is unknown"),
        ("ADD a varchar(9) DEFAULT _latin1'é'", "depends on how its text is _latin1"),
        ("ADD a varchar(9) DEFAULT _ucs2'ab'", "depends on how its text is _ucs2"),
        ("ADD a varchar(9) DEFAULT _latin1 x'e9'", "not a constant"),
        ("ADD a bit(64) DEFAULT '12'", "is unknown"),
        ("ADD a year DEFAULT '0'", "is unknown"),
        ("ADD a varchar(9) DEFAULT 1e3", "is unknown"),
        ("ADD a varchar(9) DEFAULT 007", "is unknown"),
        ("ADD a varchar(9) DEFAULT -0.0", "is unknown"),
        ("ADD a varbinary(9) DEFAULT -1.25e-2", "is unknown"),
        ("ADD a enum('1','2') DEFAULT 2", "is unknown"),
        ("ADD a float unsigned DEFAULT '-3'", "is unknown"),
        ("ADD a double(8,2) DEFAULT 1.239", "is unknown"),
        ("ADD a float(7,3) DEFAULT '20240102'", "is unknown"),
        ("ADD a decimal(4,2) DEFAULT 1.239", "does not fit"),
        ("ADD a enum('x') DEFAULT 'y'", "is unknown"),
        ("ADD a varbinary(4) DEFAULT 'é'", "character set"),
        ("ADD a varchar(4) DEFAULT x'ff'", "character set"),
        ("ADD a decimal(65,30) DEFAULT 1.5", "is unknown"),
        ("ADD a json NOT NULL", "no usable value"),
        ("ADD a int PRIMARY KEY", "ADD PRIMARY KEY"),
        ("ADD a int KEY", "ADD PRIMARY KEY"),
        ("ADD PRIMARY KEY (a)", "ADD PRIMARY KEY"),
        ("ADD CONSTRAINT PRIMARY KEY (a)", "ADD PRIMARY KEY"),
        ("ADD CONSTRAINT pk PRIMARY KEY USING BTREE (a)", "ADD PRIMARY KEY"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "DROP PRIMARY KEY; ADD PRIMARY KEY"),
        ("DROP INDEX `PRIMARY`", "DROP PRIMARY KEY"),
        ("DROP PARTITION p0, p1", "DROP PARTITION"),
        ("TRUNCATE PARTITION ALL", "TRUNCATE PARTITION"),
        ("DISCARD TABLESPACE", "DISCARD TABLESPACE"),
        ("MODIFY a int PRIMARY KEY", "ADD PRIMARY KEY"),
        ("ADD a frobnicate", "not understood .*'frobnicate'"),
        ("ADD a int FROBNICATE", "not understood .*'FROBNICATE'"),
        ("FROBNICATE a", "not understood"),
        ("ADD a int,", "not understood"),
        ("ADD a int DEFAULT", "not understood"),
        ("ADD a varchar(9) DEFAULT 'x", "not understood"),
        ("ADD a int ) DROP b", "not understood"),
        ("ENGINE=InnoDB DROP a", "not understood"),
        ("ADD (a int", "not understood"),
    ],
)
def test_refused_clauses(clauses: str, said: str) -> None:
    """What a target can't follow is named, and so is what can't be read."""
    ddl = only(f"ALTER TABLE t {clauses}")
    assert ddl.table == HEADER
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(ddl.refused or ddl.unread)


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD INDEX i (a), ADD UNIQUE KEY u (b(10), c), ADD FULLTEXT INDEX f (d) WITH PARSER ngram",
        "ADD KEY (a)",
        "ADD UNIQUE (a)",
        "ADD CONSTRAINT u UNIQUE (a)",
        "ADD CONSTRAINT `fk` FOREIGN KEY (a) REFERENCES o (id) ON DELETE CASCADE",
        "ADD CONSTRAINT CHECK (a > 1)",
        "DROP INDEX i, DROP KEY j, DROP FOREIGN KEY fk, DROP CONSTRAINT c, DROP CHECK d",
        "RENAME INDEX a TO b, RENAME KEY c TO d",
        "ALTER INDEX i INVISIBLE",
        "ALTER COLUMN a SET DEFAULT 5, ALTER b DROP DEFAULT",
        "DEFAULT CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin",
        "DEFAULT CHARSET=utf8mb4",
        "ENGINE=InnoDB",
        "ENGINE = InnoDB ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8 COMMENT='a, DROP b'",
        "AUTO_INCREMENT=100000",
        "COMMENT 'orders; of all'",
        "FORCE",
        "DISABLE KEYS",
        "ORDER BY a, b DESC",
        "PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES IN (1))",
        "ADD PARTITION (PARTITION p2 VALUES LESS THAN MAXVALUE)",
        "REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (5))",
        "COALESCE PARTITION 2",
        "REMOVE PARTITIONING",
        "ANALYZE PARTITION p0, p1",
        "STATS_PERSISTENT=1, ALGORITHM=COPY, LOCK=SHARED",
        "",
    ],
)
def test_harmless_clauses(clauses: str) -> None:
    """What no row shows changes nothing."""
    assert only(f"ALTER TABLE t {clauses}".strip()) == Ddl(
        HEADER, f"ALTER TABLE t {clauses}".strip()
    )


@pytest.mark.parametrize(
    ("clauses", "steps"),
    [
        ("DROP a", [DropColumn("a")]),
        ("/*!50100 DROP COLUMN a */", [DropColumn("a")]),
        (
            "DROP COLUMN IF EXISTS `a`, ADD b int",
            [DropColumn("a"), added("b", pa.int32())],
        ),
        (
            "RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            [RenameColumn("a", "b"), RenameColumn("b", "a")],
        ),
        ("CHANGE a b int", [ChangeColumn("a", Column("b", pa.int32()))]),
        ("CHANGE COLUMN a A int", [ChangeColumn("a", Column("A", pa.int32()))]),
        (
            "MODIFY a bigint unsigned NOT NULL DEFAULT 0 COMMENT 'x' AFTER b",
            [ChangeColumn("a", Column("a", pa.decimal128(20, 0)))],
        ),
        (
            "MODIFY COLUMN a varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
            [ChangeColumn("a", Column("a", TEXT))],
        ),
        (
            "MODIFY a datetime DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
            [ChangeColumn("a", Column("a", TIMESTAMP))],
        ),
        (
            "MODIFY id bigint NOT NULL AUTO_INCREMENT",
            [ChangeColumn("id", Column("id", pa.int64()))],
        ),
    ],
)
def test_columns_that_change(clauses: str, steps: list[DdlStep]) -> None:
    """A drop, a renaming, another definition: a step each, by the name of before."""
    ddl = only(f"ALTER TABLE t {clauses}")
    assert (ddl.refused, list(ddl.steps), ddl.table) == (None, steps, HEADER)


A, B, T, U = (TableName("shop", name) for name in "abtu")


@pytest.mark.parametrize(
    ("sql", "steps"),
    [
        ("TRUNCATE TABLE t", {T: [TruncateTable()]}),
        ("truncate `b`.`t`", {TableName("b", "t"): [TruncateTable()]}),
        ("DROP TABLE IF EXISTS `t` /* generated by server */", {T: [DropTable()]}),
        (
            "DROP TABLE a, `b`.`c` CASCADE",
            {A: [DropTable()], TableName("b", "c"): [DropTable()]},
        ),
        ("DROP TABLES a", {A: [DropTable()]}),
        ("CREATE OR REPLACE TABLE t (id int)", {T: [DropTable()]}),
        ("RENAME TABLE a TO b", {A: [RenameTable(B)], B: [TakeName(A)]}),
        ("RENAME TABLE a TO b, b TO t", {A: [RenameTable(T)], T: [TakeName(A)]}),
        ("RENAME TABLE a TO b, b TO a", {}),
        (
            "RENAME TABLE t TO u, a TO t",
            {T: [RenameTable(U), TakeName(A)], U: [TakeName(T)], A: [RenameTable(T)]},
        ),
        (
            "ALTER TABLE t RENAME TO b.u",
            {T: [RenameTable(TableName("b", "u"))], TableName("b", "u"): [TakeName(T)]},
        ),
        ("ALTER TABLE t RENAME AS u", {T: [RenameTable(U)], U: [TakeName(T)]}),
        ("ALTER TABLE t RENAME t", {T: []}),
        (
            "ALTER TABLE t DROP a, RENAME u",
            {T: [DropColumn("a"), RenameTable(U)], U: [TakeName(T)]},
        ),
    ],
)
def test_tables_that_change(sql: str, steps: dict[TableName, list[DdlStep]]) -> None:
    """What empties, ends or renames a table is told of each table that it concerns."""
    found = read_ddl(sql, HEADER)
    assert [ddl.refused for ddl in found] == [None] * len(found)
    assert {ddl.table: list(ddl.steps) for ddl in found} == steps


def test_names_that_are_exchanged() -> None:
    """No order of single renamings exchanges two tables: refused for each of them."""
    found = read_ddl("RENAME TABLE a TO tmp, b TO a, tmp TO b", HEADER)
    assert {ddl.table for ddl in found if ddl.refused} == {A, B}


@pytest.mark.parametrize(
    ("sql", "tables", "said"),
    [
        ("DROP DATABASE `b`", ["b."], "DROP DATABASE b"),
        ("DROP SCHEMA IF EXISTS b", ["b."], "DROP DATABASE b"),
        ("DROP INDEX `PRIMARY` ON t", ["shop.t"], "DROP PRIMARY KEY"),
        ("INSERT INTO t VALUES (1)", ["shop.t"], "not understood .*INSERT INTO t"),
        ("UPDATE t SET a = 1", ["shop.t"], "not understood"),
        ("FROBNICATE TABLE t", ["shop.t"], "not understood .*'FROBNICATE TABLE t'"),
        ("ALTER t ADD a int", ["shop.t"], "not understood"),
        ("ALTER TABLE", ["shop.t"], "not understood"),
        ("ALTER TABLE t ADD `a", ["shop.t"], "not understood"),
        ("/* never ends", ["shop.t"], "not understood"),
        ("", ["shop.t"], "without a statement"),
        (" -- nothing\n;", ["shop.t"], "without a statement"),
    ],
)
def test_refused_statements(sql: str, tables: list[str], said: str) -> None:
    """What ends a database or a key stops it; so does what can't be read."""
    found = read_ddl(sql, HEADER)
    assert [str(ddl.table) for ddl in found] == tables
    for ddl in found:
        with pytest.raises(AssertionError, match=said):
            raise AssertionError(ddl.refused or ddl.unread)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DATABASE b DEFAULT CHARACTER SET utf8mb4",
        "ALTER DATABASE b COLLATE utf8mb4_bin",
        "CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1",
        "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
        "DROP VIEW v",
        "CREATE DEFINER=`a`@`h` TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN "
        "DROP TABLE t; TRUNCATE t; END",
        "CREATE PROCEDURE p() BEGIN DROP TABLE t; END",
        "DROP PROCEDURE IF EXISTS p",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO TRUNCATE t",
        "GRANT ALL ON *.* TO 'a'@'%'",
        "CREATE USER 'a'@'%' IDENTIFIED BY 'secret'",
        "DROP USER a",
        "RENAME USER a TO b",
        "FLUSH PRIVILEGES",
        "ANALYZE TABLE t",
        "OPTIMIZE TABLE t",
        "DROP TEMPORARY TABLE IF EXISTS t",
        "BEGIN",
        "SET PASSWORD FOR a = 'b'",
    ],
)
def test_statements_about_no_table(sql: str) -> None:
    """What touches no stored row names no table."""
    assert read_ddl(sql, HEADER) == ()


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("CREATE TABLE `b`.`u` (`id` int(0) NOT NULL, PRIMARY KEY (`id`))", TableName("b", "u")),
        ("CREATE TABLE IF NOT EXISTS t LIKE u", HEADER),
        ("CREATE INDEX i ON t (a)", HEADER),
        ("CREATE UNIQUE INDEX i USING BTREE ON `b`.t (a, b)", TableName("b", "t")),
        ("DROP INDEX i ON t", HEADER),
        ("ALTER TABLE t COMMENT 'x'", HEADER),
        ("ALTER ONLINE IGNORE TABLE t FORCE", HEADER),
        ("ALTER TABLE IF EXISTS t WAIT 5 FORCE", HEADER),
    ],
)
def test_harmless_statements(sql: str, table: TableName) -> None:
    """Indexes, comments and new tables change no row; the table is named all the same."""
    assert only(sql) == Ddl(table, sql)


def test_the_statement_wins_over_the_header() -> None:
    """The header may hold the session's database; what the SQL names is what is meant."""
    ddl = only("ALTER TABLE xj_.user02 ADD a int")
    assert ddl.table == TableName("xj_", "user02")
    assert only("ALTER TABLE `xj_`.`user02` ADD a int").table == TableName("xj_", "user02")


def test_several_statements() -> None:
    """Each statement of one text is read, and told with its own words."""
    found = read_ddl("ALTER TABLE a ADD x int; TRUNCATE b ;", HEADER)
    assert [(str(d.table), d.sql, d.steps) for d in found] == [
        ("shop.a", "ALTER TABLE a ADD x int", (added("x", pa.int32()),)),
        ("shop.b", "TRUNCATE b", (TruncateTable(),)),
    ]


def test_statement_after_one_that_is_not_understood() -> None:
    """A statement that can't be read hides no other."""
    found = read_ddl("FROBNICATE; TRUNCATE b", HEADER)
    assert [(str(ddl.table), ddl.steps) for ddl in found] == [
        ("shop.t", ()),
        ("shop.b", (TruncateTable(),)),
    ]
    assert (found[0].refused, found[0].unread is None) == (None, False)


@pytest.mark.parametrize(
    ("sql", "refused", "unread"),
    [
        ("FROBNICATE", False, True),
        ("ALTER TABLE t FROBNICATE a", False, True),
        ("ALTER TABLE t ADD a int, DROP PRIMARY KEY, FROBNICATE", True, False),
        ("ALTER TABLE t DROP PARTITION p0", True, False),
        ("ALTER TABLE t ADD a datetime DEFAULT now()", True, False),
    ],
)
def test_what_is_known_not_to_be_followed_differs_from_what_nobody_reads(
    sql: str, refused: bool, unread: bool
) -> None:
    """The first stops in any case, the second is reported."""
    (found,) = read_ddl(sql, HEADER)
    assert (found.refused is not None, found.unread is not None) == (refused, unread)


def test_a_default_that_can_not_be_told_leaves_the_columns_without_it() -> None:
    """Where only stored values are unknown, the columns themselves are not."""
    sql = "ALTER TABLE t ADD a datetime DEFAULT now(), ADD b int DEFAULT 5"
    (found,) = read_ddl(sql, HEADER)
    assert found.lenient == (added("a", TIMESTAMP), added("b", pa.int32(), 5))
    (key,) = read_ddl(f"{sql}, DROP PRIMARY KEY", HEADER)
    assert key.lenient == ()


def test_ddl_of_a_message() -> None:
    """The format hands the statement over with the header's table."""
    canal = CanalJson(FormatOptions())
    value = message("ALTER", None, sql="ALTER TABLE orders ADD a int", isDdl=True)
    assert canal.ddl(value) == (
        Ddl(TableName("shop", "orders"), "ALTER TABLE orders ADD a int", (added("a", pa.int32()),)),
    )


@pytest.mark.parametrize("sql", [None, "", "  "])
def test_ddl_without_a_statement(sql: str | None) -> None:
    """A DDL message that does not say what was done stops its table."""
    found = CanalJson(FormatOptions()).ddl(message("ALTER", None, sql=sql, isDdl=True))
    assert [(str(ddl.table), ddl.refused is not None) for ddl in found] == [("shop.orders", True)]


def test_ddl_that_is_no_message() -> None:
    """Garbage is refused here as well."""
    with pytest.raises(BadMessage, match="not a Canal message"):
        CanalJson(FormatOptions()).ddl(message(sql=5))
