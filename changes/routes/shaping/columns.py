"""Shapes the columns of decoded tables: which are shown, under which names, behind which masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from changes.model.model import (
    CHANGELOG_NAMES,
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    POSITION,
    Changes,
    Column,
    Mode,
    TableSchema,
)
from changes.routes.shaping.additions import METADATA, Additions, Read, additions_of
from changes.routes.shaping.compute import Compute, compute_of
from changes.routes.shaping.history import ENDED_AT
from changes.routes.shaping.layout import transforms_of
from changes.routes.shaping.masking import masked
from changes.routes.shaping.masks import Mask
from changes.routes.shaping.names import HISTORY_NAMES, ShapeRefused
from changes.routes.shaping.shape import Shape


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of the target, and how it is made of one of the source."""

    column: Column
    mask: Mask | None


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What becomes of the columns of one schema. ``shown`` by the source's names, as they are."""

    schema: TableSchema
    shown: Mapping[str, Shown]
    shape: Shape
    compute: Compute
    additions: Additions | None

    def shaped(self, changes: Changes, known: frozenset[str], read: Read) -> Changes:
        """The changes as the target shows them. ``known`` are the columns, in small letters, that
        it had before. Raises BadRecord, and ShapeRefused."""
        old = {name for name, each in self.shown.items() if each.column.name.lower() in known}
        raw = self.compute.filtered(changes, old, read.images)
        columns = list(self._columns(raw.table, changes.mode))
        columns += self.compute.columns(raw)
        table = pa.table([each for _, each in columns], [name for name, _ in columns])
        shaped = replace(raw, table=table, schema=self.schema, carried=self._carried(changes))
        if self.additions is None:
            return shaped
        return replace(shaped, table=self.additions.added(shaped, self.schema, read))

    def _columns(self, table: pa.Table, mode: Mode) -> Iterator[tuple[str, pa.ChunkedArray]]:
        own = len(CHANGELOG_NAMES) if mode is Mode.APPEND else 0
        for place, name in enumerate(table.column_names):
            column = table.column(place)
            if place < own or (not own and name in (OP, FROM, POSITION)):
                yield name, column
            elif name in self.shown:
                yield self.shown[name].column.name, self._values(name, column)
            elif (of := name.removeprefix(HAS_PREFIX)) != name:
                if of in self.shown:
                    yield HAS_PREFIX + self.shown[of].column.name, column
            elif (of := name.removeprefix(FROM_PREFIX)) != name:
                yield FROM_PREFIX + self.shown[of].column.name, self._values(of, column)

    def _carried(self, changes: Changes) -> frozenset[str] | None:
        """The target's columns that each insert has: also those that are made of what it has."""
        if changes.carried is None:
            return None
        own = {each.column.name for each in self.shown.values()}
        made = {column.name for column in self.schema.columns} - own
        made -= self.shape.computed_without(changes.carried)
        return frozenset(
            made | {each.column.name for n, each in self.shown.items() if n in changes.carried}
        )

    def _values(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        mask = self.shown[name].mask
        return column if mask is None else masked(column, mask, self.shape.salt)


def plan_of(shape: Shape, schema: TableSchema) -> ColumnPlan:
    """Plan a shape for the source's columns. Raises ShapeRefused."""
    keys = {key.lower() for key in schema.keys}
    try:
        shape.check_keys(schema.keys)
    except ValueError as error:
        raise ShapeRefused(str(error)) from error
    shown: dict[str, Shown] = {}
    for column in schema.columns:
        if not shape.shows(column.name):
            continue
        mask = shape.mask_of(column.name)
        if mask is not None:
            problem = mask.problem(column.type, key=column.name.lower() in keys)
            if problem is not None:
                raise ShapeRefused(f"mask: column {column.name}: {problem}")
        type_ = column.type if mask is None else pa.string()
        shown[column.name] = Shown(Column(shape.name_of(column.name), type_), mask)
    compute = compute_of(shape, schema, shown)
    names = {name.lower(): each.column.name for name, each in shown.items()}
    named = tuple(names[key.lower()] for key in schema.keys)
    named += (shape.shard,) if shape.shard and named else ()
    named += (ENDED_AT,) if shape.history and named else ()
    additions = additions_of(shape, schema, named)
    columns = (*(each.column for each in shown.values()), *compute.added)
    columns += () if additions is None else additions.columns
    check_names(column.name for column in columns)
    check_layout(shape, columns)
    return ColumnPlan(TableSchema(columns, named), shown, shape, compute, additions)


def check_names(names: Iterator[str]) -> None:
    """Raise ShapeRefused where two columns would have one name."""
    taken: dict[str, str] = {}
    for name in names:
        if (other := taken.get(name.lower())) is not None:
            has = "has that name" if other == name else f"is named {other}, in another case"
            raise ShapeRefused(f"a column would be named {name}, and another one {has}")
        taken[name.lower()] = name


def check_layout(shape: Shape, columns: Iterable[Column]) -> None:
    """Raise ShapeRefused where a column's type can't be partitioned as the shape asks."""
    types = {column.name.lower(): column.type for column in columns}
    for part in transforms_of(shape.partition_by):
        type_ = types.get(part.column.lower())
        if type_ is not None and (problem := part.problem(type_)) is not None:
            raise ShapeRefused(f"partition_by: {problem}")


def source_view(shape: Shape, stored: TableSchema, *, masked: bool = False) -> TableSchema:
    """The columns of a target under the source's names, as far as they tell the source's types.
    ``masked``: also those that only tell that they are there, with the type null."""
    old = {new.lower(): name for name, new in shape.rename}
    computed = {name.lower() for name, _ in shape.computed}
    computed |= {"_deleted"} if shape.delete == "soft" else set()
    computed |= {METADATA[name].name.lower() for name in shape.metadata} | {shape.shard.lower()}
    computed |= set(HISTORY_NAMES) if shape.history else set()
    columns = tuple(
        Column(name, column.type if shape.mask_of(name) is None else pa.null())
        for column in stored.columns
        if masked or shape.mask_of(old.get(column.name.lower(), column.name)) is None
        if (name := old.get(column.name.lower(), column.name)).lower() not in computed
    )
    own = {shape.shard.lower(), ENDED_AT} if shape.history else {shape.shard.lower()}
    keys = (key for key in stored.keys if key.lower() not in own)
    return TableSchema(columns, tuple(old.get(key.lower(), key) for key in keys))
