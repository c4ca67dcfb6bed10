"""Statements about tables whose rows come without types, or with fewer than their source has."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from changes.model import AddColumn, ChangeColumn, Column, Ddl, DdlStep, RenameColumn
from changes.types import TEXT


def as_text_columns(ddl: Ddl) -> Ddl:
    """The statement with the types that rows will have: a change of type alone is none."""
    return retyped(ddl, as_text_column)


def retyped(ddl: Ddl, column: Callable[[AddColumn], AddColumn | None]) -> Ddl:
    """The statement with its new columns as rows will have them, None where rows will add it."""
    return replace(ddl, steps=tuple(_steps(ddl, column)))


def _steps(ddl: Ddl, column: Callable[[AddColumn], AddColumn | None]) -> Iterator[DdlStep]:
    for step in ddl.steps:
        match step:
            case AddColumn():
                added = column(step)
                if added is not None:
                    yield added
            case ChangeColumn(old, changed):
                if old != changed.name:
                    yield RenameColumn(old, changed.name)
            case _:
                yield step


def as_text_column(step: AddColumn) -> AddColumn:
    """The new column as text."""
    return AddColumn(Column(step.column.name, TEXT.arrow), _printed(step.default))


def _printed(value: object) -> str | None:
    """A column's default as a message shows it."""
    match value:
        case None | str():
            return value
        case bool():
            return str(int(value))
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case _:
            return str(value)
