"""A batch's rows into a table, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import structlog

from actors.contract.writes import StagedBatch
from changes.model.errors import LostRace, TargetRefused
from changes.model.model import FROM, FROM_PREFIX, OP, Mode
from databases.base.errors import Cause, DatabaseError
from sparkwriter.kit.marks_table.table_description import Row
from sparkwriter.sql.base.session import STAGE, LoadedColumn, Session, rows_of, target_name
from sparkwriter.sql.base.tables import DbColumn, DbTable
from sparkwriter.sql.base.values import Texts, plain
from sparkwriter.sql.rows import BatchShape, StageColumn, WritePlan

log: Any = structlog.get_logger(__name__)

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes one batch. ``table``: as the database describes it now."""

    session: Session
    seen: Row
    batch: StagedBatch
    table: DbTable
    or_null: bool = False

    def free_keys(self, file: pq.ParquetFile) -> bool:
        """Let the table have nulls in its key where the batch brings the first. Before the
        transaction. Whether it changed the table."""
        wanted = [key for key in self._nullable(file) if not self._column(key).nullable]
        if not wanted:
            return False
        target, session = self.seen.target, self.session
        if session.is_referenced(target):
            raise TargetRefused(
                f"column {', '.join(wanted)}, part of the key, is NULL in a row, and a foreign key "
                "of another table needs the primary key"
            )
        log.warning("primary_key_dropped", target=str(target), null_in=wanted)
        for statement in session.dialect.loosen(target, self.seen.table.keys, self.table):
            session.run(statement)
        return True

    def write(self, file: pq.ParquetFile) -> None:
        """Load the file, and have the table hold its rows."""
        texts = Texts(self.session.dialect, self.or_null)
        if self.batch.mode is Mode.APPEND:
            self._append(file, texts)
        else:
            self._upsert(file, texts)
        for column, count in texts.nulled.items():
            log.warning("values_nulled", target=str(self.seen.target), column=column, count=count)

    # --- a changelog

    def _append(self, file: pq.ParquetFile, texts: Texts) -> None:
        given = [(name, self._column(name)) for name in file.schema_arrow.names]
        table = target_name(self.session.dialect, self.seen.target)
        for part in file.iter_batches(ROWS_AT_ONCE):
            loaded = [
                _loaded(column.name, part.column(name), column, texts, key=False)
                for name, column in given
            ]
            self.session.load(table, loaded)

    def _column(self, name: str) -> DbColumn:
        column = self.table.find(name)
        if column is None:
            raise TargetRefused(f"there is no column {name} any more")
        return column

    # --- rows with a key

    def _upsert(self, file: pq.ParquetFile, texts: Texts) -> None:
        session, names = self.session, file.schema_arrow.names
        plan = WritePlan(session.dialect, self._shape(file), names)
        for statement in plan.make():
            session.run(statement)
        columns = [column for column in plan.columns() if column.source is not None]
        keys = {key.name for key in map(self._column, self.seen.table.keys)}
        live = 0
        for part in file.iter_batches(ROWS_AT_ONCE):
            session.load(STAGE, [_staged(part, column, texts, keys) for column in columns])
            live += pc.sum(pc.equal(part.column(OP), "U")).as_py()
        if self.table.deferrable:
            _run_all(session, session.dialect.checks_at_commit())
        _run_all(session, session.dialect.filled())
        _run_all(session, plan.complete())
        session.run("SAVEPOINT before_rows")
        try:
            self._apply(plan, live)
        except DatabaseError as error:
            if error.cause is not Cause.UNIQUE:
                raise
            session.run("ROLLBACK TO SAVEPOINT before_rows")
            self._may_replace(plan, error)
            _run_all(session, plan.replace())

    def _apply(self, plan: WritePlan, live: int) -> None:
        """Each row that stays is changed where it is. ``live``: how many rows are not deletes."""
        session, target = self.session, self.seen.target
        if self.batch.has_deletes:
            session.run(plan.delete())
        if self.table.one_unique and session.dialect.or_update([]):
            _run_all(session, plan.merge())
            # From the first statement on nobody can add a key; before that, somebody may have.
            if not session.has_one_unique(target):
                raise LostRace("somebody has added a unique key meanwhile")
            return
        update = plan.update()
        if update is None or session.run(update) < live:
            _run_all(session, plan.insert())

    def _may_replace(self, plan: WritePlan, error: DatabaseError) -> None:
        """Whether rows may go and come back, so that unique values can change places."""
        staged = {column.column.name for column in plan.columns() if column.column is not None}
        left = [c.name for c in self.table.columns if c.name not in staged and not c.generated]
        if left:
            why = f"the column {left[0]}, which the batch does not bring, would lose its value"
        elif self.session.is_referenced(self.seen.target):
            why = "a foreign key of another table points to it"
        else:
            return
        raise TargetRefused(
            f"{error}. Where two rows exchanged unique values they would have to be deleted and "
            f"inserted again, and {why}: make the unique key a plain one"
        ) from error

    def _shape(self, file: pq.ParquetFile) -> BatchShape:
        names = {name.lower() for name in file.schema_arrow.names}
        fields = [self._column(field.name) for field in self.seen.table.fields]
        partial = {name.lower() for name in self.batch.partial}
        given = tuple(column for column in fields if column.name.lower() in names)
        return BatchShape(
            target_name(self.session.dialect, self.seen.target),
            rows_of(self.session.dialect, self.seen.target, self.table),
            tuple(map(self._column, self.seen.table.keys)),
            given,
            tuple(column for column in fields if column.name.lower() not in names),
            tuple(column.name for column in given if column.name.lower() in partial),
            FROM.lower() in names,
            frozenset(self._column(key).name for key in self._nullable(file)),
        )

    def _nullable(self, file: pq.ParquetFile) -> list[str]:
        """The key's columns that are null in a row of the file."""
        if self.batch.mode is Mode.APPEND:
            return []
        names = {name.lower(): name for name in file.schema_arrow.names}
        moved = FROM in file.schema_arrow.names
        found = []
        for key in self.seen.table.keys:
            of_file = names[key.lower()]
            nulls = file.read([of_file]).column(0).null_count
            if moved:
                old = file.read([FROM, FROM_PREFIX + of_file])
                old = old.filter(pc.is_valid(old.column(FROM)))
                nulls += old.column(FROM_PREFIX + of_file).null_count
            if nulls:
                found.append(key)
        return found


def _run_all(session: Session, statements: Iterable[str]) -> None:
    for statement in statements:
        session.run(statement)


def _staged(
    part: pa.RecordBatch, column: StageColumn, texts: Texts, keys: set[str]
) -> LoadedColumn:
    """A column of the stage. Without one of the table's behind it, it is a flag: 0 or 1."""
    assert column.source is not None
    values = part.column(column.source)
    if column.column is not None:
        key = column.column.name in keys
        return _loaded(column.name, values, column.column, texts, key)
    return LoadedColumn(column.name, _flags(column.source, values))


def _flags(source: str, values: pa.Array) -> pa.Array:
    if source == OP:
        held = pc.not_equal(values, "U")
    elif source == FROM:
        held = pc.is_valid(values)
    else:
        held = pc.fill_null(values, False)
    return pc.cast(pc.cast(held, pa.int8()), pa.string())


def _loaded(name: str, values: pa.Array, into: DbColumn, texts: Texts, key: bool) -> LoadedColumn:
    type_ = plain(values).type
    return LoadedColumn(
        name, texts.of(into.name, values, into, key), binary=pa.types.is_binary(type_)
    )
