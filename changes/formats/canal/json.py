"""Decodes Canal's JSON ("flat") messages: a row event of a table, or a statement each.

Other tools write the same shape with typed values or fewer members; those are read, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.canal.explain import explain_rows, moment
from changes.formats.canal.rows import CanalTableDecoder
from changes.formats.engine import json_text as glance
from changes.formats.engine.format import Confidence, Format, Packed, RowChange, Statement
from changes.formats.engine.json_text import milliseconds, why_not
from changes.formats.engine.layout import Refused
from changes.formats.engine.repeated_renames import RepeatedRenames
from changes.model.model import (
    AddColumn,
    BadMessage,
    ColumnTypes,
    Ddl,
    DropTable,
    FormatOptions,
    Head,
    Kind,
    Mode,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
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

_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table; making one costs half a microsecond."""

_DDL = Head(Kind.DDL, None)
_NOTHING = Head(Kind.NOTHING, None)


class _Head(Struct, gc=False):
    """In the order in which Canal writes them, which msgspec reads fastest."""

    database: str | None = None
    isDdl: bool | None = False
    table: str | None = None
    type: str = ""

    @property
    def key(self) -> tuple[str, bool | None, str | None, str | None]:
        """A message of a statement."""
        return (self.type, self.isDdl, self.database, self.table)


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


_statement = msgspec.json.Decoder(_Statement).decode
_times = msgspec.json.Decoder(_Times).decode


class CanalJson(Format):
    """The ``Format`` of Canal JSON; raises ValueError where an option can't be met.

    The options ``default_database`` and ``default_table`` name the table of messages without one.
    """

    name: str = "canal-json"
    positions: str | None = POSITIONS

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._database = options.extra.get("default_database")
        self._table = options.extra.get("default_table")
        self._head = msgspec.json.Decoder(_Head).decode
        self._heads: dict[tuple[str, bool | None, str | None, str | None], Head] = {}
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

    def peek(self, value: bytes | None) -> Head:
        if not value:  # Canal writes none; there is no change in it
            return _NOTHING
        try:
            head = self._head(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadMessage(f"not a Canal message: {why_not(value, error)}") from error
        return self._heads.get(head.key) or self._new_head(head)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        decode, known = self._head, self._heads.get
        for value in values:
            try:
                head = decode(value)  # type: ignore[arg-type]
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
                yield self.peek(value)  # which raises for a bad one
                continue
            # Written out, for it is done for every message: ``_Head.key``.
            seen = known((head.type, head.isDdl, head.database, head.table))
            yield self._new_head(head) if seen is None else seen

    def _new_head(self, head: _Head) -> Head:
        found = self._judge(head)
        if len(self._heads) >= _HEADS_KEPT:
            self._heads.clear()
        self._heads[head.key] = found
        return found

    def _judge(self, head: _Head) -> Head:
        if head.isDdl:
            return _DDL
        kind = _KINDS.get(head.type)
        if kind is Kind.ROWS:
            database, table = head.database or self._database, head.table or self._table
            if not database or not table:
                part = "table" if database else "database"
                raise BadMessage(
                    f"a Canal message of type {head.type} without a {part}, and no default_{part} "
                    f"is set"
                )
            return Head(Kind.ROWS, TableName(database, table))
        if kind is None:
            what = f"of unknown type {head.type!r}" if head.type else "without a type"
            raise BadMessage(f"a Canal message {what}")
        return _DDL if kind is Kind.DDL else _NOTHING

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

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        head = self.peek(value)
        if value is None or head.kind is Kind.NOTHING:
            return ()
        ts_ms = moment(value)
        if head.kind is Kind.DDL:
            found = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in self.ddl(value)]
            statement = _statement(value)
            return tuple(found) or (Statement(statement.header, statement.sql or "", ts_ms),)
        table = head.table or TableName("", "")
        try:
            return tuple(explain_rows(table, value, self._options, ts_ms))
        except Refused as refused:
            raise BadMessage(f"{table}: {refused}") from refused

    def source_ms(self, value: bytes | None) -> int | None:
        """``es``; ``ts`` is the writer's clock."""
        try:
            return None if value is None else milliseconds(_times(value).es)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> CanalTableDecoder:
        return CanalTableDecoder(self._options, mode, keys, types)
