"""Operations that a transaction carries out: with PostgreSQL all, else those of rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from changes.model import TargetName
from sparkwriter.jdbc.dialect import rows_of, target_name
from sparkwriter.jdbc.session import Session, make_once
from sparkwriter.jdbc.tables import DbTable, check_new
from sparkwriter.kit.changelog import rows_above
from sparkwriter.ledgered.operations import (
    Drop,
    Make,
    Operation,
    Remake,
    Rename,
    TakeAbove,
    TakeOver,
)
from sparkwriter.sql.schema import lake_name


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
    """The namespaces of tables that are made or moved. Raises DbError."""
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
