"""Operations that a transaction carries out: with PostgreSQL all, else those of rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from changes.model.model import TargetName
from changes.sql.spark.schema import lake_name
from databases.base.errors import DatabaseError
from databases.base.session import transaction
from sparkwriter.kit.marks_table.table_description import (
    Drop,
    Make,
    Operation,
    Remake,
    Rename,
    TakeAbove,
    TakeOver,
)
from sparkwriter.kit.shape import rows_above
from sparkwriter.sql.base.session import Session, make_once, rows_of, target_name
from sparkwriter.sql.base.tables import DbTable, check_new
from sparkwriter.sql.ledger import Ledger
from sparkwriter.sql.mysql.words import stamp_of
from sparkwriter.sql.mysql_ddl_redo import RedoStep, may_run


def carry_out(
    session: Session, operation: Operation, table_of: Callable[[TargetName], DbTable]
) -> None:
    """Run the operation's statements. Not for rows of a batch."""
    for statement in _statements(session, operation, table_of):
        session.run(statement)


def _statements(
    session: Session, operation: Operation, table_of: Callable[[TargetName], DbTable]
) -> Iterator[str]:
    dialect = session.dialect
    match operation:
        case Make(target, made):
            yield dialect.make(target, made, "")
        case Remake(target, emptied=emptied):
            if emptied:
                yield empty(session, target, table_of(target))
            if not operation.is_same:
                table = table_of(target)
                check_new(table, operation.before, operation.after)
                yield from dialect.remake(operation, table, "")
        case Rename(old, new):
            yield from dialect.rename(old, new)
        case Drop(target):
            yield f"DROP TABLE {target_name(dialect, target)}"
        case TakeOver(new, old):
            yield from session.take_over(old, new)
        case TakeAbove(target, before, after):
            away = rows_above(
                before.offsets, after.offsets, lambda name: dialect.quote(lake_name(name))
            )
            if away is not None:
                yield f"DELETE FROM {rows_of(dialect, target, table_of(target))} WHERE {away}"


def make_schemas(session: Session, operations: Sequence[Operation]) -> None:
    """The namespaces of tables that are made or moved. Raises DatabaseError."""
    for one in operations:
        name = None
        if isinstance(one, Make):
            name = one.target.namespace
        elif isinstance(one, Rename):
            name = one.new.namespace
        if name is not None and not session.has_schema(name):
            make_once(session, f"CREATE SCHEMA IF NOT EXISTS {session.dialect.quote(name)}")


def empty(session: Session, target: TargetName, table: DbTable) -> str:
    """The statement that takes all rows away, inside a transaction."""
    name = rows_of(session.dialect, target, table)
    if session.transactional_ddl and not session.is_referenced(target):
        return f"TRUNCATE TABLE {name}"
    return f"DELETE FROM {name}"


# Carries a stamped step to its end, of whichever writer. See ``sparkwriter.sql.mysql_ddl_redo``.


class StampedSteps:
    """The steps of one connection."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session, self._ledger = session, ledger

    def finish(self, text: str) -> None:
        """Do what is left of the step. Nothing where another has done it meanwhile.

        Raises DatabaseError. Where nothing but stamps was made before a statement failed, on a
        server that answers, the step is given up: nothing was changed, and the caller may ask
        again.
        """
        step = RedoStep.parse(text)
        with self._session.exclusive(f"binlogd {step.token}"):
            if not self._is_open(step, text):
                return
            self._run(step, text)
            with transaction(self._session):
                for target in step.targets:
                    self._ledger.look(target, lock=True)
                for target in step.emptied:
                    self._session.run(f"DELETE FROM {target_name(self._session.dialect, target)}")
                for entry in step.entries:
                    self._ledger.note(entry)
                for target in step.others:
                    self._ledger.clear_step(target, text)

    def _is_open(self, step: RedoStep, text: str) -> bool:
        rows = (self._ledger.look(target) for target in step.targets)
        return any(row is not None and row.step == text for row in rows)

    def _run(self, step: RedoStep, text: str) -> None:
        begin = step.begin_at(self._stamp)
        for at, one in enumerate(step.statements[begin:], begin):
            if not may_run(one.needs, self._stamp(one.table)):
                continue
            try:
                self._session.run(one.sql)
            except DatabaseError as error:
                # Stamps alone change nothing that anybody sees: they may stay.
                stamped = all(earlier.only_stamps for earlier in step.statements[:at])
                if stamped and not error.ends_session:
                    self._give_up(step, text)
                raise

    def _give_up(self, step: RedoStep, text: str) -> None:
        with transaction(self._session):
            for target in step.targets:
                self._ledger.clear_step(target, text)

    def _stamp(self, target: TargetName) -> str | None:
        table = self._session.describe(target)
        return None if table is None else stamp_of(table.comment)
