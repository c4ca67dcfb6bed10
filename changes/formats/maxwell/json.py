"""Decodes Maxwell's JSON messages: a row, or one table's part of a statement each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from changes.formats.engine import json_text as glance
from changes.formats.engine.explain import explain_row
from changes.formats.engine.format import VALUE_AT, Confidence, Packed, RowChange, Statement, sizes
from changes.formats.engine.json_rows import JsonTableDecoder
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.formats.engine.repeated_renames import RepeatedRenames
from changes.formats.maxwell.ddl import TYPES, read_statement, statement_of
from changes.formats.maxwell.encrypted import NO_KEY, Decryptor
from changes.formats.maxwell.rows import LETTERS, MaxwellDialect, body, is_record_key, moment
from changes.model.model import (
    BadMessage,
    ColumnTypes,
    Ddl,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
)
from changes.sql.convert import check_zone

_KINDS = dict.fromkeys(LETTERS, Kind.ROWS)
_KINDS |= dict.fromkeys(TYPES, Kind.DDL)
_KINDS |= dict.fromkeys(("bootstrap-start", "bootstrap-complete", "heartbeat"), Kind.NOTHING)

_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table; making one costs half a microsecond."""

_DDL = Head(Kind.DDL, None)
_NOTHING = Head(Kind.NOTHING, None)


class _Head(Struct, gc=False):
    """In the order in which Maxwell writes them, which msgspec reads fastest."""

    database: str | None = None
    table: str | None = None
    type: str = ""
    encrypted: Any = None
    reason: str | None = None


class MaxwellJson:
    """The ``Format`` of Maxwell's JSON. Records come packed (``Format.keyed``): the record key has
    the table's key columns where the message does not name them.

    The option ``encryption_key`` decrypts messages, ``default_database`` and ``default_table`` name
    the table of rows without one. Raises ValueError for an invalid AES key or an unknown time zone.
    """

    name: str = "maxwell-json"
    keyed: bool = True
    binary: bool = False

    def __init__(self, options: FormatOptions) -> None:
        check_zone(options.time_zone)
        if options.extra.get("positions") is not None:
            raise ValueError(f"{self.name} gives no positions")
        self._options = options
        self._database = options.extra.get("default_database")
        self._table = options.extra.get("default_table")
        key = options.extra.get("encryption_key")
        self._decryptor = None if key is None else Decryptor(key)
        self._head = msgspec.json.Decoder(_Head).decode
        self._heads: dict[tuple[str, str | None, str | None], Head] = {}
        self._repeated = RepeatedRenames()

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        if glance.is_empty(record.value):
            return Confidence.CERTAIN if is_record_key(record.key) else Confidence.OPEN
        found = glance.members(record.value)
        if glance.members(found.get("encrypted")).keys() >= {"iv", "bytes"}:
            return Confidence.CERTAIN
        if glance.word(found, "type") not in _KINDS and "reason" not in found:
            return Confidence.NO
        signs = [glance.is_object(found, "data"), glance.is_object(found, "def"), "sql" in found]
        named = bool(glance.word(found, "database"))
        if named and any(signs) and found.keys() & {"ts", "xid", "reason"}:
            return Confidence.CERTAIN
        return Confidence.LIKELY if signs[0] or named else Confidence.OPEN

    def peek(self, value: bytes | None) -> Head:
        text = b"" if value is None else body(value)
        if not text:
            return _NOTHING  # a tombstone: the delete came before it
        try:
            head = self._head(text)
            if not head.type and head.encrypted is not None:
                head = self._head(self._plain(text))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BadMessage(f"not a Maxwell message: {why_not(text, error)}") from error
        except Refused as refused:
            raise BadMessage(f"a Maxwell message that is {refused}") from refused
        return self._judge(head)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        decode, known = self._head, self._heads.get
        for value in values:
            try:
                # Written out, for it is done for every message: ``body``.
                head = decode(value[VALUE_AT : VALUE_AT + sizes(value)[0]])  # type: ignore[index, arg-type]
            except (msgspec.DecodeError, ValueError, RecursionError, TypeError):
                yield self.peek(value)  # which raises for a bad one
                continue
            seen = known((head.type, head.database, head.table))
            if seen is None or head.reason is not None:
                seen = self.peek(value)
                if head.type:
                    if len(self._heads) >= _HEADS_KEPT:
                        self._heads.clear()
                    self._heads[(head.type, head.database, head.table)] = seen
            yield seen

    def _judge(self, head: _Head) -> Head:
        if head.reason is not None:
            raise BadMessage(
                f"{head.database}.{head.table}: a row that Maxwell could not send, all but its "
                f"key is missing: {head.reason}"
            )
        kind = _KINDS.get(head.type)
        if kind is Kind.ROWS:
            database, table = head.database or self._database, head.table or self._table
            if not database or not table:
                part = "table" if database else "database"
                raise BadMessage(
                    f"a Maxwell message of type {head.type} without a {part}, and no "
                    f"default_{part} is set"
                )
            return Head(Kind.ROWS, TableName(database, table))
        if kind is not None:
            return _DDL if kind is Kind.DDL else _NOTHING
        what = f"of unknown type {head.type!r}" if head.type else "without a type"
        raise BadMessage(f"a Maxwell message {what}")

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            return read_statement(self._plain(body(value)))
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._repeated.turn_to(partition, first, next_offset)

    def notes(self) -> tuple[str, ...]:
        return ()

    def why_passed_over(self, value: bytes) -> str:
        raise ValueError(f"{self.name} passes nothing over")

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        return self._repeated.why_not(self._plain(body(value)), found)

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        head = self.peek(value)
        if value is None or head.kind is Kind.NOTHING:
            return ()
        table = head.table
        try:
            text = self._plain(body(value))
            ts_ms = moment(text)
            if table is None:
                statements = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in read_statement(text)]
                return tuple(statements) or (Statement(*statement_of(text), ts_ms),)
            row = MaxwellDialect(self._decryptor).read(value)
            return (explain_row(table, row, self._options, ts_ms, drops_nulls=True),)
        except Refused as refused:
            about = "" if table is None else f"{table}: "
            raise BadMessage(f"{about}{refused}") from refused

    def _plain(self, text: bytes) -> bytes:
        """The message without encryption; raises Refused."""
        if self._head(text).encrypted is None:
            return text
        if self._decryptor is None:
            raise Refused(NO_KEY)
        return self._decryptor.decrypted(text)

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> JsonTableDecoder:
        return JsonTableDecoder(MaxwellDialect(self._decryptor), self._options, mode, keys, types)
