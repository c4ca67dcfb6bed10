"""The staging folder: closed batches as Parquet files, which is what Spark reads.

Nothing here needs to survive a crash: after a restart the files are removed and their changes are
read again from Kafka. So nothing is fsynced.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.effects import Stage
from actors.messages import Staged, StageFailed
from changes.fold import concat_changes, fold, has_deletes, key_bounds, partial_columns
from changes.model import Mode


class StagingFolder:
    """One process's folder. ``stage`` from any processor's thread, ``remove`` from any."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._folder = folder / run_id
        self._folder.mkdir(parents=True, exist_ok=True)
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def stage(self, request: Stage) -> Staged | StageFailed:
        """Fold what is given, in order, into one file. Raises nothing for a disk that is full."""
        path = self._folder / f"{next(self._numbers)}.parquet"
        try:
            table = self._gather(request)
            pq.write_table(table, path, compression="zstd", compression_level=1)
            size = path.stat().st_size
        except OSError as error:
            path.unlink(missing_ok=True)
            return StageFailed(request.target, f"{path}: {error}")
        self.remove(request.pieces)
        if request.mode is Mode.APPEND:
            return Staged(request.target, str(path), table.num_rows, size)
        return Staged(
            target=request.target,
            path=str(path),
            rows=table.num_rows,
            size=size,
            has_deletes=has_deletes(table),
            partial=partial_columns(table),
            bounds=key_bounds(table, request.schema.keys),
        )

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files that are written or given up."""
        for path in paths:
            Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder and whatever is left in it. Called when the actors have ended."""
        remove_tree(self._folder)

    def _gather(self, request: Stage) -> pa.Table:
        tables = [pq.read_table(path, memory_map=False) for path in request.pieces]
        if request.changes is not None:
            tables.append(request.changes)
        table = tables[0] if len(tables) == 1 else concat_changes(tables)
        return fold(table, request.schema.keys) if request.mode is Mode.UPSERT else table


def remove_tree(folder: Path) -> None:
    """Remove a flat folder of staged files."""
    for file in folder.glob("*.parquet"):
        file.unlink(missing_ok=True)
    folder.rmdir()


def clean_staging(folder: Path) -> int:
    """Remove what dead runs left, and say how many folders that were.

    Called at the start, under the state directory's lock: so there is no live owner but us.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dead = [run for run in folder.iterdir() if run.is_dir() and run.name.startswith("run-")]
    for run in dead:
        remove_tree(run)
    return len(dead)
