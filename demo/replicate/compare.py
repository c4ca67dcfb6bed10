"""Compares the source with the lake by a reader of the demo's own: whole tables, value by value."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from demo.replicate.source import DATABASE, KEYS, Source, columns_of, sorted_by

SHOWN = 3
"""Rows of a table that are shown, where some differ."""


def differences(source: Source, session: SparkSession) -> Iterator[str]:
    """A line for each table that is not equal."""
    for table in KEYS:
        session.sql(f"REFRESH TABLE lake.{DATABASE}.{table}")
        here = source.read(table)
        there = session.table(f"lake.{DATABASE}.{table}").toArrow()
        if sorted(there.column_names) != sorted(columns_of(table)):
            yield f"{table}: the lake has the columns {', '.join(there.column_names)}"
            continue
        yield from _compared(table, here, there.select(here.column_names).cast(here.schema))


def _compared(table: str, here: pa.Table, there: pa.Table) -> Iterator[str]:
    there = there.sort_by(sorted_by(table))
    if here.num_rows != there.num_rows:
        yield f"{table}: {here.num_rows:,} rows in the source, {there.num_rows:,} in the lake"
    if here.equals(there):
        return
    rows = min(here.num_rows, there.num_rows)
    unlike = (at for at in range(rows) if here.slice(at, 1) != there.slice(at, 1))
    for _, at in zip(range(SHOWN), unlike, strict=False):
        yield f"{table}: {here.slice(at, 1).to_pylist()[0]} is {there.slice(at, 1).to_pylist()[0]}"
