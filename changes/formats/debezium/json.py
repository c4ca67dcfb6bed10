"""Decodes Debezium's JSON: a record is a row's change, a statement, or nothing to apply.

Records come packed (``Format.keyed``): the record key names the table's key columns, and a
tombstone has nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec
from msgspec import Raw, Struct

from changes.formats.debezium import record as careful
from changes.formats.debezium.confidence import confidence_of
from changes.formats.debezium.explain import explain_row
from changes.formats.debezium.ignored_create import is_ignored_create, not_followed
from changes.formats.debezium.layout import NULL, string_of
from changes.formats.debezium.parts import ended, members
from changes.formats.debezium.places import (
    EnvelopeSource,
    Names,
    moment,
    source_ms,
    source_place,
)
from changes.formats.debezium.record import Record
from changes.formats.debezium.repeated_statements import RepeatedStatements
from changes.formats.debezium.row_events import events_of
from changes.formats.debezium.rows import DebeziumRows
from changes.formats.debezium.tombstones import Tombstones
from changes.formats.debezium.transactions import mark_of, name_of_transaction, part_of_transaction
from changes.formats.debezium.unsent import Unavailable
from changes.formats.engine.decoder import TableEngine
from changes.formats.engine.format import (
    VALUE_AT,
    Confidence,
    Format,
    Packed,
    RowChange,
    Statement,
    sizes,
    unpack,
)
from changes.formats.engine.layout import Refused
from changes.model.model import (
    AddColumn,
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
from changes.model.places import Place, TransactionEnd, Transactions, transactions_among
from changes.model.row_events import Told, TransactionMark, TransactionPart
from changes.sql.mysql.ddl import read_ddl

_HEADS_KEPT = 10_000
"""Heads, and beginnings of records, in the caches: some for each table."""

POSITIONS = "postgres-lsn"
"""The positions in records of PostgreSQL. MySQL's don't compare: each server numbers its files."""

_MARK = b'"payload":'
_TAIL = 96
"""Bytes before the payload that identify a beginning: the schema's name is in them."""

_BRACE = ord("}")
_DDL = Head(Kind.DDL, None)
_NOTHING = Head(Kind.NOTHING, None)
_ROWS = frozenset("crud")
_SNAPSHOTS = frozenset(
    (b"true", b"first", b"last", b"first_in_data_collection", b"last_in_data_collection")
)
"""Values of ``source.snapshot`` in records of an initial snapshot."""


class _Head(Struct, gc=False):
    """The first members of an envelope; those of a flattened row may have the same names."""

    source: EnvelopeSource | None = None
    op: str | None = None
    table: str | None = msgspec.field(default=None, name="__table")
    db: str | None = msgspec.field(default=None, name="__db")
    schema: str | None = msgspec.field(default=None, name="__schema")
    flat_op: str | None = msgspec.field(default=None, name="__op")
    deleted: str | bool | None = msgspec.field(default=None, name="__deleted")


