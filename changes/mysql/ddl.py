"""Reads MySQL's DDL: which tables a statement names, and what it does to their rows.

What can't be read with certainty is refused by name, never passed over: a statement that is
misread here is a table that differs from its source from then on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from changes.model import Ddl, TableName
from changes.mysql.names import Names
from changes.mysql.statement import not_understood, read_statements
from changes.mysql.tokens import NotUnderstood

_OF_MARIADB = re.compile(r"/\*M!.*?\*/", re.DOTALL)
"""MariaDB runs it, or marks it in its log as not run; to MySQL it is a comment like any other."""

_DOUBTFUL = (
    "a statement with names that have no database, while the message's database is that of another "
    "name in it, so the session's is not told,"
)


def read_ddl(sql: str, header: TableName, *, session: bool = False) -> tuple[Ddl, ...]:
    """Read the text of one or several statements, with an entry for each table they name.

    ``header`` is the table that the message names; a refused statement without a table gets that
    one. Its database is that of unqualified names where it is the session's (``session``), or where
    no name in the text has it. An entry with an empty table name is about the whole database, one
    with an empty database about tables of that name in any.
    """
    found = _placed(sql, header, session)
    if _OF_MARIADB.search(sql) is None:
        return found
    mysqls = _OF_MARIADB.sub(" ", sql)
    if not mysqls.strip(" ;\n") or _alike(found) == _alike(_placed(mysqls, header, session)):
        return found
    why = NotUnderstood("what stands in /*M! */ a MySQL server does not run")
    about = dict.fromkeys(ddl.table for ddl in found) or [header]
    return tuple(Ddl(table, sql, unread=not_understood(sql, why)) for table in about)


def _alike(found: Sequence[Ddl]) -> list[Ddl]:
    """What statements do, without their texts."""
    return [replace(ddl, sql="", unread=ddl.unread and "") for ddl in found]


def _placed(sql: str, header: TableName, session: bool) -> tuple[Ddl, ...]:
    """The same for one kind of server."""
    names = Names(header.database, in_session=session and bool(header.database))
    found = read_statements(sql, header, names)
    if names.unplaced:
        why = NotUnderstood("its names have no database, and the message tells none")
        return tuple(ddl if _changes_nothing(ddl) else _unplaced(ddl, why) for ddl in found)
    if names.doubtful:
        found = read_statements(sql, header, Names("", in_session=True))
        return tuple(ddl if _changes_nothing(ddl) else _doubtful(ddl) for ddl in found)
    return tuple(found)


def _changes_nothing(ddl: Ddl) -> bool:
    return not (ddl.steps or ddl.refused or ddl.unread or ddl.redefined)


def _unplaced(ddl: Ddl, why: NotUnderstood) -> Ddl:
    unread = None if ddl.refused else ddl.unread or not_understood(ddl.sql, why)
    return replace(ddl, steps=(), lenient=(), redefined=(), unread=unread)


def _doubtful(ddl: Ddl) -> Ddl:
    return Ddl(ddl.table, ddl.sql, refused=ddl.refused or _DOUBTFUL)
