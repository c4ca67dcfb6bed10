"""Exactly once where the handler keeps the marks, at least once where it doesn't; versions grow."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import AddColumn, Column, Mode, TruncateTable
from offsets.snapshot import MarkMoves
from sparkwriter.function.ledger import HandlerLedger
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from tests.sparkwriter.conftest import LANE


class LedgerLost(Exception):
    """The process ends between handler and ledger."""


@pytest.fixture
def file(tmp_path: Path) -> sqlite3.Connection:
    """What the keeper keeps."""
    return sqlite3.connect(tmp_path / "rows")


def rows(file: sqlite3.Connection) -> list[tuple[object, ...]]:
    found = [pickle.loads(row) for (row,) in file.execute("SELECT row FROM rows")]
    return sorted(tuple(row.values()) for row in found)


def calls(file: sqlite3.Connection) -> list[int]:
    return [version for (version,) in file.execute("SELECT version FROM calls ORDER BY rowid")]


@pytest.mark.parametrize(("entry", "times"), [("keeper:apply", 2), ("marking:apply", 1)])
def test_an_end_between_handler_and_ledger(
    entry: str, times: int, store, staging, orders, file, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was applied is applied again with the same version; or not at all, where the handler
    says so."""
    sink = store(entry)
    LedgeredWriter(sink).write(staging.batch(orders(("U", 9, "i", 9)), 0, after=-1))
    batch = staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1, after=0)

    def lost(*given: object) -> str:
        raise LedgerLost

    with monkeypatch.context() as patched:
        patched.setattr(HandlerLedger, "put", lost)
        with pytest.raises(LedgerLost):
            LedgeredWriter(sink).write(batch)
    state = LedgeredWriter(store(entry)).write(batch)
    assert (state.hwms, state.covered) == ({LANE: 1}, times == 1)
    assert rows(file) == [(1, "a", 1), (2, "b", 2), (9, "i", 9)]
    assert calls(file)[1:] == [calls(file)[1]] * times


def test_versions_grow(writer, staging, orders, file) -> None:
    """From batch to batch, and when the marks go back: what is read again wins."""
    sink = writer("keeper:apply")
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 100))
    sink.write(staging.batch(orders(("U", 1, "b", 2)), 200))
    sink.reset(staging.target, MarkMoves(lower={LANE: 5}))
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 100, after=5))
    found = calls(file)
    assert found == sorted(set(found))
    assert len(found) == 3


def test_marks_that_are_none(store, staging, orders, file) -> None:
    """A handler that gives back another text is wrong: refused by name."""
    sink = LedgeredWriter(store("marking:apply"))
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    file.execute("UPDATE marks SET marks = 'yesterday'")
    file.commit()
    with pytest.raises(TargetRefused, match="done_through gave 'yesterday', which is no context"):
        sink.write(staging.batch(orders(("U", 1, "b", 1)), 2))


def test_statements(writer, staging, orders, file) -> None:
    """The table is emptied; later rows have the added column."""
    sink = writer("keeper:apply")
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    added = AddColumn(Column("more", orders(("U", 1, "a", 1)).schema.field("n").type), 7)
    sink.write(staging.batch(None, 2, ddl=[[TruncateTable()], [added]]))
    assert rows(file) == []
    assert sink.write(staging.batch(orders(("U", 2, "b", 2)), 3)).hwms == {LANE: 3}
    assert rows(file) == [(2, "b", 2)]


def test_a_changelog(writer, staging, orders, file) -> None:
    """Rows are what happened, each with its place."""
    table = pa.table({
        "_op": ["I", "D"], "_partition": pa.array([0, 0], pa.int32()),
        "_offset": pa.array([4, 5], pa.int64()), "_index": pa.array([0, 0], pa.int32()),
        "note": ["a", None],
    })  # fmt: skip
    batch = staging.batch(table, 5, mode=Mode.APPEND)
    writer("keeper:apply").write(batch)
    assert rows(file) == [("D", 0, 5, 0, None), ("I", 0, 4, 0, "a")]
