"""The rows that a lake's table stores of some keys, by one Spark job over the requested columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.runtime.files import make_private_file
from changes.model.model import KeyBound
from changes.routes.fold import key_bounds
from changes.sql.spark.schema import StoredTable, arrow_type
from changes.sql.spark.words import quote
from sparkwriter.iceberg.equality import is_empty
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.plan import between
from sparkwriter.iceberg.staged_source import LooseTables, SharedStaging, StagedSource
from sparkwriter.kit.store import FOUND
from sparkwriter.session.java_api import JavaNames

# The query for what a table stores of some keys. Pure.

PLACE = "__binlogd_n"
"""Of a key that is looked up: which one it is."""


def stored_sql(
    stored: StoredTable,
    bounds: Sequence[KeyBound],
    columns: Sequence[str],
    table: str,
    source: str,
) -> str:
    """The query for what ``table`` has of the keys in ``source``, with their places.

    Both are quoted. ``bounds`` of the keys, ``columns`` are the table's.
    """
    within = {bound.column.lower(): bound for bound in bounds}
    keys = {key.lower() for key in stored.keys}
    terms = []
    for column in stored.columns:
        if (lower := column.name.lower()) in keys:
            bounded = between(column, within.get(lower))
            equals = "<=>" if bounded is None else "="
            terms.append(f"t.{quote(column.name)} {equals} s.{quote(column.name)}")
            terms += [] if bounded is None else [bounded]
    chosen = ", ".join([f"s.{quote(PLACE)}", *(f"t.{quote(name)}" for name in columns)])
    return (
        f"SELECT /*+ BROADCAST(s) */ {chosen}\nFROM {source} s\n"
        f"JOIN {table} t ON {' AND '.join(terms)}"
    )


class StoredRows:
    """Looks keys up for one writer; called on its thread."""

    def __init__(
        self, spark: SparkSession, begin_jobs: Callable[[str], None], shared: SharedStaging | None
    ) -> None:
        """Parameters as of ``StatementWrites``."""
        self._spark = spark
        self._begin_jobs = begin_jobs
        # Removed with the run, should this process be killed.
        system = JavaNames(spark.sparkContext._jvm).java.lang.System
        self._scratch = str(system.getProperty("java.io.tmpdir"))
        self._loose = LooseTables(spark)
        self._staged = StagedSource(spark, self._loose, shared)

    def of(self, seen: Seen, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """See ``sparkwriter.kit.store.TableStore.read_rows``: of the snapshot that was seen."""
        types = {column.name.lower(): column for column in seen.stored.columns}
        chosen = [types[name.lower()] for name in columns]
        rows = pa.table({PLACE: pa.array([], pa.int64())})
        if keys.num_rows and not is_empty(seen):
            rows = self._read(seen, keys, [column.name for column in chosen])
        places = pc.index_in(pa.array(range(keys.num_rows), pa.int64()), rows[PLACE])
        found = {FOUND: pc.is_valid(places)}
        for name, column in zip(columns, chosen, strict=True):
            type_ = arrow_type(column.type)
            values = rows[column.name].cast(type_) if rows.num_rows else pa.nulls(0, type_)
            found[name] = values.take(places)
        return pa.table(found)

    def _read(self, seen: Seen, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        bounds = key_bounds(keys, keys.column_names)
        numbered = keys.append_column(PLACE, pa.array(range(keys.num_rows), pa.int64()))
        self._begin_jobs(f"look up {seen.target}")
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "keys.parquet"
            make_private_file(path)
            pq.write_table(numbered, path)
            view = self._staged.view(seen.table, seen.target.sink, str(path), numbered.schema)
            with view as source, self._seen(seen) as table:
                text = stored_sql(seen.stored, bounds, columns, table, source)
                return self._spark.sql(text).toArrow()

    @contextmanager
    def _seen(self, seen: Seen) -> Iterator[str]:
        """The table as it was seen, under a quoted name: its catalog may have it otherwise by now,
        and an older snapshot by its number would have the columns of then."""
        name = f"binlogd_{uuid4().hex}"
        self._loose.all_rows(seen.table, seen.target.sink).createTempView(name)
        try:
            yield quote(name)
        finally:
            self._spark.catalog.dropTempView(name)
