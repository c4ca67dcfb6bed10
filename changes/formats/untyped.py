"""Statements about tables whose rows come without types: every column is text in the lake."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from changes.model import AddColumn, ChangeColumn, Column, Ddl, DdlStep, RenameColumn
from changes.types import TEXT


def as_text_columns(ddl: Ddl) -> Ddl:
    """The statement with the types that rows will have: a change of type alone is none."""
    return replace(ddl, steps=tuple(_steps(ddl)))


def _steps(ddl: Ddl) -> Iterator[DdlStep]:
    for step in ddl.steps:
        match step:
            case AddColumn(column, default):
                yield AddColumn(Column(column.name, TEXT.arrow), _printed(default))
            case ChangeColumn(old, column):
                if old != column.name:
                    yield RenameColumn(old, column.name)
            case _:
                yield step


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
