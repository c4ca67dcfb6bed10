"""The plan as lines and as a document."""

from __future__ import annotations

from changes.model.model import TableName
from changes.sql.forms import Form
from collector.checks.seen import SeenSource, SeenTable
from daemon.cli.replicate import plan
from databases.base.findings import problem, warning
from databases.base.port import SourceColumn, SourceTable
from databases.mysql.sql import form_of


def column(name: str, type_: str) -> SourceColumn:
    return SourceColumn(name, type_, nullable=True, form=form_of(type_))


def table(name: str, rows: int, *columns: SourceColumn) -> SourceTable:
    id_ = SourceColumn("id", "int", nullable=False, form=Form.WHOLE)
    return SourceTable(TableName("shop", name), (id_, *columns), ("id",), rows, rows * 80, "x")


ORDERS = table(
    "orders", 1_200_000, column("total", "decimal(10,2)"), column("note", "text"),
    column("state", "enum('a','b')"), column("big", "bigint unsigned"),
    column("at", "timestamp(6)"), column("doc", "json"), column("local", "datetime"),
    column("small", "tinyint(1)"), column("u", "int unsigned"),
)  # fmt: skip


def test_types_that_mean_the_same_are_not_told() -> None:
    """Others are, with the columns that have them."""
    found = plan.changed_types([ORDERS, table("other", 1, column("doc", "json"))], "mysql")
    assert found == {
        ("enum(…)", "string"): ["shop.orders.state"],
        ("bigint unsigned", "decimal(20, 0)"): ["shop.orders.big"],
        ("json", "string"): ["shop.orders.doc", "shop.other.doc"],
        ("int unsigned", "long"): ["shop.orders.u"],
    }


def test_the_plan_has_all_that_is_about_to_be_done() -> None:
    keyless = SeenTable(
        TableName("shop", "log"), None, (problem("shop.log has no key", "ALTER TABLE x"),)
    )
    seen = SeenSource(
        (problem("its log can't be read", "GRANT REPLICATION SLAVE ON *.* TO r"),
         warning("its log is kept for 3600 s", "SET GLOBAL x = 1")),
        (SeenTable(ORDERS.name, ORDERS), keyless),
    )  # fmt: skip
    lines = list(plan.lines(seen, "mysql", "mysql://r@h/shop", "lake"))
    assert lines == [
        "source: mysql://r@h/shop",
        "into:   lake",
        "tables: 1 to follow, about 1,200,000 rows, 96.0 MB; equal in about 2 min",
        "  shop.orders      1,200,000 rows    96.0 MB  id",
        "left out: 1 table, until this is mended:",
        "  shop.log has no key",
        "      ALTER TABLE x;",
        "types that change (docs/types.md), by the lake's names:",
        "  bigint unsigned -> decimal(20, 0): shop.orders.big",
        "  enum(…) -> string: shop.orders.state",
        "  int unsigned -> long: shop.orders.u",
        "  json -> string: shop.orders.doc",
        "worth knowing:",
        "  its log is kept for 3600 s",
        "      SET GLOBAL x = 1;",
        "what the source lacks:",
        "  its log can't be read",
        "      GRANT REPLICATION SLAVE ON *.* TO r;",
    ]
    found = plan.document(seen, "mysql")
    assert found["lacks"] == [
        {"text": "its log can't be read", "statements": ["GRANT REPLICATION SLAVE ON *.* TO r"]}
    ]
    assert found["tables"] == [
        {"table": "shop.orders", "rows": 1_200_000, "bytes": 96_000_000, "keys": ["id"]}
    ]


def test_of_many_tables_the_largest_are_listed() -> None:
    tables = [table(f"t{number}", number) for number in range(100)]
    seen = SeenSource((), tuple(SeenTable(one.name, one) for one in tables))
    lines = list(plan.lines(seen, "mysql", "a", "b"))
    assert lines[3].split()[0] == "shop.t99"
    assert lines[-1] == "  and 60 smaller ones"
