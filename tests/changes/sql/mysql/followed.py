"""Tables as the parser's steps make them, and how they differ from those of a server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Ddl,
    DropColumn,
    DropTable,
    RenameColumn,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A column: its type in the lake, and the one row's value as text, bytes in hexadecimal."""

    type: pa.DataType
    value: str | None = None
    added: bool = False
    """By the statement: its value is its default's."""


@dataclass(frozen=True, slots=True)
class Known:
    """A table as it is, or as the parser says it became."""

    columns: dict[str, Shown]
    rows: int


State = dict[TableName, Known]


MADE = Known({}, -1)
"""A table that the statement itself makes: its columns come with its rows."""


def followed(before: State, statements: tuple[Ddl, ...]) -> State:
    """The tables as the parser's steps make them; later statements see what earlier ones did."""
    after = dict(before)
    moved = {}
    for ddl in statements:
        table = after.get(ddl.table)
        if table is None:
            continue
        name: TableName | None = ddl.table
        # The steps of a statement use the names from before it.
        named, new = {key: key for key in table.columns}, dict[str, Shown]()
        columns, rows = dict(table.columns), table.rows
        for step in ddl.steps:
            match step:
                case TruncateTable():
                    rows = 0
                case DropTable():
                    name = None
                case RenameTable(other):
                    name = other
                case TakeName():
                    pass
                case AddColumn(column, default):
                    new[column.name] = Shown(column.type, _text(default), added=True)
                case _:
                    _alter(columns, named, step)
        columns = {named[key]: each for key, each in columns.items()} | new
        del after[ddl.table]
        made = ddl.sql.upper().startswith("CREATE")
        if name is not None or made:
            name = ddl.table if name is None else name
            moved[name] = MADE if made and ddl.steps else Known(columns, rows)
            if name == ddl.table:
                after[name] = moved.pop(name)
    return after | moved


def _alter(columns: dict[str, Shown], named: dict[str, str], step: object) -> None:
    """Change columns by their former names; ``named`` has the present ones."""
    lower = {name.lower(): name for name in named}
    match step:
        case DropColumn(name):
            if here := lower.get(name.lower()):
                del columns[here]
        case RenameColumn(old, new):
            named[lower[old.lower()]] = new
        case ChangeColumn(old, column):
            here = lower[old.lower()]
            named[here] = column.name
            columns[here] = Shown(column.type, columns[here].value)
        case _:
            raise AssertionError(step)


def _text(value: object) -> str | None:
    match value:
        case bool():
            return str(int(value))
        case bytes():
            return value.hex().upper()
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case None:
            return None
        case _:
            return str(value)


def difference(ours: State, theirs: State, before: State) -> str | None:
    """How they differ. Tables that a statement makes are learned from their rows, and so are the
    values of redefined columns."""
    for name in sorted(ours.keys() | (theirs.keys() & before.keys())):
        if name not in theirs or name not in ours:
            return f"{name} is there {'by the parser' if name in ours else 'at the server'} alone"
        mine, its = ours[name], theirs[name]
        if mine is MADE:
            continue
        if set(mine.columns) != set(its.columns):
            return f"{name} has {[*mine.columns]} by the parser, {[*its.columns]} at the server"
        if mine.rows != its.rows:
            return f"{name} has {mine.rows} rows by the parser, {its.rows} at the server"
        for column in mine.columns:
            one, two = mine.columns[column], its.columns[column]
            if one.type != two.type:
                return f"{name}.{column} is {one.type} by the parser, {two.type} at the server"
            if its.rows and one.added and not _same(one, two.value):
                return f"{name}.{column} is {one.value!r} by the parser, {two.value!r} there"
    return None


def _same(ours: Shown, theirs: str | None) -> bool:
    if ours.value is None or theirs is None:
        return ours.value == theirs
    if pa.types.is_binary(ours.type):  # BINARY is filled up with zero bytes
        return theirs.startswith(ours.value) and not theirs[len(ours.value) :].strip("0")
    if pa.types.is_float32(ours.type):
        return bool(np.isclose(np.float32(ours.value), np.float32(theirs), rtol=1e-5))
    if pa.types.is_floating(ours.type):
        return float(ours.value) == float(theirs)
    if ours.type in (pa.bool_(), pa.int64(), pa.int32()) or pa.types.is_decimal(ours.type):
        return _number(ours.value) == _number(theirs) or _number(ours.value) == _hexadecimal(theirs)
    return _plain(ours.value) == _plain(theirs)


def _number(text: str) -> Decimal | None:
    return Decimal(text) if text.replace(".", "").lstrip("-").isdigit() else None


def _hexadecimal(text: str) -> Decimal | None:
    try:
        return Decimal(int(text or "0", 16))
    except ValueError:
        return None


def _plain(text: str) -> str:
    """Times without the zeros at a fraction's end."""
    head, point, fraction = text.rpartition(".")
    if not point or ":" not in head or fraction.strip("0123456789"):
        return text
    fraction = fraction.rstrip("0")
    return f"{head}.{fraction}" if fraction else head
