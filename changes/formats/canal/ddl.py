"""Reads statements as Canal sends them; what Canal itself could not parse is not followed."""

from __future__ import annotations

from dataclasses import replace

from changes.model import AddColumn, Ddl, DropTable, RenameTable, TableName, TakeName, TruncateTable
from changes.mysql.ddl import read_ddl
from changes.mysql.statement import not_understood
from changes.mysql.tokens import NotUnderstood

_HARMLESS = (AddColumn, TruncateTable, DropTable, RenameTable, TakeName)
"""Steps that Canal survives without parsing them. After an added column its rows have more values
than it knows names: it reads the columns again, or stops. The others don't change the columns."""


def read_statement(
    sql: str, header: TableName, *, session: bool = False, known: bool
) -> tuple[Ddl, ...]:
    """Read a statement; ``known``: whether Canal's own parser read it, which then names a database.

    Where it did not, Canal keeps sending values under the former names and types, and the rows
    don't show it: so a statement that changes these counts as not understood.
    """
    found = read_ddl(sql, header, session=session)
    return found if known else tuple(map(_doubted, found))


def _doubted(ddl: Ddl) -> Ddl:
    safe = not ddl.redefined and all(isinstance(step, _HARMLESS) for step in ddl.steps)
    if safe or ddl.refused or ddl.unread:
        return ddl
    why = NotUnderstood("Canal's own parser did not read it: rows may come under former columns")
    return replace(ddl, steps=(), lenient=(), redefined=(), unread=not_understood(ddl.sql, why))
