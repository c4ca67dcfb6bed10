"""Statements as Canal sends them: what its own grammar lacks, its rows don't show either."""

from __future__ import annotations

from dataclasses import replace

from changes.model import AddColumn, Ddl, DropTable, RenameTable, TableName, TakeName, TruncateTable
from changes.mysql.ddl import read_ddl
from changes.mysql.statement import not_understood
from changes.mysql.tokens import NotUnderstood

_HARMLESS = (AddColumn, TruncateTable, DropTable, RenameTable, TakeName)
"""Behind an added column rows have more values than Canal has names for: it reads the columns anew,
or stops. The others leave the columns as they are."""


def read_statement(
    sql: str, header: TableName, *, session: bool = False, known: bool
) -> tuple[Ddl, ...]:
    """Read a statement; ``known``: whether Canal's own parser did, which then names a database.

    Where it did not, Canal goes on to put values under the names and types of before, and nothing
    in the rows tells: what changes these is not understood here either.
    """
    found = read_ddl(sql, header, session=session)
    return found if known else tuple(map(_doubted, found))


def _doubted(ddl: Ddl) -> Ddl:
    safe = not ddl.redefined and all(isinstance(step, _HARMLESS) for step in ddl.steps)
    if safe or ddl.refused or ddl.unread:
        return ddl
    why = NotUnderstood("Canal's own parser did not read it: rows may come under former columns")
    return replace(ddl, steps=(), lenient=(), redefined=(), unread=not_understood(ddl.sql, why))
