"""Columns that binlogd adds to the rows of a target: where each row comes from, and whether the
source has deleted it.

A deleted row is kept as it was last known: in the batch it is a row that lacks all columns but its
key, so it takes them from earlier rows of its key, or from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.assemble import letters
from changes.formats.engine.format import RowChange
from changes.model.model import (
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    POSITION,
    Changes,
    Column,
    TableSchema,
)
from changes.model.types import TIMESTAMP_UTC
from changes.routes.shaping.history import ENDED_AT, HISTORY, happened, with_history
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape

DELETED = Column("_DELETED", pa.bool_())
"""Iceberg keeps the name in small letters for itself; Spark SQL finds ``_deleted``."""

METADATA = {
    "_op": Column("_op", pa.string()),
    "_ts": Column("_ts", TIMESTAMP_UTC),
    "_source_ts": Column("_source_ts", TIMESTAMP_UTC),
    "_partition": Column("_partition_number", pa.int32()),
    "_offset": Column("_offset", pa.int64()),
    "_position": Column("_position", pa.string()),
}
"""By their names in the configuration. Spark finds its own ``_partition`` whatever the case, and
can then merge no row."""


class Read(NamedTuple):
    """Where the records of a call were read."""

    partition: int
    offsets: Sequence[int]
    shards: Sequence[str] = ()
    """Of each record, where the shape has a shard."""
    times: Sequence[int | None] = ()
    """When each record's change happened, in milliseconds since 1970; where the shape needs it."""
    images: Callable[[int], Sequence[RowChange]] = lambda _: ()
    """What a record says of each of its rows, before and after its change."""
    now_ms: int = 0
    """When they are decoded, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Additions:
    """What a shape adds to the rows of a table. ``keys`` are the target's columns of its key."""

    soft: bool
    metadata: tuple[str, ...]
    keys: tuple[str, ...]
    shard: str = ""
    history: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, behind all others."""
        shard = (Column(self.shard, pa.string()),) if self.shard else ()
        metadata = tuple(METADATA[name] for name in self.metadata)
        history = HISTORY if self.history else ()
        return ((DELETED,) if self.soft else ()) + metadata + shard + history

    def added(self, changes: Changes, schema: TableSchema, read: Read) -> pa.Table:
        """The table of shaped changes with these columns. Raises ShapeRefused."""
        table = changes.table
        if self.shard:
            table = self._sharded(changes, table, read)
        for name in self.metadata:
            table = table.append_column(METADATA[name].name, _of_rows(name, changes, read))
        if self.history:
            return self._versions(replace(changes, table=table), read)
        return self._kept(changes, table, schema) if self.soft else table

    def _versions(self, changes: Changes, read: Read) -> pa.Table:
        """Each version that a change ends, beside the next one."""
        times = [each for each in read.times if each is not None]
        if len(times) < len(read.times):
            raise ShapeRefused("history: a record does not say when its change happened")
        when = happened(changes, read.partition, read.offsets, times)
        return with_history(changes, [key for key in self.keys if key != ENDED_AT], when)

    def _sharded(self, changes: Changes, table: pa.Table, read: Read) -> pa.Table:
        """A row never changes its table, so its old key is of the same shard."""
        assert changes.origins is not None
        records = pa.array(changes.origins.records, pa.int64())
        shards = pa.array(read.shards, pa.string()).take(records)
        table = table.append_column(self.shard, shards)
        if FROM not in table.column_names:
            return table
        moved = pc.is_valid(table[FROM])
        old = pc.if_else(moved, shards, pa.scalar(None, pa.string()))
        return table.append_column(FROM_PREFIX + self.shard, old)

    def _kept(self, changes: Changes, table: pa.Table, schema: TableSchema) -> pa.Table:
        """Rows that delete become rows that are deleted."""
        if changes.lacking:
            raise ShapeRefused(
                f"inserts come without column {changes.lacking[0]}, which would then show what a "
                'deleted row of the key had: delete = "soft" needs whole rows (binlog_row_image '
                "= FULL)"
            )
        gone = pc.equal(table[OP], "D")
        table = table.append_column(DELETED.name, gone)
        if not pc.any(gone).as_py():
            return table
        here = pc.invert(gone)
        for column in schema.columns:
            if column.name in self.keys or column in self.columns:
                continue
            flag = HAS_PREFIX + column.name
            if flag in table.column_names:
                place = table.schema.get_field_index(flag)
                table = table.set_column(place, flag, pc.and_(table[flag], here))
            else:
                table = table.append_column(flag, here)
        ops = pa.repeat(pa.scalar("U"), table.num_rows)
        return table.set_column(table.schema.get_field_index(OP), OP, ops)


def _of_rows(name: str, changes: Changes, read: Read) -> pa.Array:
    origins = changes.origins
    assert origins is not None
    match name:
        case "_op":
            return letters(origins.ops)
        case "_ts":
            now = pc.cast(pa.scalar(read.now_ms * 1000, pa.int64()), TIMESTAMP_UTC)
            return pa.repeat(now, changes.table.num_rows)
        case "_source_ts":
            times = pa.array([read.times[record] for record in origins.records], pa.int64())
            return pc.cast(pc.multiply(times, 1000), TIMESTAMP_UTC)
        case "_partition":
            return pa.repeat(pa.scalar(read.partition, pa.int32()), changes.table.num_rows)
        case "_offset":
            return pa.array(list(map(read.offsets.__getitem__, origins.records)), pa.int64())
        case _:
            return changes.table[POSITION].combine_chunks()


def additions_of(shape: Shape, schema: TableSchema, keys: tuple[str, ...]) -> Additions | None:
    """What the shape adds to a table of that schema, None where nothing. Raises ShapeRefused."""
    soft = shape.delete == "soft"
    if not (soft or shape.metadata or shape.shard or shape.history):
        return None
    if not schema.keys and (soft or shape.metadata or shape.history):
        key = "delete" if soft else "history" if shape.history else "metadata"
        raise ShapeRefused(f"{key}: the table has no key, and a changelog shows each change itself")
    return Additions(soft, shape.metadata, keys, shape.shard, shape.history)
