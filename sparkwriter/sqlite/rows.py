"""A staged batch's rows into a table: what each stored row is to be, then the statements."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.contract.writes import StagedBatch
from changes.model import types as decimals
from changes.model.errors import TargetRefused
from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP, Mode
from changes.sql.spark.schema import arrow_type
from sparkwriter.kit.marks_table.sqlite_ledger import quote, table_name
from sparkwriter.kit.marks_table.table_description import Made, Row
from sparkwriter.kit.store import FOUND

# Arrow's values as SQLite keeps them, each exactly and so that it compares as at the source.

NAN = "NaN"


def to_sqlite(name: str, column: pa.ChunkedArray | pa.Array) -> Sequence[object]:
    """A column's values. ``name`` is for the error: raises TargetRefused."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        digits: list[object] = decimals.texts(column).to_pylist()
        return digits
    if pa.types.is_temporal(type_):
        try:
            texts: list[object] = pc.cast(column, pa.string()).to_pylist()
            return texts
        except pa.ArrowInvalid as error:
            raise TargetRefused(f"column {name}: {error}") from None
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(type_):
        return [NAN if isinstance(v, float) and math.isnan(v) else v for v in values]
    return values


def default_of(name: str, value: object, type_: str) -> object:
    """A statement's default as stored rows show it. Raises TargetRefused where it doesn't fit."""
    if value is None:
        return None
    wanted = arrow_type(type_)
    try:
        given = pa.array([value if isinstance(value, bytes) else str(value)])
        made = pc.cast(given, wanted)
    except pa.ArrowInvalid:
        raise TargetRefused(f"column {name}: the default {value!r} does not fit {type_}") from None
    return to_sqlite(name, made)[0]


def from_sqlite(values: Sequence[object], type_: str) -> pa.Array:
    """Stored values as Arrow has them again."""
    wanted = arrow_type(type_)
    if pa.types.is_floating(wanted):
        return pa.array([math.nan if v == NAN else v for v in values], wanted)
    if pa.types.is_decimal(wanted) or pa.types.is_temporal(wanted):
        return pc.cast(pa.array(values, pa.string()), wanted)
    if pa.types.is_boolean(wanted):
        return pa.array([None if v is None else bool(v) for v in values], wanted)
    return pa.array(values, wanted)


ROWS_AT_ONCE = 10_000


def write_rows(connection: sqlite3.Connection, seen: Row, batch: StagedBatch, path: str) -> None:
    """Apply the file inside the caller's transaction."""
    target = Target(connection, seen)
    file = pq.ParquetFile(path, memory_map=True)
    if batch.mode is Mode.APPEND:
        for part in file.iter_batches(ROWS_AT_ONCE):
            staged = _Staged(part, target, batch.partial)
            target.insert(staged.row(at) for at in range(part.num_rows))
        return
    # What rows lack is what is stored before this batch: all of it is read before any is written.
    parts = [_Staged(part, target, batch.partial) for part in file.iter_batches(ROWS_AT_ONCE)]
    living = [list(part.living()) for part in parts]
    for part in parts:
        target.delete(part.keys)
    for rows in living:
        target.insert(rows)


def stored_rows(
    connection: sqlite3.Connection, seen: Row, keys: pa.Table, columns: Sequence[str]
) -> pa.Table:
    """What is stored of keys. See ``sparkwriter.kit.store.TableStore.read_rows``."""
    target = Target(connection, seen)
    given = {name.lower(): name for name in keys.column_names}
    named = [given[target.names[at].lower()] for at in target.keys]
    asked = [to_sqlite(name, keys[name].combine_chunks()) for name in named]
    rows = [target.stored(key) for key in zip(*asked, strict=True)]
    found: dict[str, pa.Array] = {FOUND: pa.array([row is not None for row in rows], pa.bool_())}
    for name in columns:
        at = target.at(name)
        values = [None if row is None else row[at] for row in rows]
        found[name] = from_sqlite(values, seen.table.fields[at].type)
    return pa.table(found)


