"""Resolves the table names in a MySQL statement: the database of an unqualified name.

A server uses its session's database. Few formats carry that: in most messages the database is that
of a table in the statement, in Canal's and Debezium's that of a *new* name.
"""

from __future__ import annotations

import re

from changes.model.model import TableName
from changes.sql.mysql.tokens import NAME, SPACE, Cursor, split

_BARE = rf"`(?:[^`]|``)+`|[{NAME}]+"
_PAIR = re.compile(rf"({_BARE})[{SPACE}]*\.[{SPACE}]*({_BARE})")

_MOST_PAIRS = 16
"""Names that are searched in an unreadable statement; with more it counts as about any table. The
router remembers each name that it has looked up, and a statement may hold a million."""

ANY_TABLE = TableName("", "")
"""Stands for every table of every database."""


class StatementNames:
    """The names of one message's statements. ``in_session``: its database is the session's."""

    def __init__(self, database: str, *, in_session: bool) -> None:
        self._header = database
        self._database = database
        self._in_session = in_session
        self._bare = False
        self._qualified: set[str] = set()

    def table(self, cursor: Cursor) -> TableName:
        """Read a table's name, with its database or in the session's; ``.t`` is the latter."""
        bare = cursor.accept_sign(".")
        first = cursor.name()
        if not bare and cursor.accept_sign("."):
            self._qualified.add(first.casefold())
            return TableName(first, cursor.name())
        self._bare |= not self._in_session
        return TableName(self._database, first)

    def use(self, database: str) -> None:
        """Change the session's database for the following statements."""
        self._database, self._in_session = database, True

    @property
    def unplaced(self) -> bool:
        """Whether a name has no database, and neither has the message."""
        return self._bare and not self._header

    @property
    def doubtful(self) -> bool:
        """Whether a name has no database, and the message's may be another name's."""
        return self._bare and self._header.casefold() in self._qualified


def named_in(sql: str, header: TableName) -> list[TableName]:
    """The tables that an unreadable statement may be about: the message's, and those it names.

    Where the header's database is that of a name in the statement, another name may be in any.
    """
    found = dict.fromkeys([header])
    for pair in _PAIR.finditer(sql):
        name = TableName(*map(_bare, pair.groups()))
        found[name] = None
        if name.database.casefold() == header.database.casefold():
            found[ANY_TABLE] = None
        if len(found) > _MOST_PAIRS:
            found[ANY_TABLE] = None
            break
    return list(found)


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


# Reads TiDB's statements that bring rows back: of a dropped table, or of an earlier moment.


def restored(
    cursor: Cursor, names: StatementNames, header: TableName
) -> tuple[str, list[TableName]] | None:
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


def _new_name(cursor: Cursor, names: StatementNames) -> list[TableName]:
    if not cursor.accept("TO") or _moment(cursor):
        return []
    return [names.table(cursor)]


def _moment(cursor: Cursor) -> bool:
    return cursor.is_words("TIMESTAMP") or cursor.is_words("TSO")
