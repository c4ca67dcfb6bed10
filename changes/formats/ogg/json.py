"""Decodes Oracle GoldenGate's JSON messages: a row of a table, or its truncation each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from changes.decoding import glance
from changes.decoding.convert import check_zone
from changes.decoding.json_explain import explain_row
from changes.decoding.json_rows import JsonTableDecoder
from changes.decoding.json_text import why_not
from changes.decoding.layout import Refused
from changes.formats.base import Confidence, Packed, RowChange, Statement
from changes.formats.ogg.rows import LETTERS, OggDialect, moment, read_message, table_name
from changes.model import (
    BadMessage,
    ColumnTypes,
    Ddl,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
    TruncateTable,
)

_TRUNCATE = "T"

_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table; making one costs half a microsecond."""

_DDL = Head(Kind.DDL, None)
_NOTHING = Head(Kind.NOTHING, None)


class _Head(Struct, gc=False):
    """In the order in which GoldenGate writes them, which msgspec reads fastest."""

    table: str | None = None
    op_type: str = ""


class OggJson:
    """The ``Format`` of GoldenGate's JSON; raises ValueError where the time zone isn't known here.

    The option ``default_database`` is the schema of tables that are named without one,
    ``default_table`` the table of messages that name none.
    """

    name: str = "ogg-json"
    keyed: bool = False
    binary: bool = False

    def __init__(self, options: FormatOptions) -> None:
        check_zone(options.time_zone)
        if options.extra.get("positions") is not None:
            raise ValueError(f"{self.name} gives no positions")
        self._options = options
        self._schema = options.extra.get("default_database")
        self._default = options.extra.get("default_table")
        self._head = msgspec.json.Decoder(_Head).decode
        self._heads: dict[tuple[str | None, str], Head] = {}
        self._dialect = OggDialect()

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        if glance.is_empty(record.value):
            return Confidence.OPEN
        found = glance.members(record.value)
        op = glance.word(found, "op_type")
        if op not in LETTERS and op != _TRUNCATE:
            return Confidence.NO
        if glance.word(found, "table") and found.keys() & {"op_ts", "current_ts", "pos"}:
            return Confidence.CERTAIN
        return Confidence.LIKELY if found.keys() & {"before", "after", "table"} else Confidence.OPEN

    def peek(self, value: bytes | None) -> Head:
        if not value:
            return _NOTHING  # a tombstone: the delete came before it
        try:
            head = self._head(value)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BadMessage(f"not a GoldenGate message: {why_not(value, error)}") from error
        return self._judge(head)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        decode, known = self._head, self._heads.get
        for value in values:
            try:
                head = decode(value)  # type: ignore[arg-type]
            except (msgspec.DecodeError, ValueError, RecursionError, TypeError):
                yield self.peek(value)  # which raises for a bad one
                continue
            seen = known((head.table, head.op_type))
            if seen is None:
                seen = self._judge(head)
                if len(self._heads) >= _HEADS_KEPT:
                    self._heads.clear()
                self._heads[(head.table, head.op_type)] = seen
            yield seen

    def _judge(self, head: _Head) -> Head:
        if head.op_type not in LETTERS and head.op_type != _TRUNCATE:
            what = f"of unknown op_type {head.op_type!r}" if head.op_type else "without op_type"
            raise BadMessage(f"a GoldenGate message {what}")
        table = self._table(head.table)
        return _DDL if head.op_type == _TRUNCATE else Head(Kind.ROWS, table)

    def _table(self, name: str | None) -> TableName:
        table = table_name(name)
        if table is not None:
            return table
        plain = name or self._default
        if plain and self._schema and "." not in plain:
            return TableName(self._schema, plain)
        missing = "default_table" if self._schema and not plain else "default_database"
        raise BadMessage(
            f"a GoldenGate message of table {name!r}: SCHEMA.TABLE is wanted, and no {missing} "
            "is set"
        )

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            table = self._table(read_message(value).table)
        except Refused as refused:
            raise BadMessage(str(refused)) from refused
        return (Ddl(table, f"TRUNCATE TABLE {table}", (TruncateTable(),)),)

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        head = self.peek(value)
        if value is None or head.kind is Kind.NOTHING:
            return ()
        table = head.table
        try:
            ts_ms = moment(read_message(value).op_ts, self._options.time_zone)
            if table is None:
                return tuple(Statement(ddl.table, ddl.sql, ts_ms) for ddl in self.ddl(value))
            row = self._dialect.read(value)
            return (explain_row(table, row, self._options, ts_ms, drops_nulls=False),)
        except Refused as refused:
            about = "" if table is None else f"{table}: "
            raise BadMessage(f"{about}{refused}") from refused

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> JsonTableDecoder:
        return JsonTableDecoder(self._dialect, self._options, mode, keys, types)
