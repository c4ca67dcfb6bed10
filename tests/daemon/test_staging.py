"""The staging folder on a real disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.effects import Stage
from actors.messages import Staged, StageFailed
from changes.model import OP, Column, KeyBound, Mode, TableSchema, TargetName
from daemon.staging import StagingFolder, clean_staging

TARGET = TargetName("lake", "s", "t")
SCHEMA = TableSchema((Column("id", pa.int32()), Column("v", pa.string())), ("id",))


def changes(*rows: tuple[str, int, str]) -> pa.Table:
    ops, ids, values = zip(*rows, strict=True)
    return pa.table(
        {OP: pa.array(ops), "id": pa.array(ids, pa.int32()), "v": pa.array(values, pa.string())}
    )


def stage(folder: StagingFolder, table: pa.Table | None, *pieces: str) -> Staged:
    staged = folder.stage(Stage(TARGET, SCHEMA, Mode.UPSERT, pieces, table))
    assert isinstance(staged, Staged)
    return staged


def test_a_batch_is_folded_and_described(tmp_path: Path) -> None:
    """The file holds net changes; the write is told its bounds and whether it deletes."""
    folder = StagingFolder(tmp_path, "run-1")
    staged = stage(folder, changes(("U", 3, "a"), ("U", 1, "b"), ("U", 3, "c"), ("D", 9, "")))
    rows = pq.read_table(staged.path).to_pylist()
    assert sorted((row[OP], row["id"], row["v"]) for row in rows if row[OP] == "U") == [
        ("U", 1, "b"), ("U", 3, "c")
    ]  # fmt: skip
    assert (staged.rows, staged.has_deletes) == (3, True)
    assert staged.bounds == (KeyBound("id", 1, 9),)


def test_pieces_are_folded_again_in_order_and_removed(tmp_path: Path) -> None:
    """What was staged behind a write goes into the next one as one batch: the later wins."""
    folder = StagingFolder(tmp_path, "run-1")
    first = stage(folder, changes(("U", 1, "old"), ("U", 2, "kept")))
    staged = stage(folder, changes(("U", 1, "new")), first.path)
    rows = {row["id"]: row["v"] for row in pq.read_table(staged.path).to_pylist()}
    assert rows == {1: "new", 2: "kept"}
    assert not Path(first.path).exists()


def test_a_changelog_is_not_folded(tmp_path: Path) -> None:
    """Every change is a row of its own."""
    table = pa.table({"_op": ["I", "U"], "id": [1, 1]})
    staged = StagingFolder(tmp_path, "run-1").stage(
        Stage(TARGET, SCHEMA, Mode.APPEND, (), table)
    )
    assert isinstance(staged, Staged)
    assert staged.rows == 2


def test_a_disk_that_takes_nothing_is_an_answer(tmp_path: Path) -> None:
    """Tried again like a sink; the pieces stay."""
    folder = StagingFolder(tmp_path, "run-1")
    first = stage(folder, changes(("U", 1, "a")))
    moved = tmp_path / "run-1"
    moved.rename(tmp_path / "away")
    failed = folder.stage(Stage(TARGET, SCHEMA, Mode.UPSERT, (), changes(("U", 2, "b"))))
    (tmp_path / "away").rename(moved)
    assert isinstance(failed, StageFailed)
    assert "run-1" in failed.reason
    assert Path(first.path).exists()


def test_what_dead_runs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    """Their changes are read again from Kafka."""
    stage(StagingFolder(tmp_path, "run-dead"), changes(("U", 1, "a")))
    (tmp_path / "notes.txt").write_text("not ours")
    assert clean_staging(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    """A writer and a processor may both give a file up."""
    folder = StagingFolder(tmp_path, "run-1")
    staged = stage(folder, changes(("U", 1, "a")))
    folder.remove((staged.path, staged.path))
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_each_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two processors stage at the same time."""
    folder = StagingFolder(tmp_path, "run-1")
    paths = {stage(folder, changes(("U", 1, "a"))).path for _ in range(5)}
    assert len(paths) == 5
