"""One read that goes on while its job does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from changes.model.model import OP, ZeroDates
from daemon.operations.engine.port import Control, JobAway
from daemon.operations.load.columns import FittedTable
from daemon.operations.load.ports import Chunk
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.port import KeyRange
from databases.reading import ROWS_AT_ONCE, Reading
from sparkwriter.session.requests import ChunkQuery, ChunkUnreadable

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm


@dataclass(frozen=True, slots=True)
class ReadRanges:
    """What is read: a group of ranges, for one attempt of a load. What one attempt has read says
    nothing to another one, which must read later."""

    attempt: str
    parts: tuple[KeyRange, ...]


class Ahead:
    """At most one read, on a thread of its own. Called by one thread."""

    def __init__(self, remove: Callable[[Sequence[Chunk]], None]) -> None:
        """``remove``: of chunks that nobody takes."""
        self._remove = remove
        self._found: tuple[ReadRanges, Future[Sequence[Chunk]]] | None = None

    def begin(self, asked: ReadRanges, read: Callable[[], Sequence[Chunk]]) -> None:
        """Read it meanwhile. Nothing may be under way."""
        assert self._found is None
        future: Future[Sequence[Chunk]] = Future()
        self._found = asked, future
        # No pool: its threads would have to end before the daemon does.
        thread = threading.Thread(target=_run, args=(read, future), daemon=True, name="load-ahead")
        thread.start()

    def take(self, asked: ReadRanges) -> Sequence[Chunk] | None:
        """The chunks of this read, once they are there, or what it raised; None where something
        else was read, or nothing."""
        if self._found is None:
            return None
        (found, future), self._found = self._found, None
        if found == asked:
            return future.result()
        self._drop(future)
        return None

    def close(self) -> None:
        """Wait for what is under way, and remove it."""
        if self._found is not None:
            (_, future), self._found = self._found, None
            self._drop(future)

    def _drop(self, future: Future[Sequence[Chunk]]) -> None:
        # A failure of what nobody wants any more is no news.
        if future.exception() is None:
            self._remove(future.result())


def _run(read: Callable[[], Sequence[Chunk]], future: Future[Sequence[Chunk]]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # raised where the chunks are taken
        future.set_exception(error)


# Reads ranges of a source's table into staged files, in the target's columns.

Parts = Sequence[tuple[KeyRange, Path]]
"""Each range, and the file that it is read into."""


def spark_reader(
    control: Control, database: Database, wanted: FittedTable, zero_dates: ZeroDates, parts: Parts
) -> Callable[[], list[int]]:
    """What has Spark read them, on any thread, and gives the rows of each file.

    The call raises JobAway, DatabaseRefused, and what Spark's use does.
    """
    sources = [one.column for one in wanted.columns]
    files = [ChunkQuery(database.query(wanted.source, sources, part), path) for part, path in parts]
    columns, jdbc = wanted.chunk_columns(), database.jdbc(wanted.source)

    def act(jvm: SparkJvm) -> list[int]:
        from sparkwriter.session.chunks import read_chunks  # where there is a Spark

        constants = [(OP, "U")]
        return read_chunks(
            jvm.spark, jdbc, files, columns, zero_dates=zero_dates, constants=constants
        )

    def read() -> list[int]:
        try:
            rows = control.spark(act)
        except ChunkUnreadable as error:
            if error.again:
                raise JobAway(f"{wanted.source.name}: {error}") from error
            raise DatabaseRefused(f"{wanted.source.name}: {error}") from error
        if not wanted.route.shape:
            return rows
        return [_shaped(wanted, path) for _, path in parts]

    return read


def read_directly(reading: Reading, wanted: FittedTable, parts: Parts) -> list[int]:
    """The same through the database's connection. Raises DatabaseAway, DatabaseRefused."""
    return [_written(wanted, reading.rows(part), path) for part, path in parts]


def _shaped(wanted: FittedTable, path: Path) -> int:
    """The file that Spark has read, in the shape of its route."""
    raw = path.with_suffix(".raw")
    path.replace(raw)
    try:
        with pq.ParquetFile(raw) as file:
            batches = file.iter_batches(ROWS_AT_ONCE)
            return _written(wanted, (pa.Table.from_batches([each]) for each in batches), path)
    finally:
        raw.unlink()


def _written(wanted: FittedTable, tables: Iterable[pa.Table], path: Path) -> int:
    """Write what the target has of rows; gives how many that are."""
    columns = wanted.schema.columns
    fields = [pa.field(OP, pa.string(), nullable=False)]
    schema = pa.schema([*fields, *(pa.field(each.name, each.type) for each in columns)])
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            written = wanted.written(table).cast(schema)
            writer.write_table(written)
            rows += written.num_rows
    return rows
