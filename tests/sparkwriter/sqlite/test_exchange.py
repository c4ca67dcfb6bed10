"""A table of SQLite that takes another's name: what names it is of the new one; triggers refuse."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.writes import Swap
from changes.model.errors import TargetRefused
from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import LANE, Staging

OLD = TargetName("copy", "shop", "orders")
NEW = OLD._replace(table="orders__rebuild_1")
SWAP = Swap(OLD, NEW, OLD._replace(table="orders__before_1"), {LANE: 9})


@pytest.fixture
def sink(tmp_path: Path, orders: Any) -> Iterator[LedgeredWriter]:
    """With both tables."""
    store = SqliteStore(tmp_path / "copy.db")
    writer = LedgeredWriter(store)
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    for target, through, row in ((OLD, 1, ("U", 1, "a", 1)), (NEW, 8, ("U", 2, "b", 2))):
        staging = Staging(tmp_path, target, TableSchema(columns, ("id",)))
        writer.write(staging.batch(orders(row), through))
    yield writer
    store.close()


@pytest.fixture
def file(tmp_path: Path, sink: LedgeredWriter) -> Iterator[sqlite3.Connection]:
    """As somebody else opens it."""
    connection = sqlite3.connect(tmp_path / "copy.db", isolation_level=None)
    yield connection
    connection.close()


def table(file: sqlite3.Connection) -> str:
    """The target's name there."""
    names = [str(name) for (name,) in file.execute("SELECT name FROM sqlite_master")]
    return next(name for name in names if "orders" in name and "__" not in name)


def test_a_view_shows_the_new_table(sink: LedgeredWriter, file: sqlite3.Connection) -> None:
    """It would follow the old one to its end."""
    name = table(file)
    file.execute(f'CREATE VIEW notes AS SELECT note FROM "{name}"')
    file.execute(f'CREATE TABLE child (a REFERENCES "{name}" (id))')
    sink.swap(SWAP)
    assert file.execute("SELECT note FROM notes").fetchall() == [("b",)]
    ((said,),) = file.execute("SELECT sql FROM sqlite_master WHERE name = 'child'").fetchall()
    assert f'REFERENCES "{name}"' in said


def test_a_trigger_is_named(sink: LedgeredWriter, file: sqlite3.Connection) -> None:
    """It would go with the old table."""
    name = table(file)
    file.execute(f'CREATE TRIGGER tells AFTER INSERT ON "{name}" BEGIN SELECT 1; END')
    with pytest.raises(TargetRefused, match="trigger tells: would go with the old table"):
        sink.swap(SWAP)
    assert file.execute(f'SELECT note FROM "{name}"').fetchall() == [("a",)]
    file.execute("DROP TRIGGER tells")
    assert sink.swap(SWAP).hwms == {LANE: 8}
