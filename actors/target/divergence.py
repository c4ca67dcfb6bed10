"""Finds stored values that a statement may have changed without a row in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from actors.contract import effects as fx
from actors.contract.writes import Doubt, TargetState
from actors.target.buffer import TargetBuffer
from changes.model.model import (
    Ddl,
    DropColumn,
    DropTable,
    Redefined,
    RenameColumn,
    RenameTable,
    TableSchema,
    TakeName,
)
from changes.sql.mysql.columns import BYTES
from changes.sql.mysql.definitions import keeps, keeps_texts, shape_of, stored_shape
from offsets.snapshot import names

WAY_OUT = (
    "what sets the rows right is to have the source send them again: Debezium's signal "
    "execute-snapshot for the table, or an UPDATE that changes each row; binlogd tables rebuild "
    "reads the old values again"
)
"""What helps, for logs and errors."""

Known = Mapping[str, str]
"""Types in the source's words, by columns in small letters, from rows and statements."""


def doubts_of(
    statement: Ddl, known: Known, stored: TableSchema, place: str, *, first: bool
) -> Iterator[Doubt]:
    """What the statement may have changed of the rows that ``stored`` describes.

    A type that holds all that the former one held says nothing. ``first``: of its message, so that
    the columns that it names are those that the sink finds.
    """
    columns = {column.name.lower(): column for column in stored.columns}
    keys = {key.lower() for key in stored.keys}
    for new in statement.redefined:
        if new.column is None:
            texts = any(pa.types.is_string(column.type) for column in stored.columns)
            if texts and (new.charset == BYTES or not keeps_texts(new.charset)):
                what = f"CONVERT TO CHARACTER SET {new.charset}"
                yield Doubt(f"{statement.table}: {what} {place}")
            continue
        name = new.column.lower()
        if name not in columns:  # nothing of it is stored
            continue
        about = f"{statement.table}: column {new.column}"
        if (change := _change(new, known.get(name), columns[name].type)) is not None:
            yield Doubt(f"{about} {change} {place}")
        elif new.not_null and name not in keys and " not null" not in known.get(name, ""):
            held = columns[name].name if first else None
            yield Doubt(f"{about} NOT NULL over nulls {place}", if_null=held)


def remarks_of(buffer: TargetBuffer, shown: TargetState) -> list[fx.TargetEffect]:
    """What is reported of a statement once its target carries the mark."""
    batch = None if buffer.life.write is None else buffer.life.write.batch
    if batch is None or not batch.is_barrier:
        return []
    return [
        fx.Log("warning", "rows_may_differ", {"target": buffer.name, "what": what, "help": WAY_OUT})
        for what in (doubt.what for doubt in batch.doubts)
        if names(shown.rows_may_differ, what)
    ]


def known_after(statement: Ddl, known: Known) -> dict[str, str]:
    """The types as they are known after a statement."""
    if statement.unread is not None:
        return {}
    gone: set[str] = set()
    now: dict[str, str] = {}
    for step in statement.steps:
        match step:
            case DropColumn(name):
                gone.add(name.lower())
            case RenameColumn(old, new):
                gone.add(old.lower())
                if old.lower() in known:
                    now[new.lower()] = known[old.lower()]
            case DropTable() | RenameTable() | TakeName():
                return {}
            case _:
                continue
    for each in statement.redefined:
        if each.column is None:  # a longer type may have become of a text's
            return {}
        gone.add(each.column.lower())
        now[each.name.lower()] = _words(each)
    return {name: words for name, words in known.items() if name not in gone} | now


def _change(new: Redefined, words: str | None, stored: pa.DataType) -> str | None:
    """How the column's stored values may have changed, None where they stay what they are."""
    if new.generated:
        return "is computed from other columns"
    old = stored_shape(stored) if words is None else shape_of(words)
    now = shape_of(new.type or "", new.charset)
    if old is not None and now is not None and keeps(old, now):
        return None
    was = f"what is stored as {stored}" if words is None else words
    return f"from {was} to {_words(new).removesuffix(' not null')}"


def _words(new: Redefined) -> str:
    words = new.type or ""
    if new.charset is not None:
        words += f" character set {new.charset}"
    return f"{words} not null" if new.not_null else words
