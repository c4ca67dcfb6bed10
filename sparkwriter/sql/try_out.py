"""What ``check-config --connect`` finds out about a database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from databases.base.errors import DatabaseError
from databases.base.session import transaction
from sparkwriter.sql.base.session import Session, rows_of, target_name
from sparkwriter.sql.base.tables import DbTable, adopted, problems
from sparkwriter.sql.identity import kept_elsewhere, unseen_triggers
from sparkwriter.sql.ledger import LEDGER, kept_by, other_ledgers

TRIED = "__binlogd_tried"


def try_out(
    connect: Callable[[], Session], schema: str, targets: Iterable[TargetName]
) -> Iterator[str]:
    """One line for each problem. Leaves nothing."""
    try:
        session = connect()
    except DatabaseError as error:
        yield str(error)
        return
    try:
        yield from session.remarks()
        yield from _ledger(session, schema)
        named: dict[str, TargetName] = {}
        for target in targets:
            first = named.setdefault(str(target).lower(), target)
            if session.folds_names and first != target:
                yield f"{target}: its table is that of {first}: lower_case_table_names is set"
            yield from (f"{target}: {line}" for line in _target(session, target))
            yield from (f"{target}: {line}" for line in _shared(session, schema, target))
    except DatabaseError as error:
        yield str(error)
    finally:
        session.close()


def _ledger(session: Session, schema: str) -> Iterator[str]:
    """Whether the ledger is there, or could be made."""
    quote = session.dialect.quote
    if session.has_schema(schema):
        if session.describe(TargetName("", schema, LEDGER)) is None:
            yield from _may_make(session, schema)
        return
    try:
        session.run(f"CREATE SCHEMA {quote(schema)}")
    except DatabaseError as error:
        yield f"ledger_schema: can't make {schema}: {error}"
        return
    yield from _may_make(session, schema)
    session.run(f"DROP SCHEMA {quote(schema)}")


def _may_make(session: Session, schema: str) -> Iterator[str]:
    name = f"{session.dialect.quote(schema)}.{session.dialect.quote(TRIED)}"
    try:
        session.run(f"CREATE TABLE {name} (n int)")
        session.run(f"DROP TABLE {name}")
    except DatabaseError as error:
        yield f"ledger_schema: can't make tables in {schema}: {error}"


def _shared(session: Session, schema: str, target: TargetName) -> Iterator[str]:
    """Whether another ledger of this database had the table first. Ours may not be there yet."""
    if (table := session.describe(target)) is None:
        return
    own = kept_by(session, [schema], target)
    first = min((float(version) for _, version, _ in own), default=math.inf)
    others = kept_by(session, other_ledgers(session, schema), target)
    yield from kept_elsewhere(session, others, table, first)


def _target(session: Session, target: TargetName) -> Iterator[str]:
    """A table that is there is looked at, and written without a row."""
    try:
        name = target_name(session.dialect, target)
        table = session.describe(target)
        if table is None:
            return
        made = adopted(table)
        yield from problems(table, made, target)
        yield from unseen_triggers(session, target)
        yield from _unfit(table)
        if not made.keys and made.mode.value == "upsert":
            yield "has no primary key: give it the source's"
    except TargetRefused as error:
        yield str(error)
        return
    if table.fires:
        yield f"its triggers run with each write, and may make it differ: {', '.join(table.fires)}"
    if made.fields:
        column = session.dialect.quote(made.fields[0].name)
        rows = rows_of(session.dialect, target, table)
        try:
            with transaction(session):
                session.run(f"DELETE FROM {rows} WHERE 1 = 0")
                session.run(f"UPDATE {rows} SET {column} = {column} WHERE 1 = 0")
                session.run(
                    f"INSERT INTO {name} ({column}) SELECT {column} FROM {rows} WHERE 1 = 0"
                )
        except DatabaseError as error:
            yield f"can't be written: {error}"


def _unfit(table: DbTable) -> Iterator[str]:
    """Columns that keep nothing exactly. Harmless where the source has no such column."""
    for column in table.columns:
        if column.lake is None and not column.generated:
            yield f"column {column.name} is {column.type}: {column.refused}"
