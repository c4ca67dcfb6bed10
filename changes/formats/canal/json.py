"""Decodes Canal's JSON ("flat") messages: a row event of a table, or a statement each.

Other tools write the same shape with typed values or fewer members; those are read, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.canal.rows import CanalRows
from changes.formats.engine import json_text as glance
from changes.formats.engine.format import Confidence, DeclaredTypes, Packed
from changes.formats.engine.json_text import milliseconds
from changes.formats.engine.repeated_renames import RepeatedRenames
from changes.formats.engine.row_format import DDL, JsonFormat
from changes.model.model import (
    AddColumn,
    BadMessage,
    Ddl,
    DropTable,
    FormatOptions,
    Head,
    Kind,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
from changes.model.places import Transactions, transactions_among
from changes.sql.mysql.ddl import read_ddl
from changes.sql.mysql.statement import not_understood
from changes.sql.mysql.tokens import NotUnderstood

# Reads statements as Canal sends them; what Canal itself could not parse is not followed.

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


_KINDS = dict.fromkeys(("INSERT", "UPDATE", "DELETE", "INIT"), Kind.ROWS)
_KINDS |= dict.fromkeys(
    ("CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"), Kind.DDL
)
_KINDS |= dict.fromkeys(
    ("QUERY", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT", "HEARTBEAT", "TIDB_WATERMARK"),
    Kind.NOTHING,
)
_KINDS |= dict.fromkeys(("TRANSACTIONBEGIN", "TRANSACTIONEND"), Kind.NOTHING)

POSITIONS = "tidb-commit-ts"
"""The positions that TiCDC's messages carry."""

_OWN = frozenset(("isDdl", "mysqlType", "sqlType", "pkNames", "_tidb", "opType", "updateBefore"))
"""Members that no other format has beside a type such as INSERT."""


class _First(Struct, gc=False):
    """In the order in which Canal writes them, which msgspec reads fastest."""

    database: str | None = None
    isDdl: bool | None = False
    table: str | None = None
    type: str = ""


class _Statement(Struct, gc=False):
    database: str | None = None
    table: str | None = None
    sql: str | None = None
    type: str | None = None
    es: Any = None
    """When the source executed it. ``id`` and ``ts`` differ each time it is sent."""

    @property
    def header(self) -> TableName:
        return TableName(self.database or "", self.table or "")


class _Times(Struct, gc=False):
    es: Raw = Raw(b"")
    ts: Raw = Raw(b"")


class _Transaction(Struct, gc=False):
    gtid: str | None = None
    """The set of all transactions up to it and with it, where Canal reads by GTIDs."""


_statement = msgspec.json.Decoder(_Statement).decode
_times = msgspec.json.Decoder(_Times).decode
_transaction = msgspec.json.Decoder(_Transaction).decode


class CanalJson(JsonFormat):
    """The ``Format`` of Canal JSON; raises ValueError where an option can't be met.

    The options ``default_database`` and ``default_table`` name the table of messages without one.
    """

    name: str = "canal-json"
    positions: str | None = POSITIONS

    column_types = DeclaredTypes.SOURCE
    prints_as_database = True
    maker = "Canal"
    first = _First

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._repeated = RepeatedRenames()

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        found = glance.members(record.value)
        if glance.word(found, "type") not in _KINDS:
            return Confidence.NO
        if found.keys() & _OWN:
            return Confidence.CERTAIN
        listed = glance.is_list(found, "data") or glance.word(found, "sql")
        return Confidence.LIKELY if listed else Confidence.OPEN

    def judge(self, first: _First) -> Head:
        return DDL if first.isDdl else self.head_of(first.type, first.database, first.table, _KINDS)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            statement = _statement(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadMessage(f"not a Canal message: {error}") from error
        known = bool(statement.database) or statement.type != "QUERY"
        return read_statement(statement.sql or "", statement.header, known=known)

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._repeated.turn_to(partition, first, next_offset)

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        statement = _statement(value)
        # Some writers of this shape have no time: then the same words may be another statement.
        return (
            self._repeated.why_not(msgspec.json.encode(statement), found) if statement.es else None
        )

    def moment(self, value: bytes) -> int | None:
        """When the change happened (``es``), else when its message was written (``ts``)."""
        times = _times(value)
        return milliseconds(times.es) or milliseconds(times.ts)

    def header(self, value: bytes) -> tuple[TableName, str]:
        statement = _statement(value)
        return statement.header, statement.sql or ""

    def source_ms(self, value: bytes | None) -> int | None:
        """``es``; ``ts`` is the writer's clock."""
        try:
            return None if value is None else milliseconds(_times(value).es)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        try:
            return None if value is None else transactions_among((_transaction(value).gtid,))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def rows(self, *, placed: bool = False) -> CanalRows:
        return CanalRows(placed)
