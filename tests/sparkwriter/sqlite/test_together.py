"""Several tables of a file in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch
from changes.model.cut_row import cut_of
from changes.model.cuts_table import staged_row
from changes.model.errors import SinkAway, TargetRefused
from changes.model.model import Column, TableSchema, TargetName
from offsets.cuts import Cut
from offsets.position import TopicPartition
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sqlite.queries import SqliteQueries
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import Staging

NAMES = [TargetName("file", "shop", name) for name in ("orders", "items")]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgeredWriter]:
    store = SqliteStore(tmp_path / "f.db")
    yield LedgeredWriter(store)
    store.close()


@pytest.fixture
def batches(tmp_path: Path, orders: Callable[..., pa.Table]) -> Callable[..., list[StagedBatch]]:
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    staging = []
    for name in NAMES:
        (folder := tmp_path / name.table).mkdir()
        staging.append(Staging(folder, name, TableSchema(columns, ("id",))))
    return lambda through, n: [s.batch(orders(("U", 1, "a", n)), through) for s in staging]


def shown(folder: Path) -> list[Any]:
    """As somebody else finds it."""
    with sqlite3.connect(folder / "f.db") as file:
        return [file.execute(f'SELECT n FROM "shop.{name.table}"').fetchall() for name in NAMES]


def test_readers_see_all_of_it_or_nothing(writer, batches, tmp_path: Path) -> None:
    """One that is refused takes the others back; it is named."""
    writer.write_together(batches(1, 10))
    assert shown(tmp_path) == [[(10,)], [(10,)]]
    with sqlite3.connect(tmp_path / "f.db") as file:
        text = "BEGIN SELECT RAISE(ABORT, 'full'); END"
        file.execute(f'CREATE TRIGGER full BEFORE INSERT ON "shop.orders" {text}')
        file.execute(f'CREATE TRIGGER kept BEFORE UPDATE ON "shop.orders" {text}')
    both = batches(2, 20)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(both)
    assert failed.value.target == NAMES[0]
    assert isinstance(failed.value.__cause__, TargetRefused)
    assert shown(tmp_path) == [[(10,)], [(10,)]]
    with sqlite3.connect(tmp_path / "f.db") as file:
        file.execute("DROP TRIGGER full")
        file.execute("DROP TRIGGER kept")
    assert [state.covered for state in writer.write_together(both)] == [False, False]
    assert shown(tmp_path) == [[(20,)], [(20,)]]


def test_a_cut_that_is_listed_there_is_read(writer, tmp_path: Path) -> None:
    """SQLite has no type for times."""
    lane = {TopicPartition("shop", 0): 7}
    cut = Cut(1_800_000_000, "p", "transaction", lane, 1_799_999_999_123, "7", {"a": "1"}, {})
    rows, schema = staged_row(cut)
    table = TargetName("file", "binlogd", "cuts")
    writer.write(Staging(tmp_path, table, schema).batch(rows, 1))
    queries = SqliteQueries("file", tmp_path / "f.db")
    with queries.answer(f"SELECT * FROM {queries.spell(table)}", [table], None) as answer:
        (row,) = answer.rows
        assert cut_of(dict(zip(answer.columns, row, strict=True))) == cut


@pytest.mark.parametrize(
    ("mine", "anothers"), [("busy_timeout = 0", "BEGIN IMMEDIATE"), ("query_only = on", "SELECT 1")]
)
def test_a_file_that_takes_no_writes_is_nobodys_fault(
    writer, batches, tmp_path: Path, mine: str, anothers: str
) -> None:
    """A lock is the file's, and so are its rights: none of the tables could be written."""
    writer.write_together(batches(1, 10))
    writer.tables._connection.execute(f"PRAGMA {mine}")
    other = sqlite3.connect(tmp_path / "f.db", isolation_level=None)
    other.execute(anothers)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(batches(2, 20))
    other.close()
    assert isinstance(failed.value.__cause__, SinkAway)
