"""A target of PostgreSQL from which another table inherits: that one's rows are its own."""

from __future__ import annotations

from typing import Any

import pytest

from changes.model.errors import TargetRefused
from changes.model.model import TruncateTable
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.databases import Server
from tests.sparkwriter.sql.test_altered import Meddling

CHILD = [(1, "child"), (2, "child"), (3, "child"), (8, "child")]


@pytest.fixture
def server(postgres_server: Server) -> Server:
    """PostgreSQL alone has inheritance, and policies."""
    return postgres_server


@pytest.fixture
def inherited(sql: Any, target: Any, writer: Any, staging: Any, orders: Any) -> str:
    """Rows 1 to 3 of a target, and the same keys in a table that inherits from it."""
    rows = [("U", n, "mine", n) for n in (1, 2, 3)]
    writer.write(staging.batch(orders(*rows), 1))
    name = f"shop.{target.table}"
    sql(f"CREATE TABLE {name}c () INHERITS ({name})")
    sql(*(f"INSERT INTO {name}c VALUES ({n}, '{note}', 0)" for n, note in CHILD))
    return name


def test_updates_inserts_and_deletes_leave_its_rows(
    inherited: str, writer: Any, staging: Any, orders: Any, sql: Any
) -> None:
    """A row of the child's is neither found nor counted as the target's."""
    changes = [("U", 1, "new", 1), ("D", 2, None, None), ("U", 8, "eight", 8)]
    writer.write(staging.batch(orders(*changes), 2, after=1))
    mine = sql(f"SELECT id, note FROM ONLY {inherited} ORDER BY 1")
    assert mine == [(1, "new"), (3, "mine"), (8, "eight")]
    assert sql(f"SELECT id, note FROM ONLY {inherited}c ORDER BY 1") == CHILD


def test_rows_that_are_read_back_are_the_targets(
    inherited: str, writer: Any, staging: Any, orders: Any, rows_of: Any
) -> None:
    """Three, not seven."""
    assert [row[0] for row in rows_of()] == [1, 2, 3]


def test_emptying_it_leaves_its_rows(inherited: str, writer: Any, staging: Any, sql: Any) -> None:
    """TRUNCATE goes down to the children by itself."""
    writer.write(staging.batch(None, 2, after=1, ddl=[[TruncateTable()]]))
    assert sql(f"SELECT id FROM ONLY {inherited}") == []
    assert sql(f"SELECT id, note FROM ONLY {inherited}c ORDER BY 1") == CHILD


def test_a_policy_that_comes_amid_a_write_is_an_error(
    server: Server, table: Any, orders: Any, sql: Any, target: Any
) -> None:
    """An UPDATE that finds no row would add it once more."""
    name = f"shop.{target.table}"
    sql("DROP ROLE IF EXISTS hid", "CREATE ROLE hid", f"GRANT ALL ON {name} TO hid")
    sql("GRANT ALL ON SCHEMA shop, binlogd TO hid")
    sql("GRANT ALL ON ALL TABLES IN SCHEMA binlogd TO hid")
    session = server.connect()

    def hide() -> None:
        session.run("SET ROLE hid")
        sql(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")

    store = JdbcStore(lambda: Meddling(session, hide), "binlogd")
    with pytest.raises(TargetRefused, match="row-level security"):
        LedgeredWriter(store).write(table.batch(orders(("U", 1, "b", 1)), 2))
    store.close()
    sql("DROP OWNED BY hid", "DROP ROLE hid")
