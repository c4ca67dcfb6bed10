"""Decodes Tencent Cloud DTS's messages: envelopes of entries, of MySQL, MariaDB and TDSQL.

An event too large for one message comes in parts; the ``ShardId`` header separates the parts of
TDSQL's shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from changes.formats.engine.explain import explain_image
from changes.formats.engine.format import (
    Confidence,
    DeclaredTypes,
    Entry,
    Packed,
    RowChange,
    Statement,
    earliest,
)
from changes.formats.engine.heads import head_of, heads_of_all, times_of_all
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_format import RowFormat
from changes.formats.tencent.flat import heads_of_many
from changes.formats.tencent.message import (
    check_packed,
    end_of,
    envelope_confidence,
    envelope_of,
    event_of,
    heads_of,
    items_joined,
    items_of,
    judged,
    part_of,
    read_head,
    record_of,
    sequence_number_of,
    shard_of,
    transactions_of,
)
from changes.formats.tencent.rows import TencentRows, columns_of, letter_of
from changes.formats.tencent.times import times_of_many
from changes.model.model import (
    BadMessage,
    ChangeColumn,
    Ddl,
    DdlStep,
    DropTable,
    Head,
    Kind,
    RenameColumn,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
from changes.model.places import TransactionEnd, Transactions
from changes.sql.mysql.ddl import read_ddl
from offsets.parts import Part

_PART = Head(Kind.PART, None)


class TencentDts(RowFormat):
    """The ``Format`` of Tencent DTS; raises ValueError where the time zone isn't known here.

    The zone is that of TIMESTAMP values without their own.
    """

    name: str = "tencent-dts"
    keyed: bool = True
    binary: bool = True
    column_types = DeclaredTypes.SOURCE
    prints_as_database = True

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        return Confidence.NO if record.value is None else envelope_confidence(record)

    def peek(self, value: bytes | None) -> Head:
        packed = check_packed(value)
        if envelope_of(packed).total > 1:
            return _PART
        return head_of((kind, table) for kind, table, _ in heads_of(packed))

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        return heads_of_all(values, heads_of_many, self.peek)

    def part(self, value: bytes) -> tuple[str, Part] | None:
        return part_of(check_packed(value))

    def comes_in_parts(self, values: Sequence[bytes | None]) -> bool:
        return True

    def sequence_number(self, value: bytes) -> tuple[str, int | None]:
        return sequence_number_of(check_packed(value))

    def reassembled(self, value: bytes, data: bytes) -> bytes:
        return record_of(data, shard_of(value))

    def entries(self, value: bytes) -> Sequence[Entry]:
        found = []
        for item in items_of(envelope_of(check_packed(value)).data):
            kind, table, _ = judged(read_head(item))
            if kind is not Kind.NOTHING:
                found.append(Entry(kind, table, bytes(item)))
        return found

    def joined(self, value: bytes, entries: Sequence[bytes]) -> bytes:
        return record_of(items_joined(entries), shard_of(value))

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        packed = check_packed(value)
        found = [
            ddl
            for kind, table, entry in heads_of(packed)
            if kind is Kind.DDL
            for ddl in _statements(table, entry)
        ]
        shard = shard_of(packed)
        return tuple(_of_one_shard(ddl, shard) for ddl in found) if shard else tuple(found)

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        explained: list[RowChange | Statement] = []
        rows = self.rows()
        for kind, table, entry in heads_of(check_packed(value)):
            ts_ms = entry.header.timestamp * 1000 or None
            if kind is Kind.DDL:
                found = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in _statements(table, entry)]
                explained += found or [Statement(table, _sql(table, entry).sql, ts_ms)]
            elif kind is Kind.ROWS:
                try:
                    event = event_of(entry.event, table).dmlEvent
                    op, columns = letter_of(event), columns_of(event.columns)
                    images = list(rows.images_of(event, op, columns))
                    options = self._options
                    explained += [explain_image(table, i, rows, options, ts_ms) for i in images]
                except Refused as refused:
                    raise BadMessage(f"{table}: {refused}") from refused
        return tuple(explained)

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            entries = heads_of(check_packed(value))
            changes = (entry for kind, _, entry in entries if kind is not Kind.NOTHING)
            return earliest(entry.header.timestamp * 1000 for entry in changes)
        except BadMessage:
            return None

    def times_of(self, values: Sequence[bytes]) -> Sequence[int | None]:
        return times_of_all(values, times_of_many, self.source_ms)

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        """None of a part: its message is one event, and no end of a transaction."""
        try:
            return end_of(check_packed(value))
        except BadMessage:
            return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        try:
            return transactions_of(check_packed(value))
        except BadMessage:
            return None

    def rows(self, *, placed: bool = False) -> TencentRows:
        return TencentRows(self._options.time_zone)


def _sql(table: TableName, entry: Any) -> Any:
    return event_of(entry.event, table).ddlEvent


def _statements(table: TableName, entry: Any) -> tuple[Ddl, ...]:
    statement = _sql(table, entry)
    database = statement.schemaName or table.database
    return read_ddl(statement.sql, TableName(database, table.table))


def _of_one_shard(ddl: Ddl, shard: str) -> Ddl:
    """Each shard sends the statement: one that only adds may come again, between rows.

    One that removes or renames something concerns this shard's rows alone.
    """
    if not any(map(_takes_away, (*ddl.steps, *ddl.lenient))):
        return ddl
    return replace(
        ddl, steps=(), lenient=(), refused=f"what shard {shard} alone says of a sharded table"
    )


def _takes_away(step: DdlStep) -> bool:
    if isinstance(step, ChangeColumn):
        return step.old != step.column.name
    return isinstance(step, TruncateTable | DropTable | RenameTable | TakeName | RenameColumn)
