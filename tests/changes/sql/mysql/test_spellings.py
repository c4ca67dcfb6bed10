"""Statements as servers read them, however they are spelled: names, blanks, comments, types."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    Ddl,
    DdlStep,
    DropColumn,
    TableName,
    TruncateTable,
)
from changes.sql.mysql.ddl import read_ddl
from changes.sql.mysql.definitions import shape_of
from changes.sql.mysql.tokens import NotUnderstood, tokenize

USERS = TableName("shop", "users")
NO_BREAK, WIDE = "\u00a0", "\u3000"
DOTLESS = "\u0131ndex"
"""No keyword, but Python's upper case of it is INDEX."""


def only(sql: str) -> Ddl:
    found = read_ddl(sql, USERS)
    assert len(found) == 1, found
    return found[0]


def steps(clauses: str) -> list[DdlStep]:
    ddl = only(f"ALTER TABLE users {clauses}")
    assert (ddl.refused, ddl.unread, ddl.table) == (None, None, USERS)
    return list(ddl.steps)


def whole(name: str) -> Column:
    return Column(name, pa.int32())


@pytest.mark.parametrize(
    "name",
    [f"{NO_BREAK}users", f"users{WIDE}", "\u2028users", "us\ufeffers", "\uff08users\uff09", "€"],
)
def test_a_name_holds_what_only_looks_like_a_blank_or_a_sign(name: str) -> None:
    """Names without quotes hold each code point from U+0080 to U+FFFF."""
    ddl = only(f"TRUNCATE TABLE {name}")
    assert (ddl.table, ddl.steps) == (TableName("shop", name), (TruncateTable(),))
    assert steps(f"ADD {name} int") == [AddColumn(whole(name))]
    assert steps(f"DROP {name}") == [DropColumn(name)]
    assert steps(f"CHANGE a {name} int") == [ChangeColumn("a", whole(name), if_exists=False)]


@pytest.mark.parametrize("blank", ["\t", "\n", "\v", "\f", "\r", "/**/", "# a\n", "--\x01a\n"])
def test_blanks_are_those_of_ascii_and_comments(blank: str) -> None:
    """A comment of two dashes begins with any control character, too."""
    sql = blank.join(["ALTER", "TABLE", "users", "ADD", "a", "int"])
    assert list(only(sql).steps) == [AddColumn(whole("a"))]


def test_keywords_are_ascii() -> None:
    """Python's upper case makes keywords of letters that a server takes for a name's."""
    assert steps(f"ADD {DOTLESS} int") == [AddColumn(whole(DOTLESS))]
    assert steps(f"DROP {DOTLESS}") == [DropColumn(DOTLESS)]
    assert steps("ADD index i (a)") == []


@pytest.mark.parametrize("name", ["a\U0001f600", "\U0001f600", "`a\U0001f600`", '"\U0001f600"'])
def test_a_name_beyond_the_basic_plane_is_not_understood(name: str) -> None:
    """MySQL writes ? for such a letter, MariaDB refuses the statement."""
    assert only(f"ALTER TABLE users ADD {name} int").unread


@pytest.mark.parametrize("sql", ["/*!501 a */", "/*!5010011 a */", "/*!50100 a", "a\0", "a \x02 b"])
def test_what_servers_read_in_different_ways_is_not_understood(sql: str) -> None:
    """Versions of less than five digits and more than six, comments without an end, controls."""
    with pytest.raises(NotUnderstood):
        tokenize(sql)


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("2*/* two */3", ["2", "*", "3"]),
        ("0b1$ 0x1g 1e5 1e5x", ["0b1$", "0x1g", "1e5", "1e5x"]),
        ("d.1e5 d.0x1 `d`.2024", ["d", ".", "1e5", "d", ".", "0x1", "d", ".", "2024"]),
        ("-.5 1. .5e1", ["-", ".5", "1.", ".5e1"]),
        ("/*!50100 a /* b */ c */ d", ["a", "c", "d"]),
    ],
)
def test_tokens(sql: str, texts: list[str]) -> None:
    """Numbers, names that begin like numbers, and signs beside comments."""
    assert [token.text for token in tokenize(sql)] == texts


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD COLUMN shop.users.a int", [AddColumn(whole("a"))]),
        ("ADD users.a int, ADD .b int", [AddColumn(whole("a")), AddColumn(whole("b"))]),
        ("MODIFY COLUMN users.a int", [ChangeColumn("a", whole("a"), if_exists=False)]),
        ("CHANGE users.a `users`.`b` int", [ChangeColumn("a", whole("b"), if_exists=False)]),
        ("DROP COLUMN `shop`.users.a", [DropColumn("a")]),
        ("ALTER COLUMN users.a SET DEFAULT 1", []),
    ],
)
def test_a_column_may_stand_behind_its_table(clauses: str, expected: list[DdlStep]) -> None:
    """MariaDB and older MySQL allow it, and check that the table is that of the statement."""
    assert steps(clauses) == expected


