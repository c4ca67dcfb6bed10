"""The SELECTs over a key: ranges that meet without a gap, hostile names and values, look-ups."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from changes.model.model import TableName
from changes.sql.forms import Form
from databases.base.errors import DatabaseRefused
from databases.base.port import ALL_ROWS, KeyRange, SourceColumn, SourceTable
from databases.base.selects import MOST_KEYS
from databases.mysql.database import MySqlDatabase
from databases.mysql.sql import MySqlWords
from databases.postgres.sql import PostgreSqlWords

Rows = list[tuple[object, ...]]


class Answering(MySqlDatabase):
    """A database whose answers are the test's."""

    def __init__(self, answer: Callable[[str], Rows]) -> None:
        self._answer = answer

    def ask(self, sql: str, values: Sequence[str] = ()) -> Rows:
        return self._answer(sql)


MYSQL, POSTGRESQL = MySqlWords(), PostgreSqlWords()


def table(*columns: SourceColumn, keys: tuple[str, ...] = ("a",)) -> SourceTable:
    return SourceTable(TableName("shop", "orders"), columns, keys, 0, 0, "")


def column(name: str, type_: str, form: Form | None) -> SourceColumn:
    return SourceColumn(name, type_, False, form)


PAIR = table(column("a", "int", Form.WHOLE), column("b", "varchar(9)", Form.TEXT), keys=("a", "b"))


def test_all_rows_need_no_condition() -> None:
    """An open range is the whole table."""
    for words in (MYSQL, POSTGRESQL):
        assert words.predicate(PAIR, ALL_ROWS) == "1 = 1"


def test_a_range_is_open_below_and_closed_above() -> None:
    """So the next one, from the same bound, has just the rows behind it."""
    one = table(column("a", "int", Form.WHOLE))
    found = MYSQL.predicate(one, KeyRange(("3",), ("7",)))
    assert found == "`a` > 3 AND `a` <= 7"


def test_a_key_of_two_columns_is_compared_whole() -> None:
    """PostgreSQL reads that from an index; MySQL reads the first column's bound from it."""
    part = KeyRange(("3", "x"), ("7", "y"))
    assert POSTGRESQL.predicate(PAIR, part) == (
        '("a", "b") > (\'3\'::int, \'x\'::varchar(9)) AND ("a", "b") <= '
        "('7'::int, 'y'::varchar(9))"
    )
    assert MYSQL.predicate(PAIR, part) == (
        "(`a` >= 3 AND ((`a` > 3) OR (`a` = 3 AND `b` > _utf8mb4 X'78'))) AND "
        "(`a` <= 7 AND ((`a` < 7) OR (`a` = 7 AND `b` <= _utf8mb4 X'79')))"
    )


HOSTILE = ["'; DROP TABLE x; --", "\\", "\\'", "`", '"', "a\nb", "${x}", "%s", "", " ", "数据🙂"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_in_mysql_is_in_hex(text: str) -> None:
    """No sign of it stands in the SQL, whatever the server takes for an escape."""
    found = MYSQL.literal(column("a", "varchar(60)", Form.TEXT), text)
    assert found == f"_utf8mb4 X'{text.encode().hex()}'"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_in_postgresql_is_quoted(text: str) -> None:
    """Backslashes are plain there: the session says so."""
    found = POSTGRESQL.literal(column("a", "text", Form.TEXT), text)
    assert re.fullmatch(r"'(?:[^']|'')*'::text", found, re.DOTALL)
    assert found.removesuffix("'::text").removeprefix("'").replace("''", "'") == text


@pytest.mark.parametrize("name", ["a`b", 'a"b', "a'b", "a b", "ü", "${x}", "a;--", "c0"])
def test_names_are_quoted(name: str) -> None:
    """Whatever is in them."""
    assert MYSQL.quote(name) == "`" + name.replace("`", "``") + "`"
    assert POSTGRESQL.quote(name) == '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize(
    ("type_", "form", "text"),
    [
        ("int", Form.WHOLE, "1 OR 1=1"),
        ("int", Form.WHOLE, ""),
        ("date", Form.DATE, "x'"),
        ("double", Form.DOUBLE, "1);--"),
        ("varbinary(4)", Form.HEX, "0'"),
        ("varbinary(4)", Form.HEX, "abc"),
        ("enum('a','b')", Form.TEXT, "c"),
        ("set('a','b')", Form.TEXT, "a,c"),
        ("enum('a','')", Form.TEXT, ""),
    ],
)
def test_what_is_no_value_of_a_key_is_refused(type_: str, form: Form, text: str) -> None:
    """Outside of texts a value is unquoted, so each sign is looked at."""
    with pytest.raises(DatabaseRefused, match="column a: "):
        MYSQL.literal(column("a", type_, form), text)


