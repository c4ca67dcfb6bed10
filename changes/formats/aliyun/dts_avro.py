"""Decodes Alibaba DTS's Avro records: a row, a statement, or a mark of the stream each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from changes.formats.aliyun.record import Head as AvroHead
from changes.formats.aliyun.record import (
    Record,
    database_name,
    read_head,
    read_record,
    table_name,
)
from changes.formats.aliyun.rows import LETTERS, UTC, AliyunTableDecoder, Image, row_of
from changes.formats.aliyun.values import MYSQL_SOURCES, as_rows_declare
from changes.formats.engine.explain import images_of, key_of
from changes.formats.engine.format import Confidence, Packed, RowChange, Statement
from changes.formats.engine.layout import Refused
from changes.formats.engine.untyped import as_text_columns
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
from changes.sql.convert import Converter, check_zone
from changes.sql.mysql.ddl import read_ddl

# Explains Alibaba DTS's records: each change with its key, its row before and after.


def explain_record(
    table: TableName, record: Record, options: FormatOptions, ts_ms: int | None
) -> RowChange:
    """Explain a record of a row; raises Refused."""
    row = row_of(record)
    types = {name: row.types.get(name, "text") for name, _ in record.fields}
    raws = [_raw(row.now), _raw(row.was or {})]
    (now, was), misfits = images_of(raws, types, Converter(UTC, options.zero_dates), row.keys)
    misfit = misfits.get(0) or misfits.get(1)
    if row.op != "U":
        before, after = (None, now) if row.op == "I" else (now, None)
        return RowChange(table, row.op, key_of(row.keys, now), before, after, ts_ms, misfit)
    key = key_of(row.keys, was | now)
    whole = now | key
    return RowChange(table, "U", key, (whole | was) or None, whole, ts_ms, misfit)


def _raw(image: Image) -> dict[str, Raw]:
    return {name: Raw(msgspec.json.encode(text)) for name, text in image.items()}


_DDL = Head(Kind.DDL, None)
_NOTHING = Head(Kind.NOTHING, None)

_STATEMENT = "DDL"

_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table."""


class AliyunDtsAvro:
    """The ``Format`` of Alibaba DTS's Avro records; raises ValueError for an unknown time zone."""

    name: str = "aliyun-dts-avro"
    keyed: bool = False
    binary: bool = True

    def __init__(self, options: FormatOptions) -> None:
        check_zone(options.time_zone)
        if options.extra.get("positions") is not None:
            raise ValueError(f"{self.name} gives no positions")
        self._options = options
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
            return _NOTHING
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

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        return map(self.peek, values)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            return _statements(read_record(value))
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        table = self.peek(value).table
        if not value:
            return ()
        try:
            record = read_record(value)
            ts_ms = record.timestamp_s * 1000 if record.timestamp_s > 0 else None
            if table is not None:
                return (explain_record(table, record, self._options, ts_ms),)
            if record.operation != _STATEMENT:
                return ()
            statements = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in _statements(record)]
            return tuple(statements) or (Statement(_header(record), _text(record), ts_ms),)
        except Refused as refused:
            about = "" if table is None else f"{table}: "
            raise BadMessage(f"{about}{refused}") from refused

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> AliyunTableDecoder:
        return AliyunTableDecoder(self._options, mode, keys, types)


def _judge(head: AvroHead) -> Head:
    if head.operation == _STATEMENT:
        return _DDL
    if head.operation not in LETTERS:
        return _NOTHING
    table = table_name(head.object_name)
    if table is not None:
        return Head(Kind.ROWS, table)
    if head.operation == "INIT":
        return _NOTHING
    raise BadMessage(
        f"a record of operation {head.operation} about {head.object_name!r}: DATABASE.TABLE is "
        "wanted"
    )


def _header(record: Record) -> TableName:
    named = table_name(record.object_name)
    return named or TableName(database_name(record.object_name), "")


def _text(record: Record) -> str:
    """The statement, in the place of the image after; raises Refused."""
    if not isinstance(record.after, str):
        raise Refused("a DDL record without its statement")
    return record.after


def _statements(record: Record) -> tuple[Ddl, ...]:
    found = read_ddl(_text(record), _header(record))
    if record.source not in MYSQL_SOURCES:
        return tuple(map(as_text_columns, found))
    return tuple(map(as_rows_declare, found))