def test_a_table_in_the_sessions_database_may_begin_with_a_dot() -> None:
    """``.t`` is ``t``."""
    ddl = only("ALTER TABLE .`users` ADD a int")
    assert (ddl.table, list(ddl.steps)) == (USERS, [AddColumn(whole("a"))])


PADDED = ["CHAR", "CHARACTER", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER", "national /**/ char"]
VARYING = [
    "VARCHAR", "VARCHARACTER", "NVARCHAR", "CHAR VARYING", "CHARACTER VARYING", "NCHAR VARYING",
    "NCHAR VARCHAR", "NATIONAL VARCHAR", "NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING",
    "NATIONAL VARCHARACTER",
]  # fmt: skip


@pytest.mark.parametrize("type_", PADDED + VARYING)
def test_blanks_at_the_end_of_a_default_by_the_type_however_it_is_spelled(type_: str) -> None:
    """A text of fixed length loses them, one of varying length keeps them."""
    padded = type_ in PADDED
    default = "a" if padded else "a "
    assert steps(f"ADD a {type_}(5) DEFAULT 'a '") == [AddColumn(Column("a", pa.string()), default)]
    shape = shape_of(f"{type_}(5)")
    assert shape is not None
    assert shape.fixed is padded


@pytest.mark.parametrize(
    ("type_", "arrow", "printed"),
    [
        ("DECIMAL(10 /* was 8 */, 2)", pa.decimal128(10, 2), "DECIMAL(10,2)"),
        ("DECIMAL(/*!50100 10 */,2 # two\n)", pa.decimal128(10, 2), "DECIMAL(10,2)"),
        ("DOUBLE /* or so */ PRECISION", pa.float64(), "DOUBLE precision"),
        ("LONG /* of bytes */ VARBINARY", pa.binary(), "LONG varbinary"),
        ("INT /* big */ (11) /* not */ UNSIGNED", pa.int64(), "INT(11) unsigned"),
        ("ENUM('a' /* b, */, 'it''s')", pa.string(), "ENUM('a','it''s')"),
        ("TEXT CHARACTER SET latin1", pa.string(), "TEXT"),
        ("CHAR CHAR SET latin1", pa.string(), "CHAR"),
    ],
)
def test_a_type_is_what_it_is_without_its_comments(
    type_: str, arrow: pa.DataType, printed: str
) -> None:
    """In parentheses, between two words, before a sign; a character set is no part of it."""
    ddl = only(f"ALTER TABLE users MODIFY a {type_}")
    assert ddl.steps == (ChangeColumn("a", Column("a", arrow), if_exists=False),)
    assert [each.type for each in ddl.redefined] == [printed]


def test_a_default_without_a_digit_before_its_point() -> None:
    """``.5`` is a number."""
    assert steps("ADD a decimal(5,2) DEFAULT .5") == [
        AddColumn(Column("a", pa.decimal128(5, 2)), Decimal("0.50"))
    ]


def test_an_introducer_before_a_long_texts_default_is_not_guessed() -> None:
    """MariaDB 10.11 stores ``xC3xA9`` for it, in every row."""
    ddl = only("ALTER TABLE users ADD c text DEFAULT _utf8mb4'\u00e9'")
    assert "in its own way" in str(ddl.refused)
    added = [AddColumn(Column("c", pa.string()), "\u00e9")]
    assert steps("ADD c varchar(9) DEFAULT _utf8mb4'\u00e9'") == added


@pytest.mark.parametrize("default", ["'\u00df'", "'ss'", "'A'"])
def test_labels_that_a_collation_may_take_for_one_are_not_guessed(default: str) -> None:
    """Which label a default is depends on the column's collation where two look alike."""
    labels = "'a','A'" if default == "'A'" else "'ss','\u00df'"
    assert "is unknown" in str(only(f"ALTER TABLE users ADD e enum({labels}) DEFAULT {default}"))


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("RECOVER TABLE users", ["shop.users"]),
        ("RECOVER TABLE BY JOB 53", ["shop.users"]),
        ("FLASHBACK TABLE a TO b", ["shop.a", "shop.b"]),
        ("FLASHBACK TABLE a, d.b TO TIMESTAMP '2024-01-02 03:04:05'", ["shop.a", "d.b"]),
        ("FLASHBACK DATABASE d TO e", ["d.", "e."]),
        ("FLASHBACK SCHEMA d TO TSO 5", ["d."]),
        ("FLASHBACK CLUSTER TO TIMESTAMP '2024-01-02 03:04:05'", ["."]),
    ],
)
def test_rows_that_tidb_brings_back_are_refused_by_name(sql: str, tables: list[str]) -> None:
    """No event tells them: each table that the statement names is refused."""
    found = read_ddl(sql, USERS, session=True)
    assert [f"{ddl.table.database}.{ddl.table.table}" for ddl in found] == tables
    assert all("brings rows back" in str(ddl.refused) for ddl in found)