@pytest.mark.parametrize(
    ("type_", "form", "text", "literal"),
    [
        ("enum('a','it''s')", Form.TEXT, "it's", "2"),
        ("enum('a')", Form.TEXT, "", "0"),
        ("set('x','y','z')", Form.TEXT, "x,z", "5"),
        ("set('x')", Form.TEXT, "", "0"),
        ("bigint unsigned", Form.WHOLE, "18446744073709551615", "18446744073709551615"),
        ("binary(4)", Form.STRIPPED, "01", "X'01000000'"),
        ("varbinary(4)", Form.HEX, "01", "X'01'"),
        ("double", Form.DOUBLE, "5e-324", "5e-324"),
        ("double", Form.DOUBLE, "0.1", "0.1e0"),
        ("datetime(6)", Form.LOCAL, "0000-00-00 00:00:00.000000", "'0000-00-00 00:00:00.000000'"),
        ("time", Form.TIME, "-838:59:59", "'-838:59:59'"),
        ("decimal(65,30)", Form.DECIMAL, f"-0.{'1' * 30}", f"-0.{'1' * 30}"),
    ],
)
def test_keys_of_each_kind_in_mysql(type_: str, form: Form, text: str, literal: str) -> None:
    """Labels by the number that an index orders them by, bytes with the zeros at their end."""
    assert MYSQL.literal(column("a", type_, form), text) == literal


@pytest.mark.parametrize(
    ("type_", "form", "text", "literal"),
    [
        ("bytea", Form.HEX, "00ff", "'\\x00ff'::bytea"),
        ("character(3)", Form.TEXT, "a  ", "'a  '::bpchar"),
        ("bit(4)", Form.WHOLE, "5", "B'0101'"),
        ("shop.mood", Form.TEXT, "it's", "'it''s'::shop.mood"),
        ('"odd type"', Form.TEXT, "x", "'x'::\"odd type\""),
    ],
)
def test_keys_of_each_kind_in_postgresql(type_: str, form: Form, text: str, literal: str) -> None:
    """With their types: an enumeration's order is its own, not its text's."""
    assert POSTGRESQL.literal(column("a", type_, form), text) == literal


def test_columns_are_named_by_their_place() -> None:
    """No name of a source's gets into Spark's SQL for the driver."""
    odd = table(column("a`b", "int", Form.WHOLE), keys=("a`b",))
    found = MYSQL.query(odd, odd.columns, ALL_ROWS)
    assert found == "SELECT CAST(`a``b` + 0 AS CHAR) AS c0 FROM `shop`.`orders` WHERE 1 = 1"


def test_a_column_without_a_text_is_refused() -> None:
    """With the reason that the description gives."""
    odd = SourceColumn("a", "vector(3)", True, None, refused="no exact text is known")
    with pytest.raises(DatabaseRefused, match="column a: no exact text is known"):
        MYSQL.query(table(odd), [odd], ALL_ROWS)
    with pytest.raises(DatabaseRefused):
        POSTGRESQL.compared(odd)


def test_a_walk_stops_where_a_key_is_not_found_by_its_own_text() -> None:
    """Or it would give the same range for ever."""
    one = table(column("a", "int", Form.WHOLE))
    ranges = Answering(lambda sql: [("5",)]).ranges(one, 10)
    assert next(ranges) == KeyRange(None, ("5",))
    with pytest.raises(DatabaseRefused, match="not found by its own text"):
        next(ranges)


def test_a_table_without_a_key_is_not_walked() -> None:
    """Its rows can't be told apart."""
    with pytest.raises(DatabaseRefused, match=r"shop\.orders has no key"):
        next(Answering(lambda sql: []).ranges(table(keys=()), 10))


def test_look_ups_are_bounded() -> None:
    """A statement has so many conditions at most."""
    one = table(column("a", "int", Form.WHOLE))
    asked: list[str] = []

    def ask(sql: str) -> list[tuple[object, ...]]:
        asked.append(sql)
        return []

    keys = [(str(number),) for number in range(2 * MOST_KEYS + 1)]
    assert Answering(ask).rows(one, one.columns, keys) == {}
    assert [sql.count(" OR ") + 1 for sql in asked] == [MOST_KEYS, MOST_KEYS, 1]
