"""Reads ranges of a source's table over JDBC into staged Parquet files, by one Spark job."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from actors.runtime.files import sync
from changes.model.model import ZeroDates
from changes.sql.forms import Form
from changes.sql.spark.canonical import read
from changes.sql.spark.schema import arrow_type, spark_type
from changes.sql.spark.words import quote, string_literal
from databases.base.errors import tells_of_full_disk
from databases.base.port import JdbcOptions
from sparkwriter.session.java_api import JavaFailure, java_classes, reason
from sparkwriter.session.requests import ChunkColumn, ChunkQuery, ChunkUnreadable

_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # A part's rows must be in its own file: no task reads two of them.
    "spark.sql.unionOutputPartitioning": "false",
}
_WRITING = {
    # A row may have many megabytes: without this, memory is looked at after a hundred of them.
    "parquet.page.size.row.check.min": "1",
    "parquet.block.size": str(32 << 20),
    "compression": "zstd",
}
_PASSING = re.compile(
    r"java\.sql\.SQL(NonTransient)?(Transient|Timeout|ConnectionE|Recoverable)|java\.net\."
    r"|java\.io\.EOF|SQLTransient|SQLTimeout|SQLNonTransientConnection"
)
_PASSING_TEXT = re.compile(
    r"canceling statement|max_statement_time|maximum statement execution|terminating connection"
    r"|connection (attempt failed|refused|reset)|I/O error|socket|too many (clients|connections)",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"\[CAST_(?:INVALID_INPUT|OVERFLOW)\] The value (.{1,80}?) of the type \"STRING\" cannot be"
    r" cast to \"([^\"]+)\"",
    re.DOTALL,
)
"""What Spark says of a text that is no value of a column's type. It names no column."""

_PART = re.compile(r"part-(\d+)-")


def read_chunks(
    spark: SparkSession,
    jdbc: JdbcOptions,
    parts: Sequence[ChunkQuery],
    columns: Sequence[ChunkColumn],
    *,
    zero_dates: ZeroDates = "null",
    constants: Sequence[tuple[str, str]] = (),
) -> list[int]:
    """Read the parts in one Spark job, a task and a Parquet file each; gives their rows in order.

    The files are complete and durable on return, none is left on failure, an empty part is a file
    without rows. All are in one folder, which Spark's tasks must see. ``constants``: names and
    texts of columns that all rows have alike, before the others, such as
    ``changes.model.model.OP``.
    Raises ChunkUnreadable. Any thread of the session; the job is of the caller's job group.
    """
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    shown = [f"{string_literal(text)} AS {quote(name)}" for name, text in constants]
    for place, column in enumerate(columns):
        zeros: ZeroDates = "error" if column.key else zero_dates
        value = f"`c{place}`"
        if column.form is not Form.HEX:  # which comes as bytes
            value = read(column.form, column.type, value, zeros)
        shown.append(f"{value} AS {quote(column.name)}")
    folder = parts[0].out.parent / f"chunks-{uuid4().hex}"
    try:
        with _told(columns):
            frames = [_frame(session, jdbc, part, columns) for part in parts]
            whole = reduce(DataFrame.unionAll, frames).selectExpr(*shown)
            whole.write.options(**_WRITING).parquet(folder.absolute().as_uri())
        return _placed(folder, parts, _schema(columns, constants))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _frame(
    session: SparkSession, jdbc: JdbcOptions, part: ChunkQuery, columns: Sequence[ChunkColumn]
) -> DataFrame:
    kinds = ["BINARY" if column.form is Form.HEX else "STRING" for column in columns]
    texts = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
    reader = session.read.format("jdbc").options(
        url=jdbc.url,
        driver=jdbc.driver,
        user=jdbc.user,
        password=jdbc.password,
        query=part.query,
        fetchsize=str(jdbc.fetch_rows),
        sessionInitStatement=jdbc.session,
        # Otherwise a text that the driver takes for CHAR(n) is padded with blanks.
        customSchema=texts,
    )
    return reader.load()


@contextmanager
def _told(columns: Sequence[ChunkColumn]) -> Iterator[None]:
    """Failures of Spark as ChunkUnreadable."""
    try:
        yield
    except JavaFailure as error:
        line = reason(error)
        if unfit := _UNFIT.search(line):
            raise ChunkUnreadable(_unfit(unfit, columns), again=False) from error
        passing = any(_PASSING.search(name) for name in java_classes(error))
        passing = passing or bool(_PASSING_TEXT.search(line)) or tells_of_full_disk(line)
        raise ChunkUnreadable(line, again=passing) from error


def _unfit(said: re.Match[str], columns: Sequence[ChunkColumn]) -> str:
    value, type_ = said.groups()
    narrow = [c.name for c in columns if spark_type(c.type).upper() == type_.upper()]
    which = f" ({', '.join(narrow)})" if narrow else ""
    return (
        f"the value {value} does not fit a column of the target that is {type_}{which}: "
        "`binlogd tables load --anew` gives the target the columns that the source has now"
    )


def _placed(folder: Path, parts: Sequence[ChunkQuery], schema: pa.Schema) -> list[int]:
    """Move each task's file to where its part's is required; an empty part may have none."""
    made = {int(found[1]): path for path in folder.iterdir() if (found := _PART.match(path.name))}
    rows = []
    for place in range(len(parts)):
        if place not in made:
            pq.write_table(schema.empty_table(), folder / f"empty-{place}.parquet")
            made[place] = folder / f"empty-{place}.parquet"
        rows.append(pq.read_metadata(made[place]).num_rows)
        sync(made[place])
    for place, part in enumerate(parts):
        made[place].replace(part.out)
    sync(folder.parent)
    return rows


def _schema(columns: Sequence[ChunkColumn], constants: Sequence[tuple[str, str]]) -> pa.Schema:
    fields = [pa.field(name, pa.string(), nullable=False) for name, _ in constants]
    return pa.schema([*fields, *(pa.field(c.name, arrow_type(c.type)) for c in columns)])
