"""Decodes Oracle GoldenGate's JSON messages: a row of a table, or its truncation each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw, Struct, UnsetType

from changes.formats.engine import json_text as glance
from changes.formats.engine.explain import explain_row
from changes.formats.engine.format import Confidence, Packed, RowChange, Statement
from changes.formats.engine.json_rows import JsonTableDecoder, Row
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.model.model import (
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
from changes.sql.convert import check_zone

# Reads GoldenGate's row messages: the row, and the replaced values of an update.

LETTERS = {"I": "I", "U": "U", "D": "D", "PK": "U"}
"""The letter of a change by ``op_type``; PK is a changed key in older handlers."""


class Message(Struct, gc=False):
    """A message with nothing assumed about its columns."""

    table: str | None = None
    op_type: str = ""
    op_ts: Any = None
    primary_keys: Raw = Raw()
    before: dict[str, Raw] | None = None
    after: dict[str, Raw] | None = None


_message = msgspec.json.Decoder(Message)
_key_names = msgspec.json.Decoder(list[str] | None)


class OggDialect:
    """The ``Dialect`` of GoldenGate."""

    letters: Mapping[str, str] = LETTERS
    deletes_by_was = True
    drops_nulls = False

    def message(self, row: type[Struct]) -> type[Struct]:
        image: Any = row
        fields: list[tuple[str, Any, Any]] = [
            ("kind", str, ""),
            ("now", image | None | UnsetType, None),
            ("was", image | None | UnsetType, None),
            ("names", Raw, Raw()),
            ("odd", None, None),
        ]
        # No member's name ends in a space, so ``odd`` is always None.
        names = {
            "kind": "op_type",
            "now": "after",
            "was": "before",
            "names": "primary_keys",
            "odd": "odd ",
        }
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    def bodies(self, values: Sequence[bytes]) -> Sequence[bytes]:
        return values

    def key_texts(self, names: Sequence[Raw], values: Sequence[bytes]) -> Sequence[bytes]:
        if names.count(names[0]) == len(names):
            return (bytes(names[0]),)
        return list(map(bytes, names))

    def read(self, value: bytes) -> Row:
        message = read_message(value)
        if message.op_type not in LETTERS:
            raise Refused(f"unknown op_type {message.op_type!r}")
        op = LETTERS[message.op_type]
        row = message.before if op == "D" else message.after
        if row is None:
            image = "before" if op == "D" else "after"
            raise Refused(f"a message of op_type {message.op_type} without {image}")
        was = message.before if op == "U" else None
        return Row(op, row, was, bytes(message.primary_keys), _keys(message.primary_keys))

    def table_of(self, value: bytes) -> TableName | None:
        try:
            return table_name(read_message(value).table)
        except Refused:
            return None


def read_message(value: bytes) -> Message:
    """Raises Refused where the value is no such message."""
    try:
        return _message.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a GoldenGate message: {why_not(value, error)}") from error


def table_name(name: str | None) -> TableName | None:
    """``SCHEMA.TABLE``, or with a container before it, which then belongs to the schema's name."""
    schema, _, table = (name or "").rpartition(".")
    return TableName(schema, table) if schema and table else None


def moment(op_ts: object, zone: str) -> int | None:
    """When the change happened, in milliseconds: the database's clock, read in its zone."""
    if not isinstance(op_ts, str):
        return None
    try:
        when = datetime.fromisoformat(op_ts)
        if when.tzinfo is None:
            when = when.replace(tzinfo=ZoneInfo(zone))
        return round(when.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _keys(names: Raw) -> tuple[str, ...]:
    try:
        return tuple(_key_names.decode(names) or ()) if bytes(names) else ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"primary_keys is not a list of names: {error}") from error


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
