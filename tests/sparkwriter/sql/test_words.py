"""What a database can't be told, and what it is told of names and types. Pure."""

from __future__ import annotations

import pytest

from changes.model.errors import TargetRefused
from changes.model.model import Mode, TargetName
from changes.sql.spark.ddl_plan import LakeField
from sparkwriter.kit.marks_table.table_description import Made
from sparkwriter.sql.base.session import target_name
from sparkwriter.sql.mysql.words import MySqlDialect
from sparkwriter.sql.postgres.words import PostgreSqlDialect

TARGET = TargetName("db", "shop", "orders")


def made(*fields: tuple[str, str], keys: tuple[str, ...] = ("id",)) -> Made:
    listed = tuple(LakeField(None, name, type_) for name, type_ in fields)
    return Made(listed, Mode.UPSERT, keys)


@pytest.mark.parametrize("name", ["", "a\0b", "é" * 32, "x" * 64])
def test_names_that_postgresql_would_cut(name: str) -> None:
    """At 63 bytes, with a notice alone: two tables would be one."""
    with pytest.raises(TargetRefused, match="is no name in PostgreSQL"):
        target_name(PostgreSqlDialect(), TARGET._replace(table=name))
    assert target_name(PostgreSqlDialect(), TARGET._replace(table="é" * 31))


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 65, "x ", "😀"])
def test_names_that_mysql_does_not_have(name: str) -> None:
    """A space at the end, a character beyond the first plane."""
    for words in (MySqlDialect(mariadb=False), MySqlDialect(mariadb=True)):
        with pytest.raises(TargetRefused, match="is no name in"):
            target_name(words, TARGET._replace(table=name))


def test_the_ledger_is_no_target() -> None:
    with pytest.raises(TargetRefused, match="are binlogd's own"):
        target_name(PostgreSqlDialect(), TARGET._replace(table="__binlogd_targets"))


def test_more_digits_than_mysql_has_are_refused() -> None:
    """30 behind the point; MariaDB has 38."""
    wide = made(("id", "long"), ("v", "decimal(38, 31)"))
    with pytest.raises(TargetRefused, match=r"column v: decimal.*up to 30 digits"):
        MySqlDialect(mariadb=False).make(TARGET, wide, "t")
    assert "decimal(38, 31)" in MySqlDialect(mariadb=True).make(TARGET, wide, "t")


def test_a_keys_texts_share_an_index() -> None:
    """3072 bytes of it, what has a fixed size taken off; four bytes a character."""
    statement = MySqlDialect(mariadb=False).make(
        TARGET,
        made(("a", "string"), ("b", "binary"), ("n", "long"), keys=("a", "b", "n")),
        "t",
    )
    assert "`a` varchar(383)" in statement
    assert "`b` varbinary(1532)" in statement
    assert 383 * 4 + 1532 + 8 <= 3072
