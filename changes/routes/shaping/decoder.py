"""Decodes the records of one target into the shape of its route."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import Format, RowChange, TableDecoder
from changes.formats.engine.key_runs import KeyRuns
from changes.model.model import OP, BadMessage, BadRecord, Changes, Mode, TableName, TableSchema
from changes.routes.shaping.additions import Read
from changes.routes.shaping.columns import ColumnPlan, plan_of, source_view
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape


class Records(Protocol):
    """What records say beside their rows. Raises ShapeRefused."""

    def tables(self, values: Sequence[bytes]) -> Sequence[TableName | None]:
        """Their tables; None of one that has several, or names none."""
        ...

    def times(self, values: Sequence[bytes]) -> Sequence[int | None]:
        """When their changes happened, in milliseconds since 1970, as far as they say."""
        ...

    def images(self, value: bytes) -> Sequence[RowChange]:
        """What a record says of each of its rows."""
        ...

    def now_ms(self) -> int:
        """The present time, in milliseconds since 1970."""
        ...


class ShapedDecoder:
    """The ``TableDecoder`` of a route with a shape: all that it says has the target's names.

    ``decode`` also raises ShapeRefused, where the columns don't fit the shape.
    """

    def __init__(
        self,
        inner: TableDecoder,
        shape: Shape,
        records: Records,
    ) -> None:
        """``records`` is called where the shape needs more than rows."""
        self._inner = inner
        self._shape = shape
        self._records = records
        self._plan: ColumnPlan | None = None
        self._of: TableSchema | None = None
        self._known: frozenset[str] | None = None
        """The target's columns, in small letters, None where none is known yet."""
        self._stored: TableSchema | None = None
        """What the target showed at first, by the source's names."""

    def __copy__(self) -> ShapedDecoder:
        """As it is now: what it decodes later does not change the copy."""
        made = ShapedDecoder(copy(self._inner), self._shape, self._records)
        made._plan, made._of = self._plan, self._of
        made._known, made._stored = self._known, self._stored
        return made

    @property
    def schema(self) -> TableSchema | None:
        return None if self._plan is None else self._plan.schema

    @property
    def positions(self) -> str | None:
        return self._inner.positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        shape = self._shape
        types = self._inner.declared_types.items()
        return {shape.name_of(name): words for name, words in types if shape.shows(name)}

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        shape = self._shape
        return tuple(
            change._replace(column=shape.name_of(change.column))
            for change in self._inner.take_column_changes()
            if shape.shows(change.column)
        )

    def use_stored_schema(self, stored: TableSchema) -> None:
        self._known = _names(stored)
        self._stored = source_view(self._shape, stored)
        self._inner.use_stored_schema(source_view(self._shape, stored, masked=True))

    @property
    def key_runs(self) -> KeyRuns:
        return self._inner.key_runs

    def use_key_runs(self, runs: KeyRuns) -> None:
        self._inner.use_key_runs(runs)

    def resume(self, partition: int, held: int, start: int) -> None:
        self._inner.resume(partition, held, start)

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        before, known = copy(self._inner), (self._plan, self._of, self._known)
        soft = self._shape.delete == "soft"
        if (soft or self._shape.history) and self.positions is not None:
            raise ShapeRefused(
                f"{'delete' if soft else 'history'}: rows with source positions are whole, and a "
                "row that is kept is not"
            )
        if "_position" in self._shape.metadata and self.positions is None:
            raise ShapeRefused(
                "metadata: rows have a _position only where positions are configured"
            )
        changes = self._inner.decode(partition, offsets, values)
        if changes is None:
            return None
        changes = self._with_stored(replace(changes, read=changes.origins))
        try:
            return self._planned(changes.schema).shaped(
                changes, known[2] or frozenset(), self._read(partition, offsets, values)
            )
        except BadRecord:
            # The records before the bad one are decoded again, as if it had not come.
            self._inner, (self._plan, self._of, self._known) = before, known
            raise

    def _with_stored(self, changes: Changes) -> Changes:
        """Deletes by keys alone, as a process may see first, with the columns that expressions
        need: they carry all, but only the target knows the types yet."""
        lacking = self._shape.computes_with - _names(changes.schema)
        if not lacking or self._stored is None or changes.mode is not Mode.UPSERT:
            return changes
        if pc.index(changes.table[OP], "U").as_py() >= 0:
            return changes
        table, columns = changes.table, list(changes.schema.columns)
        for column in self._stored.columns:
            if column.name.lower() in lacking:
                table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
                columns.append(column)
        return replace(changes, table=table, schema=replace(changes.schema, columns=tuple(columns)))

    def _read(self, partition: int, offsets: Sequence[int], values: Sequence[bytes]) -> Read:
        times = self._records.times(values) if self._shape.asks_times else ()
        images = cache(lambda record: self._records.images(values[record]))
        now_ms = self._records.now_ms()
        return Read(partition, offsets, self._shards(values), times, images, now_ms)

    def _shards(self, values: Sequence[bytes]) -> list[str]:
        if not self._shape.shard:
            return []
        shards: dict[TableName | None, str] = {}
        found = []
        for table in self._records.tables(values):
            if table not in shards:
                shard = None if table is None else self._shape.shard_of_table(table)
                if shard is None:
                    what = "a record names no table" if table is None else f"{table} has none"
                    raise ShapeRefused(f"shard: {what}")
                shards[table] = shard
            found.append(shards[table])
        return found

    def _planned(self, schema: TableSchema) -> ColumnPlan:
        if self._plan is None or self._of != schema:
            plan = plan_of(self._shape, schema)
            self._check_named(schema, plan.schema)
            self._plan, self._of = plan, schema
            self._known = (self._known or frozenset()) | _names(plan.schema)
        return self._plan

    def _check_named(self, schema: TableSchema, shown: TableSchema) -> None:
        """Refuse a shape that names columns which the rows lack, if these show anything that the
        target did not show before: a column without its mask, under a name that was mistyped or
        has changed. Rows that only lack columns (partial images) show nothing new."""
        here = _names(schema)
        lacking = [name for name in self._shape.named if name not in here]
        if needed := [name for name in lacking if name in self._shape.computes_with]:
            lacking = needed
        if needed or (lacking and (self._known is None or not self._known >= _names(shown))):
            columns = ", ".join(column.name for column in schema.columns)
            raise ShapeRefused(
                f"{self._shape.named[lacking[0]]} names column {lacking[0]}, which the rows don't "
                f"have (they have {columns})"
            )


