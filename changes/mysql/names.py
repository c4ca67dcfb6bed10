"""Says which tables a statement of MySQL names: in which database a name without one is.

A server reads such a name in its session's database. Few formats carry that: what most call the
message's database is that of a table in the statement, Canal's and Debezium's of a *new* name.
"""

from __future__ import annotations

import re

from changes.model import TableName
from changes.mysql.tokens import Cursor

_PAIR = re.compile(r"(`(?:[^`]|``)+`|[\w$]+)\s*\.\s*(`(?:[^`]|``)+`|[\w$]+)")

_MOST_PAIRS = 16
"""Names that are looked for in a statement that can't be read: more of them stand for any table.
A router remembers each name that it was asked for, and a statement may hold a million."""

ANY_TABLE = TableName("", "")
"""Stands for every table of every database."""


class Names:
    """The names of one message's statements. ``in_session``: its database is the session's."""

    def __init__(self, database: str, *, in_session: bool) -> None:
        self._header = database
        self._database = database
        self._in_session = in_session
        self._bare = False
        self._qualified: set[str] = set()

    def table(self, cursor: Cursor) -> TableName:
        """Take a table's name, with its database or in the session's."""
        first = cursor.name()
        if cursor.accept_sign("."):
            self._qualified.add(first.casefold())
            return TableName(first, cursor.name())
        self._bare |= not self._in_session
        return TableName(self._database, first)

    def use(self, database: str) -> None:
        """From here on the statements' session is in this database."""
        self._database, self._in_session = database, True

    @property
    def unplaced(self) -> bool:
        """Whether a name has no database, and the message none that it could be."""
        return self._bare and not self._header

    @property
    def doubtful(self) -> bool:
        """Whether a name has no database, and the message's may be that of another name."""
        return self._bare and self._header.casefold() in self._qualified


def named_in(sql: str, header: TableName) -> list[TableName]:
    """What a statement that can't be read may be about: the message's table, each that it names.

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