class Target:
    """A table as rows are read from it and written to it."""

    def __init__(self, connection: sqlite3.Connection, seen: Row) -> None:
        self._connection = connection
        self.names = [field.name for field in seen.table.fields]
        self.keys = [self.at(key) for key in seen.table.keys]
        name = quote(table_name(seen.target))
        # IS: a null in a key is a value like others.
        where = " AND ".join(f"{quote(self.names[at])} IS ?" for at in self.keys)
        places = ", ".join("?" * len(self.names))
        self._select = f"SELECT * FROM {name} WHERE {where}"
        self._delete = f"DELETE FROM {name} WHERE {where}"
        self._insert = f"INSERT INTO {name} VALUES ({places})"

    def at(self, name: str) -> int:
        """A column's place."""
        return [one.lower() for one in self.names].index(name.lower())

    def stored(self, key: Sequence[object]) -> Sequence[object] | None:
        """The row of a key, None where there is none."""
        found: Sequence[object] | None = self._connection.execute(self._select, key).fetchone()
        return found

    def delete(self, keys: Sequence[Sequence[object]]) -> None:
        """Take rows away; what is not there is gone already."""
        self._connection.executemany(self._delete, keys)

    def insert(self, rows: Iterator[Sequence[object]] | Sequence[Sequence[object]]) -> None:
        """Add rows, their values in the columns' order."""
        self._connection.executemany(self._insert, rows)


class _Staged:
    """A part of the staged file, its columns beside those of the target."""

    def __init__(self, part: pa.RecordBatch, target: Target, partial: Sequence[str]) -> None:
        self._target = target
        given = {name.lower(): name for name in part.schema.names}
        self._values: list[Sequence[object] | None] = []
        self._has: list[Sequence[object] | None] = []
        lacking = {name.lower() for name in partial}
        for name in target.names:
            have = given.get(name.lower())
            self._values.append(None if have is None else _column(part, have))
            presence = have is not None and name.lower() in lacking
            self._has.append(_column(part, f"{HAS_PREFIX}{have}") if presence else None)
        self._ops = _column(part, OP) if OP in part.schema.names else None
        keys = [self._values[at] or () for at in target.keys]
        self.keys: list[tuple[object, ...]] = list(zip(*keys, strict=True))
        self._from: list[tuple[object, ...]] | None = None
        if FROM in part.schema.names:
            old = [
                _column(part, f"{FROM_PREFIX}{given[target.names[at].lower()]}")
                for at in target.keys
            ]
            self._from = list(zip(*old, strict=True))
            self._moved = _column(part, FROM)

    def row(self, at: int) -> list[object]:
        """A row as the file has it, null where it lacks a column."""
        return [None if column is None else column[at] for column in self._values]

    def living(self) -> Iterator[list[object]]:
        """The rows that the target is to hold, completed by what it stores."""
        assert self._ops is not None
        whole = all(v is not None for v in self._values) and not any(self._has)
        for at, op in enumerate(self._ops):
            if op == "U":
                yield self.row(at) if whole else self._completed(at)

    def _completed(self, at: int) -> list[object]:
        stored = None
        if self._from is not None and self._moved[at] is not None:
            stored = self._target.stored(self._from[at])
        # Without a row of the old key it was moved before: then it keeps what it has.
        stored = stored or self._target.stored(self.keys[at])
        row = self.row(at)
        if stored is None:
            return row
        for number, (values, has) in enumerate(zip(self._values, self._has, strict=True)):
            if values is None or (has is not None and not has[at]):
                row[number] = stored[number]
        return row


def _column(part: pa.RecordBatch, name: str) -> Sequence[object]:
    return to_sqlite(name, part.column(name))


# Whether a table of the file is still the one that binlogd made.

_NAME = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[^\s"'`\[]+)"""
_AFTER = re.compile(rf"CREATE\s+TRIGGER\s+{_NAME}(?:\s*\.\s*{_NAME})?\s+AFTER\s", re.IGNORECASE)


def statement(name: str, made: Made) -> str:
    """The statement that makes a table."""
    columns = ", ".join(quote(field.name) for field in made.fields)
    return f"CREATE TABLE {quote(name)} ({columns})"


def unlike(connection: sqlite3.Connection, name: str, made: Made) -> Iterator[str]:
    """Why the table can't be written. One line each; nothing where there is none."""
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND type IN ('table',"
        " 'trigger')",
        (name,),
    ).fetchall()
    for type_, its_name, sql in found:
        if type_ == "table" and sql != statement(name, made):
            yield (
                "its table was made or altered by somebody else, and may store other values than "
                "are written: binlogd tables rebuild makes one of binlogd's own"
            )
        elif type_ == "trigger" and not _AFTER.match(sql):
            yield (
                f"its trigger {its_name} runs BEFORE a row is written, and may let it go: make it "
                "AFTER, or drop it"
            )
