"""Decodes Alibaba DTS's Avro records: a row, a statement, or a mark of the stream each."""

from __future__ import annotations

from changes.formats.aliyun.record import (
    RecordHead,
    WholeRecord,
    database_name,
    read_head,
    read_record,
    table_name,
)
from changes.formats.aliyun.rows import LETTERS, AliyunRows
from changes.formats.aliyun.values import MYSQL_SOURCES, as_rows_declare
from changes.formats.engine.format import Confidence, Packed, RowChange, Statement, earliest
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_format import DDL, NOTHING, RowFormat
from changes.formats.engine.untyped import as_text_columns
from changes.model.model import BadMessage, Ddl, FormatOptions, Head, Kind, TableName
from changes.model.places import TransactionEnd
from changes.sql.mysql.ddl import read_ddl

_STATEMENT, _COMMIT = "DDL", "COMMIT"
_OF_SEVERAL = "DRDS"
"""A source that is several servers: the end of a transaction of one says nothing of the others."""

_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table."""


class AliyunDtsAvro(RowFormat):
    """The ``Format`` of Alibaba DTS's Avro records; raises ValueError for an unknown time zone."""

    name: str = "aliyun-dts-avro"
    binary: bool = True
    prints_as_database = True

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._known: dict[tuple[str, str | None], Head] = {}

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        if not record.value:
            return Confidence.OPEN
        try:
            found = read_record(record.value)
        except Refused:
            return Confidence.NO
        if found.object_name or found.tags:
            return Confidence.CERTAIN
        # A few zeros are a record, too: an INSERT into nothing.
        return Confidence.OPEN if found.operation in LETTERS else Confidence.LIKELY

    def peek(self, value: bytes | None) -> Head:
        if not value:
            return NOTHING
        try:
            head = read_head(value)
        except Refused as refused:
            raise BadMessage(f"not a record of Alibaba DTS: {refused}") from refused
        found = self._known.get((head.operation, head.object_name))
        if found is None:
            found = _judge(head)
            if len(self._known) >= _HEADS_KEPT:
                self._known.clear()
            self._known[head.operation, head.object_name] = found
        return found

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            return _statements(read_record(value))
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        if self.peek(value) is NOTHING and value:
            try:
                read_record(value)  # a mark is read whole, too
            except Refused as refused:
                raise BadMessage(str(refused)) from refused
        return super().explain(value)

    def moment(self, value: bytes) -> int | None:
        seconds = read_record(value).timestamp_s
        return seconds * 1000 if seconds > 0 else None

    def header(self, value: bytes) -> tuple[TableName, str]:
        record = read_record(value)
        return _header(record), _text(record)

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            if not value or self.peek(value) is NOTHING:
                return None
            return earliest((read_head(value).timestamp_s * 1000,))
        except (BadMessage, Refused):
            return None

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        try:
            if not value or read_head(value).operation != _COMMIT:
                return None
            record = read_record(value)
        except Refused:
            return None
        if record.source == _OF_SEVERAL:
            return None
        name = record.transaction if record.transaction.strip("0") else None
        return TransactionEnd(name, record.timestamp_s * 1000 or None)

    def rows(self, *, placed: bool = False) -> AliyunRows:
        return AliyunRows()


def _judge(head: RecordHead) -> Head:
    if head.operation == _STATEMENT:
        return DDL
    if head.operation not in LETTERS:
        return NOTHING
    table = table_name(head.object_name)
    if table is not None:
        return Head(Kind.ROWS, table)
    if head.operation == "INIT":
        return NOTHING
    raise BadMessage(
        f"a record of operation {head.operation} about {head.object_name!r}: DATABASE.TABLE is "
        "required"
    )


def _header(record: WholeRecord) -> TableName:
    named = table_name(record.object_name)
    return named or TableName(database_name(record.object_name), "")


def _text(record: WholeRecord) -> str:
    """The statement, in the place of the image after; raises Refused."""
    if not isinstance(record.after, str):
        raise Refused("a DDL record without its statement")
    return record.after


def _statements(record: WholeRecord) -> tuple[Ddl, ...]:
    found = read_ddl(_text(record), _header(record))
    if record.source not in MYSQL_SOURCES:
        return tuple(map(as_text_columns, found))
    return tuple(map(as_rows_declare, found))
