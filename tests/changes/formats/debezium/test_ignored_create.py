"""A CREATE TABLE that Debezium passed over: told, refused, or done where it is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.model.model import FormatOptions
from tests.changes.formats.debezium.messages import record
from tests.changes.formats.debezium.test_repeated_statements import followed, row, sort, sorter
from tests.changes.formats.debezium.test_repeated_statements import where as place

CREATE = "CREATE TABLE shop.t (id INT)"
TAKEN = [{"type": "CREATE", "id": '"shop"."t"', "table": None}]


def created(pos: int, sql: str = CREATE, changes: Any = (), **more: Any) -> bytes:
    """The record as Debezium 3.4 and 3.6 write it: an ignored one names no table."""
    named = {"db": "shop", "table": "t"} if changes else {"db": "", "table": ""}
    source = place(pos, **named, **more)
    value = {"source": source, "databaseName": named["db"], "ddl": sql}
    return record({**value, "tableChanges": list(changes)})


@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    "sql", [CREATE, "/* app */ create  table shop.t LIKE u", "# x\nCREATE/**/TABLE shop.t (id INT)"]
)
def test_it_is_told_and_refused_where_the_table_was_renamed_away(sql: str, connector: str) -> None:
    """With what leads out."""
    (found,) = DebeziumJson(FormatOptions()).ddl(created(20, sql, connector=connector))
    assert str(found.table) == "shop.t"
    assert "sent again" in str(found.unread)
    assert "binlogd collector reset" in str(found.refused_if_gone)
    assert (found.refused, found.unless_stored) == (None, False)


@pytest.mark.parametrize(
    ("sql", "changes", "connector"),
    [
        (CREATE, TAKEN, "mariadb"),
        (CREATE, (), "TiCDC"),
        ("CREATE VIEW v AS SELECT 1", (), "mariadb"),
        ("CREATE DATABASE shop", (), "mariadb"),
    ],
)
def test_others_do_nothing(sql: str, changes: Any, connector: str) -> None:
    """What Debezium took, what another writes without that member, and what makes no table."""
    found = DebeziumJson(FormatOptions()).ddl(created(20, sql, changes, connector=connector))
    assert all(one.refused is one.unread is one.refused_if_gone is None for one in found)


@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
def test_mysqls_if_not_exists_may_have_made_nothing(connector: str) -> None:
    """MySQL logs it where the table is there; MariaDB logs no such statement."""
    sql = "CREATE TABLE IF NOT EXISTS shop.t (id INT)"
    (found,) = DebeziumJson(FormatOptions()).ddl(created(20, sql, connector=connector))
    assert found.unless_stored == (connector == "mysql")


@pytest.mark.parametrize("between", [[], [row(10)], [row(30)]])
def test_one_that_is_sent_again_is_done(between: list[bytes]) -> None:
    """Also behind rows that are sent again: it was taken the first time."""
    values = [row(10), created(20, changes=TAKEN), *between, created(20)]
    found = sort(sorter(), *values)
    assert found.problem is None
    assert followed(found) == [1]
    assert not found.unread


def test_one_behind_anything_is_new() -> None:
    """A reader sends again what was read here: another place is another statement."""
    for before in (row(10), created(10, CREATE.replace("t ", "u "), TAKEN)):
        assert followed(sort(sorter(), before, created(20)))[-1] == 1
