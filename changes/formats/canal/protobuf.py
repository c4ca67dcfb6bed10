"""Decodes Canal's protobuf packets: a message is a batch of entries, of one table or many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from changes.formats.canal.flat import heads_of_many
from changes.formats.canal.json import read_statement
from changes.formats.canal.packet import (
    end_of,
    entries_of,
    heads_of,
    kind_of,
    packed_entries,
    packet_confidence,
    read_entry,
    row_change,
    source_ms,
    table_of,
    transactions_of,
)
from changes.formats.canal.times import times_of_many
from changes.formats.canal.wire import CanalWireRows, letter_of
from changes.formats.engine.explain import explain_image
from changes.formats.engine.format import (
    Confidence,
    DeclaredTypes,
    Entry,
    Packed,
    RowChange,
    Statement,
)
from changes.formats.engine.heads import head_of, heads_of_all, times_of_all
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_format import RowFormat
from changes.model.model import (
    BadMessage,
    Ddl,
    Head,
    Kind,
    TableName,
)
from changes.model.places import TransactionEnd, Transactions


class CanalProtobuf(RowFormat):
    """The ``Format`` of Canal protobuf; raises ValueError where the time zone isn't known here."""

    name: str = "canal-protobuf"
    binary: bool = True
    column_types = DeclaredTypes.SOURCE
    prints_as_database = True

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        return Confidence.NO if record.value is None else packet_confidence(record.value)

    def peek(self, value: bytes | None) -> Head:
        return head_of(self._entries(value))

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        return heads_of_all(values, heads_of_many, self.peek)

    def _entries(self, value: bytes | None) -> Iterator[tuple[Kind, TableName]]:
        for entry in heads_of(_present(value)):
            yield kind_of(entry), table_of(entry)

    def entries(self, value: bytes) -> Sequence[Entry]:
        found = []
        for raw in entries_of(value):
            entry = read_entry(raw)
            kind = kind_of(entry)
            if kind is not Kind.NOTHING:
                found.append(Entry(kind, table_of(entry), bytes(raw)))
        return found

    def joined(self, _value: bytes, entries: Sequence[bytes]) -> bytes:
        return packed_entries(entries)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        return tuple(
            ddl
            for entry in map(read_entry, entries_of(value))
            if kind_of(entry) is Kind.DDL
            for ddl in _statements(entry)
        )

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        explained: list[RowChange | Statement] = []
        rows = self.rows()
        for entry in map(read_entry, entries_of(_present(value))):
            kind, ts_ms = kind_of(entry), entry.header.executeTime or None
            if kind is Kind.DDL:
                found = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in _statements(entry)]
                explained += found or [Statement(table_of(entry), row_change(entry).sql, ts_ms)]
            elif kind is Kind.ROWS:
                try:
                    change, table = row_change(entry), table_of(entry)
                    images = list(rows.images_of(change, letter_of(change, entry)))
                    options = self._options
                    explained += [explain_image(table, i, rows, options, ts_ms) for i in images]
                except Refused as refused:
                    raise BadMessage(f"{table_of(entry)}: {refused}") from refused
        return tuple(explained)

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            return source_ms(_present(value))
        except BadMessage:
            return None

    def times_of(self, values: Sequence[bytes]) -> Sequence[int | None]:
        return times_of_all(values, times_of_many, self.source_ms)

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        try:
            return end_of(_present(value))
        except BadMessage:
            return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        try:
            return transactions_of(_present(value))
        except BadMessage:
            return None

    def rows(self, *, placed: bool = False) -> CanalWireRows:
        return CanalWireRows()


def _present(value: bytes | None) -> bytes:
    if value is None:
        raise BadMessage("a message without a value (a tombstone); Canal writes none")
    return value


def _statements(entry: Any) -> tuple[Ddl, ...]:
    """``ddlSchemaName`` is the session's database; the header's that of a table in it."""
    change, header = row_change(entry), table_of(entry)
    database = change.ddlSchemaName or header.database
    in_session = bool(change.ddlSchemaName)
    return read_statement(
        change.sql,
        TableName(database, header.table),
        session=in_session,
        known=bool(header.database),
    )
