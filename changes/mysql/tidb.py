"""Reads TiDB's statements that bring rows back: of a dropped table, or of an earlier moment.

No event tells these rows, so each table that one may be about is refused by name.
"""

from __future__ import annotations

from changes.model import TableName
from changes.mysql.names import ANY_TABLE, Names
from changes.mysql.tokens import Cursor, split


def restored(cursor: Cursor, names: Names, header: TableName) -> tuple[str, list[TableName]] | None:
    """The statement's name and its tables; None for any other statement. ``header``: the table of
    the message, which an old table's name may stand for. Raises NotUnderstood."""
    if cursor.accept("RECOVER", "TABLE"):
        by_job = cursor.accept("BY", "JOB")
        if by_job:
            cursor.next()
        tables = [header] if by_job else [names.table(cursor)]
        return "RECOVER TABLE", [*tables, *_new_name(cursor, names)]
    if not cursor.accept("FLASHBACK"):
        return None
    if cursor.accept("CLUSTER"):
        return "FLASHBACK CLUSTER", [ANY_TABLE]
    if cursor.accept("DATABASE") or cursor.accept("SCHEMA"):
        databases = [cursor.name()]
        if cursor.accept("TO") and not _moment(cursor):
            databases.append(cursor.name())
        return "FLASHBACK DATABASE", [TableName(database, "") for database in databases]
    if not cursor.accept("TABLE"):
        return None
    tables = []
    for part in split(cursor.rest(), ","):
        one = Cursor(part)
        tables += [names.table(one), *_new_name(one, names)]
    return "FLASHBACK TABLE", tables


def _new_name(cursor: Cursor, names: Names) -> list[TableName]:
    if not cursor.accept("TO") or _moment(cursor):
        return []
    return [names.table(cursor)]


def _moment(cursor: Cursor) -> bool:
    return cursor.is_words("TIMESTAMP") or cursor.is_words("TSO")