class DebeziumJson(Format):
    """The ``Format`` of Debezium's JSON.

    The options ``default_database`` and ``default_table`` name the table of records without one:
    tombstones without schema, flattened rows. ``tombstones`` is ``delete`` where these are the
    stream's deletes. ``unavailable_value`` is the connector's ``unavailable.value.placeholder``:
    where it is set, it applies to every connector, else only to those that leave values out.
    """

    name: str = "debezium-json"
    positions: str | None = POSITIONS
    options = frozenset(("default_database", "default_table", "unavailable_value", "tombstones"))
    keyed: bool = True
    may_lack_types: bool = True

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        tombstones = options.extra.get("tombstones", "repeat")
        if tombstones not in ("repeat", "delete"):
            raise ValueError(f"tombstones: {tombstones!r} is neither repeat nor delete")
        self._names = Names(
            options.extra.get("default_database"), options.extra.get("default_table")
        )
        self._unavailable = Unavailable.of(options.extra.get("unavailable_value"))
        self._head = msgspec.json.Decoder(_Head).decode
        self._heads: dict[tuple[str | None, ...], Head] = {}
        self._beginnings: dict[tuple[int, bytes], bytes] = {}
        self._latest = b"\0"
        self._named: set[TableName] = set()
        self._notes: list[str] = []
        self._deletes = tombstones == "delete"
        self._tombstones = Tombstones(
            self._names,
            delete=self._deletes,
            placed="positions" in options.extra,
        )
        self._repeated = RepeatedStatements()

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        return confidence_of(record)

    def peek(self, value: bytes | None) -> Head:
        if value is None:
            raise BadMessage("a record that was not packed")
        try:
            return self._quick(value) or self._slow(value)
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        for value in values:
            yield self.peek(value)
            self.behind(value)

    def behind(self, value: bytes | None) -> None:
        """Note a record that was peeked at, or of which only the head was looked at."""
        self._repeated.behind(value)

    def _quick(self, packed: bytes) -> Head | None:
        """The head of an envelope that names its table; None: use the slow path."""
        if len(packed) < VALUE_AT:
            return None
        size = sizes(packed)[0]
        end = VALUE_AT + size
        if size <= 0 or end > len(packed):
            return None
        begin, last = VALUE_AT, end
        if packed.startswith(b'{"schema"', VALUE_AT):
            if not packed.startswith(self._latest, VALUE_AT):
                mark = packed.find(_MARK, VALUE_AT, end)
                known = self._beginnings.get((mark, packed[mark - _TAIL : mark]))
                if known is None or not packed.startswith(known, VALUE_AT):
                    return None
                self._latest = known
            begin, last = VALUE_AT + len(self._latest), end - 1
        try:
            head = self._head(packed[begin:last])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        source, gone = head.source, head.op == "d"
        if last < end and packed[last] != _BRACE:
            return None
        if source is None and head.op is None and head.table and (head.db or head.schema):
            source = EnvelopeSource(None, head.db, head.schema, head.table)
            gone = head.flat_op == "d" or head.deleted in ("true", True)
            self._tombstones.flattened()
        elif source is None or head.op not in _ROWS:
            return None
        if gone:
            self._tombstones.deleted(packed)
        key = (source.connector, source.db, source.schema, source.table, source.keyspace)
        return self._heads.get(key) or self._new_head(source, key, packed)

    def _new_head(
        self, source: EnvelopeSource, key: tuple[str | None, ...], packed: bytes
    ) -> Head | None:
        table = source.name(self._names)
        if table is None:
            return None
        if len(self._heads) >= _HEADS_KEPT:
            self._heads.clear()
        found = self._heads[key] = Head(Kind.ROWS, table)
        self._tombstones.seen(packed, table)
        return found

    def _slow(self, packed: bytes) -> Head:
        record = careful.read(packed, self._names)
        if record.tombstone is not None:
            return self._tombstones.head(record.tombstone)
        self._note(packed, record)
        if record.prefix and record.prefix.endswith(_MARK):
            if len(self._beginnings) >= _HEADS_KEPT:
                self._beginnings.clear()
            mark = packed.find(_MARK, VALUE_AT)
            self._beginnings[mark, packed[mark - _TAIL : mark]] = record.prefix
        if record.kind is Kind.ROWS:
            return Head(Kind.ROWS, record.table)
        if record.kind is not Kind.DDL:
            return _NOTHING
        return _NOTHING if self._is_done(packed, record) else _DDL

    def _is_done(self, packed: bytes, record: Record) -> bool:
        """Whether a statement was read before, and its effect is there."""
        if record.table is not None or _of_snapshot(record):
            return False
        return self._repeated.is_done(packed, ignored=_is_ignored_create(record))

    def _note(self, packed: bytes, record: Record) -> None:
        """Remember a record for later tombstones, and for the remarks on uncertain tables."""
        if record.table is not None and record.kind is Kind.ROWS:
            if record.named_by is not None and record.table not in self._named:
                if len(self._named) >= _HEADS_KEPT:
                    self._named.clear()
                self._named.add(record.table)
                self._notes.append(_named_by(record.named_by, record.table))
            self._tombstones.seen(packed, record.table)
            if record.added is not None:
                self._tombstones.flattened()
            if record.letter == "D":
                self._tombstones.deleted(packed)

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        if value is None or b'"event_count"' not in value or b'"END"' not in value:
            return None
        try:
            record = careful.read(value, self._names)
        except Refused:
            return None
        return ended(record.payload or {}) if record.letter == "transaction" else None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        return (
            None
            if value is None
            else transactions_among((name_of_transaction(value, self._names),))
        )

    def transaction_part(self, value: bytes | None) -> TransactionPart | TransactionMark | None:
        return None if value is None else part_of_transaction(value, self._names)

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._tombstones.turn_to(partition)
        self._repeated.turn_to(partition, first, next_offset)

    def notes(self) -> tuple[str, ...]:
        notes, self._notes = tuple(self._notes), []
        return notes

    def why_passed_over(self, value: bytes) -> str:
        tombstone = careful.read(value, self._names).tombstone
        assert tombstone is not None
        return self._tombstones.why_not(tombstone)

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        return self._repeated.why_not(value, found)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            return self._ddl(careful.read(value, self._names))
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def _ddl(self, record: Record) -> tuple[Ddl, ...]:
        if record.table is not None:
            truncate = f"TRUNCATE TABLE {record.table}"
            return (Ddl(record.table, truncate, (TruncateTable(),)),)
        found = tuple(map(_filled_up, read_ddl(_member(record, "ddl"), _header(record))))
        if _of_snapshot(record):
            return tuple(filter(_creates, found))
        return not_followed(found, _connector(record)) if _is_ignored_create(record) else found

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        if value is None:
            raise BadMessage("a record that was not packed")
        record = None
        try:
            record = careful.read(value, self._names)
            if record.tombstone is not None:
                kind, table = self._tombstones.head(record.tombstone)
                if kind is Kind.PASSED_OVER:
                    raise Refused(self._tombstones.why_not(record.tombstone))
                record = replace(record, kind=kind, table=table)
            self._note(value, record)
            if record.kind is Kind.NOTHING:
                return ()
            if record.kind is Kind.ROWS:
                return tuple(explain_row(value, record, self._options, self._unavailable))
            ts_ms = moment(record.payload)
            found = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in self._ddl(record)]
            return tuple(found) or (Statement(_header(record), _member(record, "ddl"), ts_ms),)
        except Refused as refused:
            named = "" if record is None or record.table is None else f"{record.table}: "
            raise BadMessage(f"{named}{refused}") from refused

    def row_events(self, value: bytes | None, head: Head) -> tuple[Told, ...]:
        try:
            if value is None or head.kind is Kind.PASSED_OVER:
                return ()
            if head.kind is Kind.NOTHING:
                mark = mark_of(value, self._names)
                return () if mark is None else (mark,)
            return events_of(value, head, self._names, deletes=self._deletes)
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            text = None if value is None else unpack(value).value
            return None if text is None else source_ms(text)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def place(self, value: bytes | None) -> Place | None:
        try:
            text = None if value is None else unpack(value).value
            return None if text is None else source_place(text)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> TableEngine:
        positions = None if mode is Mode.APPEND else self._options.extra.get("positions")
        more = {"placed": positions is not None, "by_key": self._options.by_key}
        rows = DebeziumRows(self._names, self._unavailable, **more)
        return TableEngine(rows, self._options, mode, keys, types, positions)


