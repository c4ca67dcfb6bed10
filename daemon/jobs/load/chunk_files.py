"""Reads ranges of a source's table into staged files, in the target's columns.

Spark reads them side by side for tables that Spark writes. For others they are read one after
another through the database's connection, so that a load needs no Spark where its sink needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from changes.model import OP, ZeroDates
from daemon.databases.port import Database, DatabaseRefused, KeyRange
from daemon.databases.reading import ROWS_AT_ONCE, Reading
from daemon.jobs.load.wanted import Wanted
from daemon.jobs.port import Control, JobAway
from sparkwriter.jobs.chunks import ChunkUnreadable, Part, read_chunks
from sparkwriter.session.jvm import SparkJvm

Parts = Sequence[tuple[KeyRange, Path]]
"""Each range, and the file that it is read into."""


def spark_reader(
    control: Control, database: Database, wanted: Wanted, zero_dates: ZeroDates, parts: Parts
) -> Callable[[], list[int]]:
    """What has Spark read them, on any thread, and gives the rows of each file.

    The call raises JobAway, DatabaseRefused, and what Spark's use does.
    """
    sources = [one.column for one in wanted.columns]
    files = [Part(database.query(wanted.source, sources, part), path) for part, path in parts]
    columns, jdbc = wanted.chunk_columns(), database.jdbc(wanted.source)

    def act(jvm: SparkJvm) -> list[int]:
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


def read_directly(reading: Reading, wanted: Wanted, parts: Parts) -> list[int]:
    """The same through the database's connection. Raises DatabaseAway, DatabaseRefused."""
    return [_written(wanted, reading.rows(part), path) for part, path in parts]


def _shaped(wanted: Wanted, path: Path) -> int:
    """The file that Spark has read, in the shape of its route."""
    raw = path.with_suffix(".raw")
    path.replace(raw)
    try:
        with pq.ParquetFile(raw) as file:
            batches = file.iter_batches(ROWS_AT_ONCE)
            return _written(wanted, (pa.Table.from_batches([each]) for each in batches), path)
    finally:
        raw.unlink()


def _written(wanted: Wanted, tables: Iterable[pa.Table], path: Path) -> int:
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
