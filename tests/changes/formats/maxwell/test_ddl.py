"""Maxwell's messages about statements: one for each table that a statement changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats.engine.format import Statement, pack
from changes.model.model import (
    AddColumn,
    BadMessage,
    Column,
    Ddl,
    DropColumn,
    DropTable,
    Kind,
    RenameColumn,
    RenameTable,
    TableName,
    TakeName,
)
from changes.model.types import TEXT
from tests.changes.formats.json_messages import made

FORMAT = made("maxwell-json")
ORDERS = TableName("shop", "orders")


def statement(kind: str, sql: str | None, **members: Any) -> bytes:
    told: dict[str, Any] = {"type": kind, "database": "shop", "table": "orders", "sql": sql}
    return pack(None, json.dumps(told | {"ts": 1477053126000} | members).encode())


def read(kind: str, sql: str | None, **members: Any) -> tuple[Ddl, ...]:
    value = statement(kind, sql, **members)
    assert FORMAT.peek(value).kind is Kind.DDL
    return FORMAT.ddl(value)


def altered(sql: str) -> Ddl:
    (found,) = read("table-alter", sql)
    return found


def test_added_column_is_text() -> None:
    """Rows come without types, so a new column is text, with its default as rows print it."""
    found = altered(
        "ALTER TABLE orders ADD price decimal(10,2) NOT NULL DEFAULT 1.5, ADD note text"
    )
    assert found.steps == (
        AddColumn(Column("price", TEXT.arrow), "1.50"),
        AddColumn(Column("note", TEXT.arrow), None),
    )


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("int NOT NULL", "0"),
        ("bit(1) NOT NULL", "0"),
        ("varchar(9) DEFAULT 'x'", "x"),
        ("date DEFAULT '2020-01-02'", "2020-01-02"),
        ("datetime DEFAULT '2020-01-02 03:04:05'", "2020-01-02 03:04:05"),
        ("varbinary(9) DEFAULT 'ab'", "YWI="),
        ("double DEFAULT 1.5", "1.5"),
    ],
)
def test_defaults_as_rows_print_them(definition: str, default: str) -> None:
    """Rows of before show in a new column what Maxwell prints for its default."""
    (step,) = altered(f"ALTER TABLE orders ADD c {definition}").steps
    assert step == AddColumn(Column("c", TEXT.arrow), default)


def test_changed_type_alone_changes_nothing() -> None:
    """Text is text whatever the source's type; a new name is one."""
    assert altered("ALTER TABLE orders MODIFY id bigint").steps == ()
    assert altered("ALTER TABLE orders CHANGE a b bigint").steps == (RenameColumn("a", "b"),)
    assert altered("ALTER TABLE orders DROP c").steps == (DropColumn("c"),)


def test_unqualified_name_is_of_the_messages_database() -> None:
    """The message's own table is the one that its statement is read for."""
    assert altered("ALTER TABLE orders ADD c int").table == ORDERS


def test_dropped_tables_come_one_a_message() -> None:
    """Of a statement that drops two tables a message drops only its own."""
    assert read("table-drop", "DROP TABLE orders, items") == (
        Ddl(ORDERS, "DROP TABLE orders, items", (DropTable(),)),
    )


def test_renamed_table() -> None:
    """Old and new name are told by the message; of a statement of several pairs only its own."""
    sql = "RENAME TABLE orders TO old_orders, new_orders TO orders"
    found = read(
        "table-alter",
        sql,
        old={"database": "shop", "table": "orders"},
        **{"def": {"database": "shop", "table": "old_orders"}},
    )
    new = TableName("shop", "old_orders")
    assert found == (Ddl(ORDERS, sql, (RenameTable(new),)), Ddl(new, sql, (TakeName(ORDERS),)))


def test_name_as_it_was_typed() -> None:
    """A statement may spell its table otherwise; one about another table is not passed over."""
    (found,) = read("table-alter", "ALTER TABLE Shop.ORDERS ADD c int")
    assert found == Ddl(
        ORDERS, "ALTER TABLE Shop.ORDERS ADD c int", (AddColumn(Column("c", TEXT.arrow)),)
    )
    (other,) = read("table-alter", "ALTER TABLE items ADD c int")
    assert other.refused == "a statement about shop.items in a message about shop.orders"


def test_chain_of_names() -> None:
    """A pair whose old name is not the table's first one is told by the message alone."""
    sql = "RENAME TABLE a TO orders, orders TO b"
    new = {"database": "shop", "table": "b"}
    old = {"database": "shop", "table": "orders"}
    found = read("table-alter", sql, old=old, **{"def": new})
    assert [ddl.refused for ddl in found] == [None, None]
    assert found[0].steps == (RenameTable(TableName("shop", "b")),)


def test_created_table() -> None:
    """The first row makes the table; the statement is known and changes nothing."""
    assert read("table-create", "CREATE TABLE orders (id int)")[0].steps == ()
    assert read("table-create", None)[0].refused is None


def test_refused_statement() -> None:
    """What binlogd does not follow stops at its statement, by name."""
    found = altered("ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id, part)")
    assert found.refused is not None
    (unknown,) = read("table-alter", None)
    assert unknown.refused == "a changed table without the statement that changed it"


def test_databases() -> None:
    """Creating one is nothing; dropping one is refused, its tables are not told."""
    assert read("database-create", "CREATE DATABASE shop") == ()
    (found,) = read("database-drop", "DROP DATABASE shop")
    assert (found.table, found.refused) == (TableName("shop", ""), "DROP DATABASE shop")


def test_explained() -> None:
    """For people: the table, the text and the moment, which is in milliseconds already."""
    sql = "ALTER TABLE orders ADD c int"
    assert FORMAT.explain(statement("table-alter", sql)) == (Statement(ORDERS, sql, 1477053126000),)
    sql = "CREATE DATABASE shop"
    assert FORMAT.explain(statement("database-create", sql, table=None)) == (
        Statement(TableName("shop", ""), sql, 1477053126000),
    )


def test_statement_that_is_none() -> None:
    """A text that is no text is a bad message."""
    value = pack(None, b'{"type":"table-alter","database":"d","table":"t","sql":7}')
    with pytest.raises(BadMessage, match="not a Maxwell message"):
        FORMAT.ddl(value)
