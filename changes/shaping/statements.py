"""Shapes statements: what they do to the columns that a target shows, under its names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from changes.model import (
    AddColumn,
    ChangeColumn,
    Ddl,
    DdlStep,
    DropColumn,
    Redefined,
    RenameColumn,
    TruncateTable,
)
from changes.shaping.shape import Shape


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
