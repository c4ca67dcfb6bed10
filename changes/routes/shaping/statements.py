"""Shapes statements: what they do to the columns that a target shows, under its names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import (
    OP,
    AddColumn,
    BadRecord,
    ChangeColumn,
    Changes,
    Ddl,
    DdlStep,
    DropColumn,
    Mode,
    Redefined,
    RenameColumn,
    TableName,
    TableSchema,
    TruncateTable,
)
from changes.routes.shaping.additions import METADATA, Read
from changes.routes.shaping.columns import plan_of
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape


class NamedByShape(Exception):
    """A statement changes what a shape is made of: what it does, in words that fit before "is not
    followed"."""


def shaped_statement(shape: Shape, statement: Ddl) -> Ddl:
    """The statement as the target sees it. Raises NamedByShape."""
    return replace(
        statement,
        steps=tuple(_steps(shape, statement.steps)),
        lenient=tuple(_steps(shape, statement.lenient)),
        redefined=tuple(_redefined(shape, statement.redefined)),
    )


def _steps(shape: Shape, steps: tuple[DdlStep, ...]) -> Iterator[DdlStep]:
    named, typed = shape.named, shape.typed
    for step in steps:
        match step:
            case AddColumn(column):
                _check_new(shape, f"ADD COLUMN {column.name}", column.name)
                if shape.shows(column.name):
                    yield step
            case TruncateTable() if shape.history:
                raise NamedByShape("TRUNCATE of a table whose history is kept")
            case DropColumn(name):
                if (key := named.get(name.lower())) is not None:
                    raise NamedByShape(f"dropping {name}, which the route's {key} names,")
                if shape.shows(name):
                    yield step
            case RenameColumn(old, new):
                _check_renaming(shape, old, new)
                if shape.shows(old):
                    yield step
            case ChangeColumn(old, column) if old.lower() != column.name.lower():
                _check_renaming(shape, old, column.name)
                if shape.shows(old):
                    yield step
            case ChangeColumn(old, column):
                if old.lower() in typed:
                    key = named[old.lower()]
                    raise NamedByShape(f"another type of {old}, which the route's {key} names,")
                if shape.shows(old):
                    name = shape.name_of(column.name)
                    yield replace(step, old=shape.name_of(old), column=replace(column, name=name))
            case _:
                yield step


def _check_renaming(shape: Shape, old: str, new: str) -> None:
    if old.lower() == new.lower():
        return
    for name in (old, new):
        if (key := shape.named.get(name.lower())) is not None:
            raise NamedByShape(f"renaming {old} to {new}, where the route's {key} names {name},")
    _check_new(shape, f"renaming {old} to {new}", new)


def _check_new(shape: Shape, what: str, name: str) -> None:
    """Refuse a name that the shape gives to another column, or a column that it expects to know."""
    if (key := shape.made.get(name.lower())) is not None:
        raise NamedByShape(f"{what}, a name that the route's {key} gives,")
    key = shape.named.get(name.lower())
    if key not in (None, "columns", "drop_columns"):
        raise NamedByShape(f"{what}, which the route's {key} names,")


def _redefined(shape: Shape, found: tuple[Redefined, ...]) -> Iterator[Redefined]:
    for each in found:
        if each.column is None:
            yield each
        elif shape.shows(each.column):
            yield replace(each, column=shape.name_of(each.column), name=shape.name_of(each.name))


# Shapes rows that do not come from the log: those that a job reads from the source's database.


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
