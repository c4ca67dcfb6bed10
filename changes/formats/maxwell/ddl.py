"""Reads Maxwell's messages about statements: one for each table or database of a statement."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from changes.formats.engine.layout import Refused
from changes.formats.engine.untyped import as_text_columns
from changes.model.model import Ddl, DdlStep, DropTable, NameStep, RenameTable, TableName, TakeName
from changes.sql.mysql.ddl import read_ddl

TYPES = frozenset(
    (
        "table-create",
        "table-alter",
        "table-drop",
        "database-create",
        "database-alter",
        "database-drop",
    )
)


class _Named(Struct, gc=False):
    database: str | None = None
    table: str | None = None


class _Statement(Struct, gc=False):
    type: str
    database: str | None = None
    table: str | None = None
    sql: str | None = None
    old: _Named | None = None
    new: _Named | None = msgspec.field(default=None, name="def")
    ts: Any = None

    @property
    def header(self) -> TableName:
        return TableName(self.database or "", self.table or "")


_statement = msgspec.json.Decoder(_Statement)


def read_statement(value: bytes) -> tuple[Ddl, ...]:
    """Read a message of a statement; raises Refused.

    A statement on several tables comes once for each, whole: only the part about the message's own
    table is used. A new name is taken from the message's ``old`` and ``def``.
    """
    message = _read(value)
    sql = message.sql or ""
    if message.type in ("database-create", "database-alter"):
        return ()
    if message.type == "database-drop":
        all_tables = TableName(message.database or "", "")
        return (Ddl(all_tables, sql, refused=f"DROP DATABASE {message.database}"),)
    if message.type == "table-drop":
        return (Ddl(message.header, sql, (DropTable(),)),)
    return tuple(_of_table(message, sql))


def statement_of(value: bytes) -> tuple[TableName, str]:
    """The table that a message names, and the text of its statement; raises Refused."""
    message = _read(value)
    return message.header, message.sql or message.type


def _read(value: bytes) -> _Statement:
    try:
        return _statement.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a Maxwell message: {error}") from error


def _of_table(message: _Statement, sql: str) -> list[Ddl]:
    """The part of a CREATE or ALTER about its own table, with the types that rows have."""
    before, after = _name(message.old, message.header), _name(message.new, message.header)
    if message.type == "table-create":
        before = after
    if not sql:
        if message.type == "table-create":
            return [Ddl(after, sql)]
        return [Ddl(before, sql, refused="a changed table without the statement that changed it")]
    # Whatever the session's database is: an unqualified name is this table's, or not of interest.
    parsed = [as_text_columns(ddl) for ddl in read_ddl(sql, before, session=True)]
    mine = [ddl for ddl in parsed if _same(ddl.table, before)]
    refused = next((ddl.refused for ddl in mine if ddl.refused), None)
    renames = all(isinstance(step, NameStep) for ddl in parsed for step in ddl.steps)
    if parsed and not mine and (before == after or not renames):
        # Passed over in silence, a change would be lost.
        refused = f"a statement about {parsed[0].table} in a message about {before}"
    if refused is not None:
        lenient = mine[0].lenient if len(mine) == 1 and before == after else ()
        redefined = mine[0].redefined if lenient else ()
        return [Ddl(before, sql, refused=refused, lenient=lenient, redefined=redefined)]
    unread = next((ddl.unread for ddl in mine if ddl.unread), None)
    if unread is not None:
        names = dict.fromkeys((before, after))
        return [Ddl(name, sql, unread=unread) for name in names]
    steps: list[DdlStep] = [
        step for ddl in mine for step in ddl.steps if not isinstance(step, NameStep)
    ]
    redefined = tuple(each for ddl in mine for each in ddl.redefined)
    if before == after:
        return [Ddl(before, sql, tuple(steps), redefined=redefined)]
    moved = Ddl(before, sql, (*steps, RenameTable(after)), redefined=redefined)
    return [moved, Ddl(after, sql, (TakeName(before),))]


def _name(named: _Named | None, header: TableName) -> TableName:
    if named is None:
        return header
    return TableName(named.database or header.database, named.table or header.table)


def _same(one: TableName, other: TableName) -> bool:
    """With lower_case_table_names the table is in lower case, the statement as it was typed."""
    return one == other or str(one).lower() == str(other).lower()