def _header(record: Record) -> TableName:
    """The table of a schema change. Its database is that of one of the statement's tables, of the
    new name in a rename; the session's is unknown."""
    source = _source(record)
    table = source.table if source is not None and source.table else ""
    return TableName(_member(record, "databaseName"), table)


def _source(record: Record) -> EnvelopeSource | None:
    raw = (record.payload or {}).get("source", Raw(NULL))
    return msgspec.json.decode(raw, type=EnvelopeSource | None)


def _connector(record: Record) -> str | None:
    source = _source(record)
    return None if source is None else source.connector


def _is_ignored_create(record: Record) -> bool:
    changes = bytes((record.payload or {}).get("tableChanges", Raw(NULL)))
    return is_ignored_create(_connector(record), _member(record, "ddl"), changes)


def _member(record: Record, name: str) -> str:
    raw = bytes((record.payload or {}).get(name, Raw(NULL)))
    return string_of(raw) if raw.startswith(b'"') else ""


def _of_snapshot(record: Record) -> bool:
    """Whether a statement is an initial snapshot's: it only describes the database. A statement
    during an incremental snapshot is the stream's."""
    source = bytes((record.payload or {}).get("source", Raw(NULL)))
    if source == NULL:
        return False
    snapshot = members(source, "the source").get("snapshot", Raw(NULL))
    return bytes(snapshot).strip(b'"').lower() in _SNAPSHOTS


def _filled_up(ddl: Ddl) -> Ddl:
    """A BINARY's default with the zero bytes at its end, which Debezium puts back into rows."""
    steps, lenient = (
        tuple(
            replace(step, default=step.default.ljust(step.fixed_bytes, b"\0"))
            if isinstance(step, AddColumn) and isinstance(step.default, bytes)
            else step
            for step in part
        )
        for part in (ddl.steps, ddl.lenient)
    )
    return replace(ddl, steps=steps, lenient=lenient)


def _creates(ddl: Ddl) -> bool:
    """Whether a statement creates a table without replacing one."""
    return ddl.sql.lstrip()[:6].upper() == "CREATE" and not (ddl.steps or ddl.unread)


def _named_by(schema_name: str, table: TableName) -> str:
    return (
        f"{table} is named by its rows' schema alone, {schema_name}: a table whose name differs in "
        "a sign that Debezium replaces by _ would be the same; add.fields=table,db in the "
        "connector (PostgreSQL: table,schema) tells them apart"
    )
