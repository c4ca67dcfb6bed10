"""Turns a log's record into what its format gets, as the consumer does."""

from __future__ import annotations

from changes.formats.detector import detector
from changes.formats.engine.format import Format, MultiEntry, pack
from changes.model.model import BadMessage, Kind, TableName
from sources.base.port import LogRecord


def as_consumed(format_: Format, topic: str, record: LogRecord) -> bytes | None:
    """The value, or the packed record if the format needs that, with its mark under ``auto``."""
    if not format_.keyed:
        return record.value
    packed = pack(record.key, record.value, record.headers)
    auto = detector(format_)
    if auto is None or auto.topics.of(topic) is None:
        return packed
    return auto.marked(topic, packed)


def topics_format(format_: Format, topic: str) -> Format:
    """The format of one topic's records: the detected one under ``auto``, else the format
    itself."""
    auto = detector(format_)
    name = None if auto is None else auto.topics.of(topic)
    return format_ if auto is None or name is None else auto.named(name)


def tables_of(format_: Format, value: bytes) -> tuple[Kind, tuple[TableName, ...]]:
    """The tables of a message. None of them if it can't be parsed (a dead letter)."""
    try:
        kind, table = format_.peek(value)
        if kind is Kind.DDL:
            return kind, tuple(statement.table for statement in format_.ddl(value))
        if kind is Kind.MULTI_ENTRY and isinstance(format_, MultiEntry):
            rows = tuple(p.table for p in format_.entries(value) if p.kind is Kind.ROWS)
            return kind, rows + tuple(statement.table for statement in format_.ddl(value))
    except BadMessage:
        return Kind.NOTHING, ()
    return kind, () if table is None else (table,)
