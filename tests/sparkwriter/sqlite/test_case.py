"""SQLite does not tell names apart by case: who is second is refused, and both are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import OP, Column, TableSchema, TargetName
from changes.routes.shaping.columns import check_names
from changes.routes.shaping.names import ShapeRefused
from sparkwriter.kit.marks_table.sqlite_ledger import quote, table_name
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import Staging

SCHEMA = TableSchema((Column("id", pa.int64()),), ("id",))
ROW = pa.table({OP: ["U"], "id": [1]})
USERS = TargetName("lite", "shop", "users")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "one.db")
    TargetWriter(made).write(Staging(tmp_path, USERS, SCHEMA).batch(ROW, 1))
    yield made
    made.close()


@pytest.mark.parametrize(("namespace", "table"), [("shop", "Users"), ("SHOP", "users")])
def test_a_second_table_of_the_name_in_another_case_is_refused(
    store: SqliteStore, tmp_path: Path, namespace: str, table: str
) -> None:
    """And the first one keeps its rows."""
    second = Staging(tmp_path, TargetName("lite", namespace, table), SCHEMA)
    said = rf"its table {namespace}\.{table} differs from shop\.users in case alone"
    with pytest.raises(TargetRefused, match=said):
        TargetWriter(store).write(second.batch(ROW, 1))
    assert store.read(USERS).to_pylist() == [{"id": 1}]


def test_a_table_may_get_its_own_name_in_another_case(store: SqliteStore) -> None:
    """It is the same table; another one may not take a name that is there in another case."""
    name, other = table_name(USERS), table_name(TargetName("lite", "shop", "Users"))
    row = store.look(USERS)
    made = row.table  # type: ignore[union-attr]
    store._rename(name, other, made)
    connection = store._connection
    assert connection.execute(f"SELECT id FROM {quote(other)}").fetchall() == [(1,)]
    connection.execute('CREATE TABLE "shop.Orders" (id)')
    with pytest.raises(TargetRefused, match=r"shop\.orders differs from shop\.Orders"):
        store._rename(other, "shop.orders", made)


def test_columns_in_two_cases_are_refused_by_both_names() -> None:
    """Where the reason is the case alone, it is said."""
    with pytest.raises(ShapeRefused, match="named Name, and another one is named name, in another"):
        check_names(iter(("id", "name", "Name")))
    with pytest.raises(ShapeRefused, match="named id, and another one has that name"):
        check_names(iter(("id", "".join(["i", "d"]))))
