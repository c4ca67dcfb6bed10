"""A source's table in the columns of its target: what of it is read, and what it becomes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from changes.model.model import OP, Column, Mode, TableName, TableSchema, ZeroDates
from changes.routes.routing import TargetRoute
from changes.routes.shaping.columns import source_view
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.statements import check_rows, needs, shaped_rows, shaped_schema
from changes.sql.spark.schema import arrow_type, iceberg_type
from daemon.config.pipeline_config import PipelineConfig
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceTable
from databases.reading import Reading
from databases.streamed import Streamed, StreamedColumn, as_streamed
from sparkwriter.session.requests import ChunkColumn

POSITIONS = (
    "it keeps source positions, so that several partitions may feed it: rows of the database have "
    "none, and one that was deleted could come back"
)


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A source table as it is to be read. ``columns`` are in the lake's order, by the source's
    names; ``keys`` too."""

    source: SourceTable
    columns: tuple[StreamedColumn, ...]
    route: TargetRoute
    keys: tuple[str, ...]
    owner: TableName | None

    @property
    def read(self) -> TableSchema:
        """The columns that are read."""
        columns = (Column(one.column.name, arrow_type(one.type)) for one in self.columns)
        return TableSchema(tuple(columns), self.keys)

    @property
    def schema(self) -> TableSchema:
        """The columns of the target."""
        shape = self.route.shape
        return shaped_schema(shape, self.read) if shape else self.read

    def shown(self, rows: pa.Table) -> pa.Table:
        """What the target has of rows that were read. Raises DatabaseRefused."""
        if not self.route.shape:
            return rows
        try:
            return shaped_rows(self.route.shape, self.read, rows, self.source.name)[1]
        except ShapeRefused as error:
            raise DatabaseRefused(f"{self.route.name}: {error}") from error

    def written(self, rows: pa.Table) -> pa.Table:
        """The same as a batch has it."""
        shown = self.shown(rows)
        return shown.add_column(0, OP, pa.repeat(pa.scalar("U"), shown.num_rows))

    def chunk_columns(self) -> list[ChunkColumn]:
        """The columns that are read, for Spark."""
        found = []
        for one in self.columns:
            assert one.column.form is not None
            is_key = one.column.name in self.keys
            found.append(ChunkColumn(one.column.name, one.type, one.column.form, is_key))
        return found

    def reading(self, database: Database, zero_dates: ZeroDates) -> Reading:
        """The same columns, read through the database's own connection."""
        return Reading(database, self.source, self.columns, zero_dates)


def streamed_of(
    source: SourceTable,
    route: TargetRoute,
    kind: str,
    format_: str,
    present: TableSchema | None,
    *,
    collected: bool = False,
) -> Streamed:
    """The columns of a table that its target is made of, as the stream has them. ``present``: the
    target's, if there is one; ``collected``: the stream is a collector's. Raises DatabaseRefused
    where they can't have the route's shape."""
    shape, stored = route.shape, None
    if shape:
        try:
            check_rows(shape, (column.name for column in source.columns))
        except ShapeRefused as error:
            raise DatabaseRefused(f"{route.name}: {error}") from error
        columns = tuple(column for column in source.columns if needs(shape, column.name))
        source = replace(source, columns=columns)
    if present is not None:
        view = source_view(shape, present)
        stored = {column.name: iceberg_type(column.type) for column in view.columns}
    return as_streamed(source, kind, format_, route.types, stored, collected=collected)


def fitted(
    pipeline: PipelineConfig,
    source: SourceTable,
    route: TargetRoute,
    format_: str,
    present: TableSchema | None,
) -> FittedTable:
    """A source table in its target's columns. Raises DatabaseRefused where it can't be had."""
    if route.mode is Mode.APPEND:
        raise DatabaseRefused(f"{route.name} is a changelog, which has what happened, not rows")
    if "positions" in pipeline.section.format_options().extra:
        raise DatabaseRefused(POSITIONS)
    source = source.renamed(route.reader_renames)
    keys = _keys(source, route, present)
    name = pipeline.database_of(source.name.database)
    assert name is not None
    kind, collected = pipeline.databases[name].address.kind, pipeline.section.collector
    streamed = streamed_of(source, route, kind, format_, present, collected=collected is not None)
    if streamed.refused:
        raise DatabaseRefused("; ".join(streamed.refused))
    wanted = FittedTable(source, streamed.columns, route, keys, None)
    try:
        assert wanted.schema
    except ShapeRefused as error:
        raise DatabaseRefused(f"{route.name}: {error}") from error
    return wanted


def _keys(source: SourceTable, route: TargetRoute, present: TableSchema | None) -> tuple[str, ...]:
    """The key by the source's names: it must be the source's own, and the target's."""
    names = {column.name.lower(): column.name for column in source.columns}
    keys = tuple(names.get(key.lower(), key) for key in route.keys or source.keys)
    if not source.keys or {k.lower() for k in keys} != {k.lower() for k in source.keys}:
        raise DatabaseRefused(
            f"{source.name} has no key, or another one than its target: its rows can't be read in "
            "ranges, and told apart"
        )
    if present is None:
        return keys
    there = source_view(route.shape, present).keys
    if {k.lower() for k in there} != {k.lower() for k in keys}:
        raise DatabaseRefused(f"{route.name} has the key {', '.join(present.keys)}")
    return keys
