"""Shapes rows that do not come from the log: those that a job reads from the source's database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import OP, BadRecord, Changes, Mode, TableName, TableSchema
from changes.shaping.additions import METADATA, Read
from changes.shaping.columns import plan_of
from changes.shaping.refused import ShapeRefused
from changes.shaping.shape import Shape


@dataclass(frozen=True, slots=True)
class _Origins:
    """Rows that are inserted, each a record of its own."""

    count: int

    @property
    def ops(self) -> bytes:
        return b"I" * self.count

    @property
    def records(self) -> range:
        return range(self.count)


def check_rows(shape: Shape, columns: Iterable[str]) -> None:
    """Raise ShapeRefused where rows of the database, of a table with these columns, can't have the
    shape: it shows what only changes tell, or names a column that is not there."""
    if shape.history:
        raise ShapeRefused("history: the database has no former versions of its rows")
    here = {name.lower() for name in columns}
    if lacking := [name for name in shape.named if name not in here]:
        key = shape.named[lacking[0]]
        raise ShapeRefused(f"{key} names column {lacking[0]}, which the table does not have")


def needs(shape: Shape, column: str) -> bool:
    """Whether a column of the source is shown, or used by an expression."""
    return shape.shows(column) or column.lower() in shape.computes_with


def shaped_schema(shape: Shape, schema: TableSchema) -> TableSchema:
    """The target's columns of a table of the source. Raises ShapeRefused."""
    return plan_of(shape, schema).schema


def shaped_rows(
    shape: Shape, schema: TableSchema, rows: pa.Table, table: TableName
) -> tuple[TableSchema, pa.Table]:
    """What a target of the shape shows of whole rows of a table of the source, and its columns.

    ``rows`` have the columns of ``schema``, by the source's names. They come from no record, so
    what ``metadata`` says of one is NULL. Raises ShapeRefused, also for a row for which an
    expression has no result: there is no record that could be set aside.
    """
    marked = rows.select([column.name for column in schema.columns])
    marked = marked.add_column(0, OP, pa.repeat(pa.scalar("U"), rows.num_rows))
    shard = shape.shard_of_table(table) if shape.shard else ""
    if shard is None:
        raise ShapeRefused(f"shard: {table} has none")
    shards = [shard] * rows.num_rows
    origins = _Origins(rows.num_rows)
    changes = Changes(marked, schema, Mode.UPSERT, rows.num_rows, origins=origins)
    plan = plan_of(replace(shape, metadata=()), schema)
    try:
        shaped = plan.shaped(changes, frozenset(), Read(0, (), shards))
    except BadRecord as bad:
        row = {name: rows[name][bad.index].as_py() for name in schema.keys}
        raise ShapeRefused(f"{bad.reason}, in the row {row}") from bad
    living = shaped.table.filter(pc.equal(shaped.table[OP], "U")).drop_columns([OP])
    whole = plan_of(shape, schema).schema
    for name in shape.metadata:
        column = METADATA[name]
        living = living.append_column(column.name, pa.nulls(living.num_rows, column.type))
    return whole, living.select([column.name for column in whole.columns])
