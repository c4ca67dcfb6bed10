"""Shapes rows that do not come from the log: those that a job reads from the source's database."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import OP, BadRecord, Changes, Mode, TableName, TableSchema
from changes.shaping.additions import Read
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


def shaped_rows(
    shape: Shape, schema: TableSchema, rows: pa.Table, table: TableName
) -> tuple[TableSchema, pa.Table]:
    """What a target of the shape shows of whole rows of a table of the source, and its columns.

    ``rows`` have the columns of ``schema``, by the source's names. Raises ShapeRefused, also for a
    row for which an expression has no result: there is no record that could be set aside.
    """
    if shape.metadata or shape.history:
        key = "metadata" if shape.metadata else "history"
        raise ShapeRefused(f"{key}: rows that are read from the database come from no record")
    marked = rows.select([column.name for column in schema.columns])
    marked = marked.add_column(0, OP, pa.repeat(pa.scalar("U"), rows.num_rows))
    shard = shape.shard_of_table(table) if shape.shard else ""
    if shard is None:
        raise ShapeRefused(f"shard: {table} has none")
    shards = [shard] * rows.num_rows
    origins = _Origins(rows.num_rows)
    changes = Changes(marked, schema, Mode.UPSERT, rows.num_rows, origins=origins)
    plan = plan_of(shape, schema)
    try:
        shaped = plan.shaped(changes, frozenset(), Read(0, (), shards))
    except BadRecord as bad:
        row = {name: rows[name][bad.index].as_py() for name in schema.keys}
        raise ShapeRefused(f"{bad.reason}, in the row {row}") from bad
    living = shaped.table.filter(pc.equal(shaped.table[OP], "U")).drop_columns([OP])
    return plan.schema, living
