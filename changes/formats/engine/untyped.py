"""Adapts statements to rows without types, or with fewer types than their source has.

Configured types replace the missing ones.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from changes.model.model import AddColumn, ChangeColumn, Column, Ddl, DdlStep, RenameColumn
from changes.model.types import TEXT, TIMESTAMP_UTC, SourceType, TextForm, widen
from changes.sql.convert import convert


def as_text_columns(ddl: Ddl) -> Ddl:
    """The statement with all columns as text; a change of type alone is dropped."""
    return retyped(ddl, as_text_column)


def retyped(ddl: Ddl, column: Callable[[AddColumn], AddColumn | None]) -> Ddl:
    """The statement with each new column as ``column`` returns it; None drops it, rows add it."""
    steps, lenient = tuple(_steps(ddl.steps, column)), tuple(_steps(ddl.lenient, column))
    return replace(ddl, steps=steps, lenient=lenient)


def _steps(
    steps: Iterable[DdlStep], column: Callable[[AddColumn], AddColumn | None]
) -> Iterator[DdlStep]:
    for step in steps:
        match step:
            case AddColumn():
                added = column(step)
                if added is not None:
                    yield added
            case ChangeColumn(old, changed, if_exists):
                if old != changed.name:
                    yield RenameColumn(old, changed.name, if_exists)
            case _:
                yield step


def as_text_column(step: AddColumn) -> AddColumn:
    """The new column as text."""
    return AddColumn(Column(step.column.name, TEXT.arrow), _printed(step.default))


def as_declared(step: AddColumn, arrow: pa.DataType) -> AddColumn:
    """The new column with the configured type, or a wider one of the source.

    Raises ValueError where its default does not fit that type.
    """
    kind = widen(arrow, step.column.type) or arrow
    column = Column(step.column.name, kind)
    text = _printed(step.default)
    if text is None:
        return replace(step, column=column, default=None)
    if kind.equals(TIMESTAMP_UTC):
        raise ValueError("a point in time as a DEFAULT depends on a session's time zone")
    form = TextForm.BASE64 if pa.types.is_binary(kind) else TextForm.PLAIN
    try:
        found = convert(pa.array([text], pa.string()), SourceType(kind, form), "UTC")
    except pa.ArrowInvalid as error:
        raise ValueError(f"DEFAULT {text!r} is none of the declared type {kind}") from error
    return replace(step, column=column, default=found[0].as_py())


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
