"""Both databases in turn, a writer, batches of any columns, and SQL beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.writes import Swap
from changes.model.model import OP, Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.databases import JdbcTables, Server

_numbers = itertools.count()


@pytest.fixture(params=["postgres", "mariadb", pytest.param("mysql", marks=pytest.mark.soak)])
def server(request: pytest.FixtureRequest) -> Server:
    """Each in turn."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def tables(server: Server) -> Iterator[JdbcTables]:
    """Its tables."""
    made = JdbcTables(server)
    yield made
    made.close()


@pytest.fixture
def writer(tables: JdbcTables) -> LedgeredWriter:
    """One member."""
    return LedgeredWriter(tables.store())


@pytest.fixture
def target() -> TargetName:
    """A target that no other test uses and that does not exist yet."""
    return TargetName("db", "shop", f"j{next(_numbers)}")


@pytest.fixture
def staging(tmp_path: Path, target: TargetName) -> Staging:
    """Batches for a table of orders: id (long), note (string), n (int)."""
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    return Staging(tmp_path, target, TableSchema(columns, ("id",)))


@pytest.fixture
def typed(tmp_path: Path, target: TargetName) -> Callable[..., Any]:
    """A batch of rows with the columns' own types; the first is the key."""

    def make(through: int, after: int = -1, keys: int = 1, **columns: pa.Array) -> Any:
        names = list(columns)
        schema = TableSchema(
            tuple(Column(name, array.type) for name, array in columns.items()), tuple(names[:keys])
        )
        ops = pa.array(["U"] * len(columns[names[0]]))
        staged = Staging(tmp_path, target, schema)
        return staged.batch(pa.table({OP: ops, **columns}), through, after=after)

    return make


@pytest.fixture
def sql(server: Server) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Run statements on a connection of the test's own; gives the last one's rows."""
    session = server.connect()
    if not session.has_schema("shop"):
        session.run("CREATE SCHEMA shop")

    def run(*statements: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for statement in statements:
            if statement.startswith("SELECT"):
                found = session.rows(statement)
            else:
                session.run(statement)
        return found

    yield run
    session.close()


@pytest.fixture
def table(writer, staging, orders) -> Staging:
    """A table with two rows, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    return staging


@pytest.fixture
def rows_of(tables: JdbcTables, target: TargetName) -> Callable[[], list[tuple[object, ...]]]:
    """The target's rows, sorted."""

    def read() -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in tables.read(target).to_pylist())

    return read


@pytest.fixture
def rebuilt(writer, table, orders, target) -> Callable[[], Swap]:
    """Fill another table as ``tables rebuild`` does, up to 8; gives the exchange of the two."""

    def fill() -> Swap:
        new = target._replace(table=f"{target.table}__rebuild")
        staged = Staging(table.folder, new, table.schema)
        writer.write(staged.batch(orders(("U", 1, "right", 1), ("U", 2, "b", 20)), 8))
        return Swap(target, new, target._replace(table=f"{target.table}__before"), {LANE: 9})

    return fill
