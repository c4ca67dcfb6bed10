"""Statements of a snapshot describe what is there; they don't act."""

from __future__ import annotations

from typing import Any

import pytest

from actors.contract import messages as msg
from actors.fetcher.sorting import Sorter
from changes.formats.debezium.json import DebeziumJson
from changes.model.model import Ddl, DropTable, FormatOptions, Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from tests.changes.formats.debezium.messages import MYSQL, change, record

FORMAT = DebeziumJson(FormatOptions())
FIRST = [
    "SET character_set_server=utf8mb4, collation_server=utf8mb4_general_ci",
    "DROP TABLE IF EXISTS `shop`.`orders`",
    "DROP DATABASE IF EXISTS `shop`",
    "CREATE DATABASE `shop` CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "USE `shop`",
    "CREATE TABLE `orders` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB",
]
"""What Debezium's first snapshot of MySQL and MariaDB begins with."""


def statement(sql: str, snapshot: Any = "true", table: str = "") -> bytes:
    """A schema change, as it stands in the connector's topic of these."""
    source = {**MYSQL, "snapshot": snapshot, "table": table}
    changes = [{"type": "CREATE"}] if sql.startswith("CREATE TABLE") else []
    value = {"source": source, "databaseName": "shop", "ddl": sql, "tableChanges": changes}
    return record({**value, "ts_ms": 5}, {"databaseName": "shop"})


@pytest.mark.parametrize(
    "snapshot",
    ["true", True, "first", "last", "TRUE", "first_in_data_collection", "last_in_data_collection"],
)
@pytest.mark.parametrize(
    "sql",
    [
        *FIRST[:-1],
        "DROP TABLE `orders`",
        "TRUNCATE TABLE orders",
        "RENAME TABLE a TO b",
        "ALTER TABLE orders DROP COLUMN name",
        "FROBNICATE",
        "CREATE TABLES",
        "CREATE OR REPLACE TABLE orders (id INT)",
    ],
)
def test_a_snapshots_statement_does_nothing(sql: str, snapshot: Any) -> None:
    """Whatever it would do at another time."""
    assert all(not ddl.steps for ddl in FORMAT.ddl(statement(sql, snapshot)))
    assert all(ddl.refused is ddl.unread is None for ddl in FORMAT.ddl(statement(sql, snapshot)))


def test_a_snapshot_that_creates_a_table_tells_of_it() -> None:
    """As the same statement does later, and what is known not to be followed stays refused."""
    assert FORMAT.ddl(statement(FIRST[-1])) == FORMAT.ddl(statement(FIRST[-1], "false"))
    assert [str(ddl.table) for ddl in FORMAT.ddl(statement(FIRST[-1]))] == ["shop.orders"]
    versioned = "CREATE TABLE t (id INT) WITH SYSTEM VERSIONING"
    assert FORMAT.ddl(statement(versioned))[0].refused is not None


@pytest.mark.parametrize("snapshot", ["false", False, None, "incremental", "blocking", 1])
def test_any_other_statement_acts(snapshot: Any) -> None:
    """An incremental snapshot goes beside the stream, whose statements are those of before."""
    (found,) = FORMAT.ddl(statement("DROP TABLE orders", snapshot))
    assert isinstance(found, Ddl)
    assert found.steps == (DropTable(),)
    assert FORMAT.ddl(statement("DROP DATABASE shop", snapshot))[0].refused is not None


def test_a_statement_of_no_source_acts() -> None:
    """Some writers leave it out, or write null."""
    value = {"source": None, "databaseName": "shop", "ddl": "DROP TABLE t", "tableChanges": []}
    assert FORMAT.ddl(record(value))[0].steps == (DropTable(),)


def test_a_first_snapshot_is_read_to_its_rows() -> None:
    """It begins with DROP DATABASE, which stopped the pipeline before the first row."""
    route = Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)
    values = [*map(statement, FIRST), change("r", {"id": 1})]
    sorter = Sorter(FORMAT, Router([route]), ddl_not_understood_stops=True)
    source = TopicPartition("s", 0)
    found = sorter.sort(msg.Fetched(source, list(range(len(values))), values, len(values)))
    assert found.problem is None
    assert not found.unread
    assert [[*share.messages.offsets] for share in found.shares if not share.ddl] == [[6]]
