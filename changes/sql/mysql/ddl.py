"""Reads MySQL's DDL: which tables a statement names, and what it does to their rows.

What can't be read with certainty is refused by name, never passed over: a statement that is
misread here is a table that differs from its source from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from changes.model.model import Ddl, TableName
from changes.sql.mysql.names import StatementNames
from changes.sql.mysql.statement import not_understood, read_statements
from changes.sql.mysql.tokens import NotUnderstood, tokenize

_OF_MARIADB = re.compile(r"/\*M!.*?\*/", re.DOTALL)
"""MariaDB runs it, or marks it in its log as not run; to MySQL it is a comment like any other."""

_DOUBTFUL = (
    "a statement with names that have no database, while the message's database is that of another "
    "name in it, so the session's is unknown,"
)


def read_ddl(sql: str, header: TableName, *, session: bool = False) -> tuple[Ddl, ...]:
    """Read the text of one or several statements, with an entry for each table they name.

    ``header`` is the table that the message names; a refused statement without a table gets that
    one. Its database is that of unqualified names where it is the session's (``session``), or where
    no name in the text has it. An entry with an empty table name is about the whole database, one
    with an empty database about tables of that name in any.
    """
    found = _placed(sql, header, session)
    for why, other in _other_readings(sql, header, session):
        if _alike(other) != _alike(found):
            return _of_two_readings(sql, header, (*found, *other), why)
    return found


def _of_two_readings(
    sql: str, header: TableName, found: Sequence[Ddl], why: str
) -> tuple[Ddl, ...]:
    """Refused for each table that one of the readings refuses, not understood for the others."""
    about: dict[TableName, str | None] = {}
    for ddl in found:
        about[ddl.table] = about.get(ddl.table) or ddl.refused
    unread = not_understood(sql, NotUnderstood(why))
    return tuple(
        Ddl(table, sql, refused=refused, unread=None if refused else unread)
        for table, refused in (about or {header: None}).items()
    )


def _other_readings(
    sql: str, header: TableName, session: bool
) -> Iterator[tuple[str, tuple[Ddl, ...]]]:
    """What the text says to another kind of server, or in a session of another ``sql_mode``."""
    mysqls = _OF_MARIADB.sub(" ", sql)
    if mysqls != sql and mysqls.strip(" ;\n"):
        yield "what stands in /*M! */ a MySQL server does not run", _placed(mysqls, header, session)
    if "\\" not in sql:
        return
    try:
        tokens = tokenize(sql, escapes=False)
    except NotUnderstood:
        return
    if any(token.kind == "sign" and token.text == "\\" for token in tokens):
        return  # 'it\'s': no session without escapes can have run it
    why = "whether a backslash in its texts stands for itself depends on sql_mode"
    yield why, _placed(sql, header, session, escapes=False)


def _alike(found: Sequence[Ddl]) -> list[Ddl]:
    """What statements do, without their texts."""
    return [replace(ddl, sql="", unread=ddl.unread and "") for ddl in found]


def _placed(sql: str, header: TableName, session: bool, *, escapes: bool = True) -> tuple[Ddl, ...]:
    """The same for one kind of server. ``escapes``: a backslash in its texts escapes."""
    names = StatementNames(header.database, in_session=session and bool(header.database))
    found = read_statements(sql, header, names, escapes=escapes)
    if names.unplaced:
        why = NotUnderstood("its names have no database, and the message names none")
        return tuple(ddl if _changes_nothing(ddl) else _unplaced(ddl, why) for ddl in found)
    if names.doubtful:
        found = read_statements(sql, header, StatementNames("", in_session=True), escapes=escapes)
        return tuple(ddl if _changes_nothing(ddl) else _doubtful(ddl) for ddl in found)
    return tuple(found)


def _changes_nothing(ddl: Ddl) -> bool:
    return not (ddl.steps or ddl.refused or ddl.unread or ddl.redefined)


def _unplaced(ddl: Ddl, why: NotUnderstood) -> Ddl:
    unread = None if ddl.refused else ddl.unread or not_understood(ddl.sql, why)
    return replace(ddl, steps=(), lenient=(), redefined=(), unread=unread)


def _doubtful(ddl: Ddl) -> Ddl:
    return Ddl(ddl.table, ddl.sql, refused=ddl.refused or _DOUBTFUL)
