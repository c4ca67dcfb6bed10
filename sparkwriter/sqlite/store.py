"""A file of SQLite as a sink: the smallest whole example of one.

Rows, columns and marks change in one transaction of the file. Docs: ``docs/sinks.md``.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from actors.contract.ports import SinkUnavailable, SwapTooEarly, TargetRefused
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model import Mode, TargetName
from offsets.fence import Marks
from offsets.snapshot import TargetMark
from sparkwriter.kit.changelog import rows_above
from sparkwriter.kit.store import Absent, Capabilities, Facts, TableChange
from sparkwriter.kit.swaps import nothing_rebuilt
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sql.ddl_plan import DdlTable, LakeField
from sparkwriter.sql.schema import AddLakeColumn, LakeColumn, SchemaStep, WidenColumn
from sparkwriter.sqlite.ledger import Ledger, Made, Row, quote, table_name
from sparkwriter.sqlite.rows import write_rows
from sparkwriter.sqlite.values import default_of, from_sqlite

BUSY_S = 10.0
"""How long a write waits for another one to the file."""


STEPS_A_LOOK = 100_000
"""Of SQLite's own machine, between two looks at the clock: some milliseconds."""


class SqliteStore:
    """``sparkwriter.kit.store.TableStore`` in a file. One writer's, on its thread."""

    capabilities = Capabilities(positions=False, history=False)

    def __init__(self, path: Path, timeout_s: float = math.inf) -> None:
        """``timeout_s``: for one call. Raises SinkUnavailable where the file can't be opened."""
        self._timeout_s = timeout_s
        self._deadline = math.inf
        try:
            self._connection = sqlite3.connect(
                path, timeout=min(BUSY_S, timeout_s), isolation_level=None, check_same_thread=False
            )
            # A reader goes on reading what was there, a writer does not wait for it.
            self._connection.execute("PRAGMA journal_mode = wal")
            self._connection.execute("PRAGMA synchronous = full")
            self._connection.set_progress_handler(self._is_late, STEPS_A_LOOK)
            self._ledger = Ledger(self._connection)
        except sqlite3.Error as error:
            raise SinkUnavailable(f"{path}: {error}") from error

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
            raise SinkUnavailable(f"{target}: {error}") from error
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise TargetRefused(f"{target}: {error}") from error
        except TargetRefused as error:
            raise TargetRefused(f"{target}: {error}") from error

    def look(self, target: TargetName) -> Row | Absent:
        """Read the ledger."""
        return self._ledger.look(target)

    def open(self, target: TargetName, recorded: TargetMark | None) -> Row | Absent:
        """The same: the file keeps no history."""
        return self._ledger.look(target)

    def create(self, batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> None:
        """Make the table, unless another did first."""
        fields = tuple(LakeField(None, column.name, column.type) for column in columns)
        keys = batch.schema.keys if batch.mode is Mode.UPSERT else ()
        made = Made(fields, batch.mode, keys, differs=facts.differs, source=facts.source)
        with self._step():
            if isinstance(self._ledger.look(batch.target), Absent):
                self._make(table_name(batch.target), made)
                self._ledger.put(batch.target, facts.marks, made)

    def change_schema(self, seen: Row, steps: Sequence[SchemaStep], differs: str | None) -> None:
        """Add columns; a wider type is another word in the ledger."""
        fields = list(seen.table.fields)
        for step in steps:
            match step:
                case AddLakeColumn(column):
                    fields.append(LakeField(None, column.name, column.type))
                case WidenColumn(column):
                    fields = [
                        replace(field, type=column.type) if field.name == column.name else field
                        for field in fields
                    ]
        made = replace(seen.table, fields=tuple(fields), differs=differs)
        with self._step(seen):
            self._remake(seen, made)
            self._ledger.put(seen.target, seen.marks, made)

    def publish(self, seen: Row, batch: StagedBatch, facts: Facts) -> str:
        """Rows and marks in one transaction."""
        with self._step(seen):
            if batch.path is not None:
                write_rows(self._connection, seen, batch, batch.path)
            return self._ledger.put(seen.target, facts.marks, _told(seen.table, facts))

    def reset(self, seen: Row, marks: Marks) -> str:
        """Move the marks; a changelog's rows above them go."""
        changelog = seen.table.mode is Mode.APPEND
        away = rows_above(seen.marks.offsets, marks.offsets) if changelog else None
        with self._step(seen):
            if away is not None:
                name = quote(table_name(seen.target))
                self._connection.execute(f"DELETE FROM {name} WHERE {away}")
            return self._ledger.put(seen.target, marks, seen.table)

    def columns(self, seen: Row) -> DdlTable:
        """The table as statements find it."""
        made = seen.table
        kept, empty = frozenset(made.kept), self.is_empty(seen)
        return DdlTable(made.fields, made.keys, kept, empty=empty)

    def change(self, seen: Row, change: TableChange) -> None:
        """Columns and marks in one transaction."""
        made = _changed(seen.table, change)
        with self._step(seen):
            self._remake(seen, made, change.after.emptied)
            self._ledger.put(seen.target, change.facts.marks, made)

    def move(self, seen: Row, to: TargetName, change: TableChange, left: Marks) -> None:
        """The same, and the name: all of it in one transaction."""
        made = _changed(seen.table, change)
        marks = seen.marks.with_name(change.facts.marks)
        with self._step(seen):
            self._remake(seen, made, change.after.emptied)
            self._rename(seen.target, to, made)
            self._ledger.put(to, marks, made)
            self._ledger.put(seen.target, left, None)

    def set_aside(self, seen: Row, aside: TargetName) -> None:
        """Another name for the table; its own keeps the marks."""
        with self._step(seen):
            self._rename(seen.target, aside, seen.table)
            self._ledger.put(aside, seen.marks, seen.table)
            self._ledger.put(seen.target, seen.marks, None)

    def drop(self, seen: Row, marks: Marks) -> None:
        """Take the table away."""
        with self._step(seen):
            self._connection.execute(f"DROP TABLE {quote(table_name(seen.target))}")
            self._ledger.put(seen.target, marks, None)

    def bury(self, target: TargetName, marks: Marks) -> None:
        """Have a name that no table has show the marks."""
        with self._step():
            self._ledger.put(target, marks, None)

    def free(self, target: TargetName, renaming: str) -> None:
        """Note which renaming may take the name."""
        with self._step():
            self._ledger.free(target, renaming)

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

    def added_otherwise(self, seen: Row, batch: StagedBatch) -> list[str]:
        """Nothing: without positions a target is of one table, whose columns come in order."""
        return []

    def swap(self, swap: Swap) -> TargetState:
        """A rebuilt table takes the old one's name. See ``actors.contract.ports.Swaps``."""
        with self._step():
            old, new = self._ledger.look(swap.old), self._ledger.look(swap.new)
            if not isinstance(new, Absent):
                self._exchange(swap, old, new)
            elif isinstance(old, Absent) or old.table.rebuilt != str(swap.new):
                raise TargetRefused(nothing_rebuilt(swap))
        return self._ledger.look(swap.old).state

    def remove(self, target: TargetName) -> None:
        """A table that was not exchanged goes, and what is known of it."""
        with self._step():
            if not isinstance(self._ledger.look(target), Absent):
                self._connection.execute(f"DROP TABLE {quote(table_name(target))}")
            self._ledger.forget(target)

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

    @contextmanager
    def _step(self, seen: Row | None = None) -> Iterator[None]:
        """One transaction. Raises LostRace where the target is not as it was seen."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            if seen is not None:
                self._ledger.check(seen)
            yield

    def _exchange(self, swap: Swap, old: Row | Absent, new: Row) -> None:
        marks = new.marks.lifted(old.marks)
        if any(at >= swap.frontiers.get(lane, 0) for lane, at in old.marks.offsets.items()):
            raise SwapTooEarly(old.marks.offsets)
        if not isinstance(old, Absent):
            if swap.keep_old:
                self._rename(swap.old, swap.aside, old.table)
                self._ledger.put(swap.aside, old.marks, old.table)
            else:
                self._connection.execute(f"DROP TABLE {quote(table_name(swap.old))}")
        made = replace(new.table, rebuilt=str(swap.new))
        self._rename(swap.new, swap.old, made)
        self._ledger.put(swap.old, marks, made)
        self._ledger.forget(swap.new)

    def _make(self, name: str, made: Made) -> None:
        columns = ", ".join(quote(field.name) for field in made.fields)
        self._connection.execute(f"CREATE TABLE {quote(name)} ({columns})")
        self._index(name, made)

    def _index(self, name: str, made: Made) -> None:
        if made.keys:
            keys, index = ", ".join(map(quote, made.keys)), quote(f"{name} key")
            self._connection.execute(f"CREATE INDEX {index} ON {quote(name)} ({keys})")

    def _remake(self, seen: Row, made: Made, emptied: bool = False) -> None:
        """Have the table these columns: a field's id is where it is now, None is a new one's."""
        before = [field.name for field in seen.table.fields]
        name = table_name(seen.target)
        aside = f"__binlogd_old {name}"
        if [f.name for f in made.fields] == before and all(f.id is not None for f in made.fields):
            if emptied:
                self._connection.execute(f"DELETE FROM {quote(name)}")
            return
        self._connection.execute(f"DROP INDEX IF EXISTS {quote(f'{name} key')}")
        self._connection.execute(f"ALTER TABLE {quote(name)} RENAME TO {quote(aside)}")
        self._make(name, made)
        if not emptied:
            chosen = ", ".join("?" if f.id is None else quote(before[f.id]) for f in made.fields)
            new = [default_of(f.name, f.default, f.type) for f in made.fields if f.id is None]
            text = f"INSERT INTO {quote(name)} SELECT {chosen} FROM {quote(aside)}"
            self._connection.execute(text, new)
        self._connection.execute(f"DROP TABLE {quote(aside)}")

    def _rename(self, old: TargetName, new: TargetName, made: Made) -> None:
        before, after = table_name(old), table_name(new)
        self._connection.execute(f"DROP INDEX IF EXISTS {quote(f'{before} key')}")
        self._connection.execute(f"ALTER TABLE {quote(before)} RENAME TO {quote(after)}")
        self._index(after, made)


class SqliteWriter(TargetWriter[Row]):
    """The sink of one writer: the kit's loop, and tables that change places."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self._file = store

    def swap(self, swap: Swap) -> TargetState:
        """See ``actors.contract.ports.Swaps``."""
        with self._file.call(swap.old):
            return self._file.swap(swap)

    def remove(self, target: TargetName) -> None:
        """See ``actors.contract.ports.Swaps``."""
        with self._file.call(target):
            self._file.remove(target)


def _told(made: Made, facts: Facts) -> Made:
    return replace(made, differs=facts.differs, source=facts.source)


def _changed(made: Made, change: TableChange) -> Made:
    after = change.after
    changed = replace(
        made,
        fields=after.fields,
        keys=after.keys,
        kept=tuple(sorted(after.kept)),
        dropped=change.dropped or made.dropped,
    )
    return _told(changed, change.facts)
