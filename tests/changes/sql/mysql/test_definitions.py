"""Which definitions of a column keep every stored value, as a server converts them.

What MariaDB 10.11 makes of values is told in the comments; each was seen there.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.model import Ddl, Redefined, TableName
from changes.sql.mysql.ddl import read_ddl
from changes.sql.mysql.definitions import keeps, shape_of, stored_shape

KEPT = [
    ("int(11)", "int"), ("int", "bigint"), ("tinyint(1)", "bool"), ("smallint unsigned", "int"),
    ("int unsigned", "bigint"), ("bigint unsigned", "serial"), ("int", "decimal(10,0)"),
    ("decimal(10,2)", "decimal(12,2)"), ("decimal(10,2)", "decimal(13,4)"),
    ("decimal(10,2)", "numeric(10,2)"), ("decimal(8,2) unsigned", "decimal(8,2)"),
    ("float", "double"), ("float(7,3)", "float"), ("int", "double"), ("smallint", "float"),
    ("bit(3)", "bit(8)"), ("bit(8)", "int"),
    ("varchar(10)", "varchar(20)"), ("char(10)", "varchar(10)"), ("varchar(255)", "text"),
    ("tinytext", "varchar(255)"), ("text", "mediumtext"), ("longtext", "longtext"),
    ("varchar(10)", "varchar(10) character set utf8mb4"), ("json", "longtext"),
    ("varbinary(4)", "blob"), ("blob", "mediumblob"),
    ("enum('a','b')", "enum('b','c','a')"), ("enum('a','bcd')", "varchar(3)"),
    ("set('a','b')", "set('a','x','b')"), ("set('a','b')", "char(3)"),
    ("datetime", "datetime(6)"), ("timestamp(3)", "timestamp(3)"), ("time", "time(1)"),
    ("date", "date"), ("year(4)", "year"), ("point", "point"),
]  # fmt: skip
LOST = [
    ("int", "smallint"),  # '' clamps: 300 to 127 as tinyint
    ("int", "int unsigned"), ("bigint unsigned", "bigint"), ("int", "decimal(5,0)"),
    ("bigint", "double"), ("int", "float"),
    ("decimal(10,2)", "decimal(10,1)"),  # 1.25 is 1.3, whatever the mode
    ("decimal(10,2)", "decimal(10,3)"), ("decimal(10,2)", "double"), ("decimal(10,2)", "int"),
    ("decimal(8,2)", "decimal(8,2) unsigned"),
    ("double", "int"),  # 2.5 is 2
    ("double", "float"), ("double", "double(10,2)"), ("float", "float unsigned"),
    ("bit(8)", "bit(3)"), ("int", "bit(32)"),
    ("varchar(20)", "varchar(10)"), ("text", "varchar(100)"), ("mediumtext", "text"),
    ("varchar(20000)", "text"),
    ("varchar(10)", "char(10)"),  # 'ab  ' is 'ab'
    ("varchar(10)", "varchar(10) character set latin1"), ("text", "text collate latin1_bin"),
    ("varchar(10)", "varchar(10) charset utf8"), ("varchar(10)", "nvarchar(10)"),
    ("longtext", "json"), ("varchar(10)", "varbinary(40)"), ("int", "varchar(20)"),
    ("varbinary(4)", "binary(4)"),  # x'61' is x'61000000'
    ("binary(4)", "varbinary(8)"),  # x'61', as rows tell it, is x'61000000'
    ("blob", "tinyblob"),
    ("enum('a','b')", "enum('a')"),  # '' has 'b' as ''
    ("enum('a','B')", "enum('a','b')"),  # 'B' is 'b'
    ("enum('abc')", "varchar(2)"), ("enum", "enum('a','b')"),
    ("set('x','y','z')", "set('z','y','x')"),  # 'x,z' is 'z,x'
    ("varchar(1)", "enum('a')"),
    ("datetime(6)", "datetime"),  # 10:00:00.654321 is 10:00:00
    ("time(3)", "time"), ("datetime", "timestamp"), ("timestamp", "datetime"),
    ("date", "datetime"), ("datetime", "date"), ("year", "int"), ("point", "polygon"),
    ("binary(4)", "binary(8)"),  # x'61000000' is x'6100000000000000'
]  # fmt: skip


def kept(old: str, new: str) -> bool:
    before, after = shape_of(old), shape_of(new)
    assert before is not None
    assert after is not None
    return keeps(before, after)


@pytest.mark.parametrize(("old", "new"), KEPT)
def test_what_holds_more_keeps_all(old: str, new: str) -> None:
    """A widening, or the same in other words."""
    assert kept(old, new)


@pytest.mark.parametrize(("old", "new"), LOST)
def test_what_holds_less_or_shows_it_otherwise_does_not(old: str, new: str) -> None:
    """Whatever the server's mode may be: the stream does not tell."""
    assert not kept(old, new)


@pytest.mark.parametrize(
    "words", ["", "frobnicate(3)", "bit(99999999999)", "io.debezium.time.Date", "varchar(", "1"]
)
def test_what_is_no_type_of_mysql_is_not_guessed(words: str) -> None:
    """Then nobody knows what the column could hold."""
    assert shape_of(words) is None


@pytest.mark.parametrize(
    ("stored", "new", "kept_"),
    [
        (pa.int32(), "int", True), (pa.int32(), "bigint", True), (pa.int32(), "smallint", False),
        (pa.int64(), "bigint", True), (pa.decimal128(10, 2), "decimal(10,2)", True),
        (pa.decimal128(12, 4), "decimal(10,2)", False), (pa.float64(), "double", True),
        (pa.float32(), "float", True), (pa.bool_(), "bit(1)", True), (pa.date32(), "date", True),
        (pa.timestamp("us"), "datetime(6)", True), (pa.timestamp("us"), "datetime", False),
        (pa.timestamp("us", "UTC"), "timestamp(6)", True),
    ],
)  # fmt: skip
def test_the_lakes_type_holds_at_least_what_the_column_held(
    stored: pa.DataType, new: str, kept_: bool
) -> None:
    """After a restart no row has told the type yet: it may be narrower than the lake's."""
    before, after = stored_shape(stored), shape_of(new)
    assert before is not None
    assert after is not None
    assert keeps(before, after) is kept_


@pytest.mark.parametrize("stored", [pa.string(), pa.binary()])
def test_texts_and_bytes_in_the_lake_tell_nothing(stored: pa.DataType) -> None:
    """Any length, any type that has no other place."""
    assert stored_shape(stored) is None


def redefined(clauses: str) -> tuple[Redefined, ...]:
    (ddl,) = read_ddl(f"ALTER TABLE t {clauses}", TableName("s", "t"))
    assert isinstance(ddl, Ddl)
    return ddl.redefined


def test_statements_tell_what_they_redefine() -> None:
    """With type, character set, NOT NULL and whether it is computed; new columns are none."""
    assert redefined("MODIFY a varchar(5) COLLATE latin1_bin NOT NULL, ADD b int NOT NULL") == (
        Redefined("a", "a", "varchar(5)", "latin1", not_null=True),
    )
    assert redefined("CHANGE a b int GENERATED ALWAYS AS (c + 1) STORED") == (
        Redefined("a", "b", "int", generated=True),
    )
    assert redefined("CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin") == (
        Redefined(None, charset="latin1"),
    )
    assert redefined("DEFAULT CHARACTER SET latin1, ADD INDEX i (a)") == ()
