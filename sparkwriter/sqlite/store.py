"""A file of SQLite as a sink: the smallest whole example of one.

Rows, columns and marks change in one transaction of the file. Docs: ``docs/sinks.md``.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from changes.model.errors import LostRace, SinkAway, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.sqlite_ledger import SqliteLedger, quote, table_name
from sparkwriter.kit.marks_table.store import LedgeredStore
from sparkwriter.kit.marks_table.table_description import (
    Drop,
    Entry,
    Forgets,
    Frees,
    Made,
    Make,
    Operation,
    Remake,
    Rename,
    Row,
    Shows,
    TakeAbove,
    TakeOver,
    WriteRows,
)
from sparkwriter.kit.shape import rows_above
from sparkwriter.kit.store import Absent
from sparkwriter.sqlite.rows import (
    default_of,
    from_sqlite,
    statement,
    stored_rows,
    unlike,
    write_rows,
)

BUSY_S = 10.0
"""How long a write waits for another one to the file."""

_OF_THE_FILE = frozenset((
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
))  # fmt: skip
"""Errors that any write into any of its tables would have."""

STEPS_A_LOOK = 100_000
"""Of SQLite's own machine, between two looks at the clock: some milliseconds."""


class SqliteStore(LedgeredStore):
    """Tables in a file: a step is a transaction."""

    def __init__(self, path: Path, timeout_s: float = math.inf) -> None:
        """``timeout_s``: for one call. Raises SinkAway where the file can't be opened."""
        self._timeout_s = timeout_s
        self._deadline = math.inf
        self._joined = False
        try:
            self._connection = sqlite3.connect(
                path, timeout=min(BUSY_S, timeout_s), isolation_level=None, check_same_thread=False
            )
            # A reader goes on reading what was there, a writer does not wait for it.
            self._connection.execute("PRAGMA journal_mode = wal")
            self._connection.execute("PRAGMA synchronous = full")
            self._connection.set_progress_handler(self._is_late, STEPS_A_LOOK)
            self._ledger = SqliteLedger(self._connection)
        except sqlite3.Error as error:
            raise SinkAway(f"{path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def call(self, target: TargetName) -> Iterator[None]:
        """SQLite's errors become the port's, and the port's name the target."""
        self._deadline = time.monotonic() + self._timeout_s
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG):
                raise TargetRefused(f"{target}: {error}") from error
            away = error.sqlite_errorcode & 0xFF in _OF_THE_FILE
            raise (SinkAway if away else SinkUnavailable)(f"{target}: {error}") from error
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise TargetRefused(f"{target}: {error}") from error
        except TargetRefused as error:
            raise TargetRefused(f"{target}: {error}") from error

    def look(self, target: TargetName) -> Row | Absent:
        """Read the ledger, and see that the table is the one of which it tells."""
        here = self._ledger.look(target)
        if not isinstance(here, Absent):
            wrong = list(unlike(self._connection, table_name(target), here.table))
            if wrong:
                raise TargetRefused("; ".join(wrong))
        return here

    def replaced(self, target: TargetName) -> Row | Absent:
        """Whatever is wrong with the table."""
        return self._ledger.look(target)

    def step(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row] = (),
        absent: TargetName | None = None,
    ) -> str:
        """One transaction."""
        with self._transaction():
            for row in seen:
                self._ledger.check(row)
            if absent is not None and not isinstance(self._ledger.look(absent), Absent):
                raise LostRace(f"{absent} is there meanwhile")
            # What names a table, as a view does, is of whichever takes its name, and does not go
            # along with the old one.
            exchanges = any(isinstance(o, Rename) and o.is_exchange for o in operations)
            self._connection.execute(f"PRAGMA legacy_alter_table = {exchanges:d}")
            for operation in operations:
                self._carry_out(operation)
            for entry in entries:
                self._note(entry)
            return self._ledger.version(entries[0].target)

    @contextmanager
    def together(self, locks_s: float) -> Iterator[None]:
        """One transaction: statements about tables are part of it. A lock is the whole file's, so
        no table could be written without the others."""
        with self._transaction():
            self._joined = True
            try:
                yield
            finally:
                self._joined = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """That of a step, or a part of the one that is under way."""
        if self._joined:
            yield
            return
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def hanging(self, target: TargetName) -> Sequence[str]:
        """Its triggers, which go with a table. Views name it, and so do foreign keys."""
        text = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY 1"
        found = self._connection.execute(text, (table_name(target),)).fetchall()
        return [f"trigger {name}" for (name,) in found]

    def freed(self, target: TargetName) -> str | None:
        """What ``free`` noted."""
        return self._ledger.freed(target)

    def is_empty(self, seen: Row) -> bool:
        """Whether there is no row."""
        name = quote(table_name(seen.target))
        return self._connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None

    def may_hold_null(self, seen: Row, column: str) -> bool:
        """Whether a row has a null there; a column that is not there has nothing but."""
        name = next((f.name for f in seen.table.fields if f.name.lower() == column.lower()), None)
        if name is None:
            return True
        text = f"SELECT 1 FROM {quote(table_name(seen.target))} WHERE {quote(name)} IS NULL LIMIT 1"
        return self._connection.execute(text).fetchone() is not None

    def read_rows(self, seen: Row, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """By the key, row by row, as a write looks them up."""
        return stored_rows(self._connection, seen, keys, columns)

    def read(self, target: TargetName) -> pa.Table:
        """All rows, as Arrow has them. For tests and for who verifies."""
        seen = self._ledger.look(target)
        assert not isinstance(seen, Absent)
        rows = self._connection.execute(f"SELECT * FROM {quote(table_name(target))}").fetchall()
        fields = seen.table.fields
        columns = zip(*rows, strict=True) if rows else [() for _ in fields]
        arrays = [from_sqlite(v, f.type) for f, v in zip(fields, columns, strict=True)]
        return pa.table(arrays, [field.name for field in fields])

    def _is_late(self) -> bool:
        """SQLite asks between its steps; true ends the statement with an error."""
        return time.monotonic() > self._deadline

    # --- inside a transaction

    def _note(self, entry: Entry) -> None:
        match entry:
            case Shows(target, marks, made):
                self._ledger.put(target, marks, made)
            case Forgets(target):
                self._ledger.forget(target)
            case Frees(target, renaming):
                self._ledger.free(target, renaming)

    def _carry_out(self, operation: Operation) -> None:
        match operation:
            case Make(target, made):
                self._make(table_name(target), made)
            case Remake():
                self._remake(operation)
            case Rename(old, new, made):
                self._rename(table_name(old), table_name(new), made)
            case Drop(target):
                self._connection.execute(f"DROP TABLE {quote(table_name(target))}")
            case WriteRows(seen, batch):
                assert batch.path is not None
                write_rows(self._connection, seen, batch, batch.path)
            case TakeOver():
                pass  # rights and comments are nothing that it has
            case TakeAbove(target, before, after):
                away = rows_above(before.offsets, after.offsets)
                if away is not None:
                    name = quote(table_name(target))
                    self._connection.execute(f"DELETE FROM {name} WHERE {away}")

    def _check_name(self, name: str, mine: str = "") -> None:
        """Refuse a name whose case alone tells it from another table's: SQLite does not."""
        text = "SELECT name FROM sqlite_master WHERE name = ? COLLATE NOCASE AND name NOT IN (?, ?)"
        other = self._connection.execute(text, (name, name, mine)).fetchone()
        if other is not None:
            raise TargetRefused(
                f"its table {name} differs from {other[0]} in case alone, which SQLite does not"
                " tell apart: give one of them a route with another target"
            )

    def _make(self, name: str, made: Made) -> None:
        self._check_name(name)
        self._connection.execute(statement(name, made))
        self._index(name, made)

    def _index(self, name: str, made: Made) -> None:
        if made.keys:
            keys, index = ", ".join(map(quote, made.keys)), quote(f"{name} key")
            self._connection.execute(f"CREATE INDEX {index} ON {quote(name)} ({keys})")

    def _remake(self, remake: Remake) -> None:
        """Columns have no type here: a wider one is another word in the ledger."""
        made, before = remake.after, [field.name for field in remake.before.fields]
        name = table_name(remake.target)
        aside = f"__binlogd_old {name}"
        if [f.name for f in made.fields] == before and all(f.id is not None for f in made.fields):
            if remake.emptied:
                self._connection.execute(f"DELETE FROM {quote(name)}")
            return
        self._connection.execute(f"DROP INDEX IF EXISTS {quote(f'{name} key')}")
        self._connection.execute(f"ALTER TABLE {quote(name)} RENAME TO {quote(aside)}")
        self._make(name, made)
        if not remake.emptied:
            chosen = ", ".join("?" if f.id is None else quote(before[f.id]) for f in made.fields)
            new = [default_of(f.name, f.default, f.type) for f in made.fields if f.id is None]
            text = f"INSERT INTO {quote(name)} SELECT {chosen} FROM {quote(aside)}"
            self._connection.execute(text, new)
        self._connection.execute(f"DROP TABLE {quote(aside)}")

    def _rename(self, before: str, after: str, made: Made) -> None:
        self._check_name(after, before)
        self._connection.execute(f"DROP INDEX IF EXISTS {quote(f'{before} key')}")
        if before.lower() == after.lower():  # the name is its own for SQLite, which refuses that
            aside = f"__binlogd_old {before}"
            self._connection.execute(f"ALTER TABLE {quote(before)} RENAME TO {quote(aside)}")
            before = aside
        self._connection.execute(f"ALTER TABLE {quote(before)} RENAME TO {quote(after)}")
        self._index(after, made)
