"""A table of the file that is no longer the one that binlogd made is refused by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import Staging

TARGET = TargetName("file", "shop", "orders")
NAME = '"shop.orders"'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "f.db")
    yield made
    made.close()


@pytest.fixture
def written(store: SqliteStore, tmp_path: Path, orders: Callable[..., pa.Table]) -> Staging:
    """A table with a row."""
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    staging = Staging(tmp_path, TARGET, TableSchema(columns, ("id",)))
    LedgeredWriter(store).write(staging.batch(orders(("U", 1, "007", 1)), 1))
    return staging


MADE_AGAIN = {
    "types": "id INTEGER PRIMARY KEY, note INTEGER, n INTEGER",
    "a collation": 'id, note COLLATE NOCASE, "n"',
    "another order": '"note", "id", "n"',
    "a column more": '"id", "note", "n", "mine"',
    "a default": '"id", "note", "n" NOT NULL DEFAULT 5',
    "a generated column": '"id", "note", "n" GENERATED ALWAYS AS (id) STORED',
    "strictness": '"id" ANY, "note" ANY, "n" ANY) STRICT --',
    "no rowid": '"id" PRIMARY KEY, "note", "n") WITHOUT ROWID --',
    "a number of its own": "id INTEGER PRIMARY KEY AUTOINCREMENT, note, n",
}


@pytest.mark.parametrize("how", MADE_AGAIN)
def test_a_table_that_somebody_made_again(how, store, written, orders, tmp_path) -> None:
    """Its types would turn values into others, its columns take those of others."""
    other = sqlite3.connect(tmp_path / "f.db")
    other.executescript(
        f"DROP TABLE {NAME}; CREATE TABLE {NAME} ({MADE_AGAIN[how]}\n)".replace("--\n)", "")
    )
    with pytest.raises(TargetRefused, match="was made or altered by somebody else"):
        LedgeredWriter(store).write(written.batch(orders(("U", 2, "008", 2)), 2))
    assert other.execute(f"SELECT count(*) FROM {NAME}").fetchone() == (0,)
    other.close()


TRIGGERS = {
    "BEFORE INSERT": True,
    "INSERT": True,
    "before  delete": True,
    "AFTER INSERT": False,
    "after\n update": False,
}


@pytest.mark.parametrize("when", TRIGGERS)
@pytest.mark.parametrize("name", ["t", '"AFTER "', "[ AFTER]"])
def test_a_trigger_that_may_let_a_row_go(when, name, store, written, orders, tmp_path) -> None:
    """BEFORE is what SQLite does where nothing is said."""
    other = sqlite3.connect(tmp_path / "f.db")
    other.execute(f"CREATE TRIGGER {name} {when} ON {NAME} BEGIN SELECT 1; END")
    other.close()
    batch = written.batch(orders(("U", 2, "008", 2)), 2)
    if TRIGGERS[when]:
        with pytest.raises(TargetRefused, match="runs BEFORE a row is written"):
            LedgeredWriter(store).write(batch)
    else:
        LedgeredWriter(store).write(batch)
        assert store.read(TARGET)["note"].to_pylist() == ["007", "008"]
