"""Clauses of one statement that name the same column, as MariaDB 10.11 was seen to take them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    Ddl,
    DdlStep,
    DropColumn,
    RenameColumn,
    TableName,
)
from changes.sql.mysql.ddl import read_ddl


def only(clauses: str) -> Ddl:
    (found,) = read_ddl(f"ALTER TABLE t {clauses}", TableName("shop", "t"))
    return found


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD a INT, ALTER COLUMN a SET DEFAULT 5",  # stored rows show 5
        "ADD a INT DEFAULT 3, ALTER A DROP DEFAULT",  # they show NULL
        "ADD a INT DEFAULT 5, MODIFY a BIGINT",  # NULL as well
        "ADD COLUMN (a INT DEFAULT 5), MODIFY COLUMN a BIGINT",
        "ADD a INT DEFAULT 5, CHANGE a a BIGINT",
        "CHANGE a b INT, ADD IF NOT EXISTS a INT DEFAULT 5",  # a is not added, if it was there
        "DROP IF EXISTS a, ADD IF NOT EXISTS a INT DEFAULT 7",
        "RENAME COLUMN a TO b, ADD COLUMN IF NOT EXISTS a INT",
        "CHANGE IF EXISTS a b INT, CHANGE IF EXISTS b c INT",
        "RENAME COLUMN IF EXISTS a TO b, DROP b",
        "ADD IF NOT EXISTS a INT DEFAULT 1, ADD IF NOT EXISTS a INT DEFAULT 2",
    ],
)
def test_clauses_that_mean_each_other_are_not_understood(clauses: str) -> None:
    found = only(clauses)
    assert (found.steps, found.lenient, found.refused) == ((), (), None)
    assert found.unread is not None


def added(name: str, default: object = None) -> AddColumn:
    return AddColumn(Column(name, pa.int32()), default)


@pytest.mark.parametrize(
    ("clauses", "steps"),
    [
        ("DROP IF EXISTS a, ADD a INT DEFAULT 7", [DropColumn("a"), added("a", 7)]),
        ("RENAME COLUMN a TO b, ADD a INT", [RenameColumn("a", "b"), added("a")]),
        ("ADD a INT, ALTER b SET DEFAULT 5", [added("a")]),
        ("ADD a INT, ALTER INDEX a IGNORED", [added("a")]),
        ("ADD a INT, ALTER COLUMN b SET INVISIBLE", [added("a")]),
        (
            "ADD IF NOT EXISTS a INT, ADD IF NOT EXISTS b INT AFTER a",
            [added("a"), added("b")],
        ),
        (
            "MODIFY IF EXISTS a INT, RENAME COLUMN IF EXISTS b TO c",
            [
                ChangeColumn("a", Column("a", pa.int32()), if_exists=True),
                RenameColumn("b", "c", if_exists=True),
            ],
        ),
    ],
)
def test_clauses_that_stand_for_themselves_are_read(clauses: str, steps: list[DdlStep]) -> None:
    assert only(clauses) == Ddl(
        TableName("shop", "t"), f"ALTER TABLE t {clauses}", tuple(steps),
        redefined=only(clauses).redefined,
    )  # fmt: skip


@pytest.mark.parametrize(
    "clauses", ["ADD vector INT DEFAULT 3", "ADD COLUMN vector INT DEFAULT 3",
                "ADD (vector INT DEFAULT 3)"],
)  # fmt: skip
def test_a_column_may_be_called_vector(clauses: str) -> None:
    """It is no reserved word: such a column was taken for an index."""
    assert only(clauses).steps == (added("vector", 3),)


@pytest.mark.parametrize("clauses", ["ADD VECTOR INDEX (v)", "ADD VECTOR KEY i (v)"])
def test_a_vector_index_is_none(clauses: str) -> None:
    assert only(clauses) == Ddl(TableName("shop", "t"), f"ALTER TABLE t {clauses}")


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("CHAR(4) BYTE NOT NULL", b""),
        ("VARCHAR(4) CHARACTER SET binary DEFAULT 'x'", b"x"),
        ("TEXT COLLATE binary", None),
        ("CHAR(4) BYTE DEFAULT 0x4100", b"A"),
    ],
)
def test_texts_of_bytes_are_bytes(definition: str, default: bytes | None) -> None:
    """The server makes BINARY, VARBINARY and BLOB of them, and rows come as such."""
    (step,) = only(f"ADD a {definition}").steps
    room = 4 if definition.startswith("CHAR") else 0
    assert step == AddColumn(Column("a", pa.binary()), default, fixed_bytes=room)


def test_renamings_of_which_some_may_not_take_place_are_refused_where_they_meet() -> None:
    sql = "RENAME TABLE IF EXISTS a TO b, a TO c"
    found = read_ddl(sql, TableName("shop", ""))
    reason = "RENAME TABLE IF EXISTS that names a table twice"
    assert [(ddl.table.table, ddl.refused) for ddl in found] == [
        ("a", reason), ("b", reason), ("c", reason),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "definition", ["TEXT DEFAULT ''", "MEDIUMBLOB NULL DEFAULT x''", "LONG DEFAULT ''"]
)
def test_an_empty_default_of_a_long_text_is_not_told(definition: str) -> None:
    """MySQL 9.7 drops it without strict mode, and rows show NULL; MariaDB keeps it."""
    found = only(f"ADD a {definition}")
    assert (found.steps, found.unread) == ((), None)
    assert found.refused is not None
    assert found.refused.endswith("column is '' in MariaDB, NULL in MySQL")


@pytest.mark.parametrize("definition", ["TEXT DEFAULT ('')", "TEXT NOT NULL DEFAULT ''"])
def test_an_empty_default_that_both_servers_keep(definition: str) -> None:
    assert only(f"ADD a {definition}").steps == (AddColumn(Column("a", pa.string()), ""),)


def test_what_mysql_does_not_run_is_not_understood_where_it_counts() -> None:
    """``/*M!`` is a comment to MySQL, whose log keeps it; MariaDB's marks what it did not run."""
    found = only("/*M!100000 DROP c, */ ADD q INT")
    assert (found.table, found.steps, found.refused) == (TableName("shop", "t"), (), None)
    assert found.unread is not None
    q = (added("q"),)
    assert only("ADD q INT /*M!100301 INVISIBLE */").steps == q
    (whole,) = read_ddl("/*M!100100 ALTER TABLE t ADD q INT */", TableName("shop", ""))
    assert whole.steps == q


@pytest.mark.parametrize(
    "type_", ["DATETIME(a)", "TIME('1')", "DATETIME(1.5)", "FLOAT(1.5,2.5)", "TIME(,)"]
)
def test_no_size_that_a_server_takes(type_: str) -> None:
    """Such a statement comes from no server, yet ended the daemon, and at each start again."""
    assert only(f"ADD a {type_} DEFAULT '00:00:01.5'").table == TableName("shop", "t")


@pytest.mark.parametrize(
    "clause",
    [f"ADD a DATETIME({'9' * 5000}) DEFAULT '2026-01-01'", f"MODIFY a DECIMAL({'9' * 5000})",
     f"ADD a INT DEFAULT 0x{'9' * 5000}", f"ADD a BIT({'9' * 5000}) NOT NULL",
     f"ADD a FLOAT({'9' * 5000}) NOT NULL", f"ADD a DECIMAL(9,{'9' * 5000})",
     f"ADD a BIT(8) DEFAULT b'{'1' * 20_000}'"],
    ids=range(7),
)  # fmt: skip
def test_no_number_is_too_long(clause: str) -> None:
    """Python refuses to read it, and the daemon ended, at each start again."""
    assert only(clause).table == TableName("shop", "t")
