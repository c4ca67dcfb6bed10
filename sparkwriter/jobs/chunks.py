"""Reads ranges of a source's table over JDBC into staged Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from changes.model import ZeroDates
from sparkwriter.sql.forms import Form


@dataclass(frozen=True, slots=True)
class JdbcOptions:
    """How Spark's tasks reach the database. ``password`` is shown nowhere."""

    url: str
    user: str
    password: str = field(repr=False)
    fetch_rows: int = 1000
    statement_timeout_s: int = 0
    """0: none."""


class ChunkColumn(NamedTuple):
    """A column of a chunk: the lake's type by Iceberg's name, and the text it is read from."""

    name: str
    type: str
    form: Form


class Part(NamedTuple):
    """One range: a SELECT of canonical texts in the columns' order, and its rows' file."""

    query: str
    out: Path


class ChunkUnreadable(Exception):
    """A value that does not fit its column, or a read that failed: one line.

    ``again``: another attempt may succeed (the database was away, a statement's time was up).
    """

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


def read_chunks(
    spark: SparkSession,
    jdbc: JdbcOptions,
    parts: Sequence[Part],
    columns: Sequence[ChunkColumn],
    *,
    zero_dates: ZeroDates = "null",
    constants: Sequence[tuple[str, str]] = (),
) -> list[int]:
    """Read the parts in one Spark job, a task and a Parquet file each; gives their rows in order.

    The files are complete and durable on return, none is left on failure, an empty part is a file
    without rows. ``constants``: names and texts of columns that all rows have alike, before the
    others, such as ``changes.model.OP``. Raises ChunkUnreadable. Any thread of the session.
    """
    raise NotImplementedError
