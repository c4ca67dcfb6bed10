"""Looks at a topic: its format, and the tables and keys in its first and last records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Format, Packed, RowChange
from changes.model.model import BadMessage, BadRecord, FormatOptions, Mode
from daemon.cli.base.detected_format import FormatUnclear, detected_format
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.consumed import as_consumed
from sources.base.port import LogGone, LogRecord, LogUnreadable, NotAnswered, Source

FIRST = LAST = 500
"""Records at each end of a partition. A table that shows up in none of them is routed nevertheless:
what is seen only goes into comments."""

MOST_PARTITIONS = 16
"""Partitions that are looked at."""


class NothingSeen(Exception):
    """A topic can't be looked at: one line."""


@dataclass(slots=True)
class SeenTable:
    """A table: its key columns (empty: its messages name none), and where it was seen. ``texts``:
    each of its columns will be text, as far as a message of it says."""

    keys: tuple[str, ...] = ()
    changes: int = 0
    partitions: set[int] = field(default_factory=set)
    texts: bool = False


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic. ``format`` None: not detected, for the reason in ``why``; also of an empty topic."""

    topic: str
    format: str | None
    why: str
    logs: Mapping[TopicPartition, Watermarks]
    tables: Mapping[str, SeenTable]
    records: int = 0
    bad: int = 0
    """Records that can't be read as they are; the first one's error is ``bad_example``."""
    bad_example: str = ""


def look_at(source: Source, topic: str) -> SeenTopic:
    """Read some records of a topic that exists. Raises NothingSeen."""
    try:
        questions = source.questions()
        logs = questions.watermarks(questions.partitions([topic]))
        partitions = sorted(logs)[:MOST_PARTITIONS]
        read = {place: list(_ends_of(source, place, logs[place])) for place in partitions}
    except (NotAnswered, LogUnreadable, LogGone) as error:
        raise NothingSeen(f"{topic}: {error}") from error
    every = [record for records in read.values() for record in records]
    auto = AutoFormat(FormatOptions())
    packed = (Packed(record.key, record.value, record.headers) for record in every)
    try:
        format_ = detected_format(auto, packed)
    except FormatUnclear as error:
        why = str(error).removesuffix(". --format names one")
        return SeenTopic(topic, None, why, logs, {}, len(every))
    if format_ is None:
        return SeenTopic(topic, None, "it is empty", logs, {})
    return _with_tables(SeenTopic(topic, format_.name, "", logs, {}, len(every)), format_, read)


def _ends_of(source: Source, place: TopicPartition, log: Watermarks) -> Iterator[LogRecord]:
    if log.low >= log.high:
        return
    reader = source.reader()
    if log.high - log.low <= FIRST + LAST:
        yield from reader.read(place, log.low, log.high - 1)
        return
    yield from reader.read(place, log.low, log.low + FIRST - 1)
    yield from reader.read(place, log.high - LAST, log.high - 1)


def _with_tables(
    topic: SeenTopic, format_: Format, read: Mapping[TopicPartition, list[LogRecord]]
) -> SeenTopic:
    tables: dict[str, SeenTable] = {}
    bad, example = 0, ""
    for place, records in read.items():
        for record in records:
            value = as_consumed(format_, place.topic, record)
            if value is None:
                continue
            try:
                changes = format_.explain(value)
            except BadMessage as error:
                bad, example = bad + 1, example or f"{place} offset {record.offset}: {error}"
                continue
            for change in changes:
                table = tables.setdefault(str(change.table), SeenTable())
                table.changes += 1
                table.partitions.add(place.partition)
                if isinstance(change, RowChange) and change.key:
                    table.keys = tuple(change.key)
            if len(changes) == 1 and isinstance(changes[0], RowChange) and table.changes == 1:
                table.texts = _has_texts_alone(format_, record.offset, value)
    seen = dict(sorted(tables.items()))
    return SeenTopic(topic.topic, topic.format, "", topic.logs, seen, topic.records, bad, example)


def _has_texts_alone(format_: Format, offset: int, value: bytes) -> bool:
    """Whether a row names no types: of Maxwell, of Debezium without schemas."""
    decoder = format_.table_decoder(Mode.APPEND, None, ())
    try:
        changes = decoder.decode(0, [offset], [value])
    except BadRecord:
        return False
    types = [] if changes is None else [column.type for column in changes.schema.columns]
    return bool(types) and not decoder.declared_types and all(map(pa.types.is_string, types))