def _names(schema: TableSchema) -> frozenset[str]:
    return frozenset(column.name.lower() for column in schema.columns)


# What records say beside their rows, as a format reads them.


class FormatRecords:
    """``changes.routes.shaping.decoder.Records`` of one format."""

    def __init__(self, format_: Format, now_s: Callable[[], float]) -> None:
        """``now_s``: seconds since 1970."""
        self._format = format_
        self._now_s = now_s

    def now_ms(self) -> int:
        """By the clock."""
        return int(self._now_s() * 1000)

    def tables(self, values: Sequence[bytes]) -> list[TableName | None]:
        """By a glance at each, as the fetcher has it."""
        try:
            return [head.table for head in self._format.heads(values)]
        except BadMessage as error:
            raise ShapeRefused(f"shard: {error}") from error

    def times(self, values: Sequence[bytes]) -> list[int | None]:
        """By reading each one whole, which costs as much again as decoding it."""
        try:
            return [self._time(value) for value in values]
        except BadMessage as error:
            raise ShapeRefused(f"the time of a record: {error}") from error

    def images(self, value: bytes) -> Sequence[RowChange]:
        """By reading it whole."""
        try:
            found = self._format.explain(value)
        except BadMessage as error:
            raise ShapeRefused(f"filter: {error}") from error
        return [each for each in found if isinstance(each, RowChange)]

    def _time(self, value: bytes) -> int | None:
        return next((each.ts_ms for each in self._format.explain(value)), None)
