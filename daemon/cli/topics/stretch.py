"""Finds the records of a topic that were asked for: where they begin, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice

from daemon.state.dead_letters.index import parse_since
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.port import LogRecord, Questions
from sources.base.topics import TopicLog

Found = list[tuple[TopicPartition, LogRecord]]


class NotThere(Exception):
    """There is no such partition or offset: one line."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where to begin: one of the newest ``last`` records, an ``offset``, a time (Unix
    milliseconds); nothing of it: at the log's begin."""

    last: int | None = None
    offset: int | None = None
    time_ms: int | None = None


def parse_where(text: str, count: int, now: datetime) -> Where:
    """What ``--from`` says. Raises ValueError."""
    if text == "earliest":
        return Where()
    if text == "latest":
        return Where(last=count)
    if text[:1] == "-" and text[1:].isdecimal() and int(text[1:]):
        return Where(last=int(text[1:]))
    if text.isdecimal():
        return Where(offset=int(text))
    try:
        return Where(time_ms=int(parse_since(text, now).timestamp() * 1000))
    except ValueError as error:
        choice = "earliest, latest, -N, an offset, or a time"
        raise ValueError(f"{text!r} is none of {choice}: {error}") from error


def look_up(log: TopicLog, where: Where, partition: int | None, count: int) -> Found:
    """The records, of all partitions in the order of their times, of one in that of offsets.

    Raises NotThere, and what the log raises.
    """
    log.reach()
    _, there = log.describe()
    sources = [each for each in there if partition in (None, each.partition)]
    if not sources:
        raise NotThere(f"{log.topic!r} has no partition {partition}, but 0 to {len(there) - 1}")
    if where.offset is not None and len(sources) > 1:
        said = f"an offset is of one partition, {log.topic!r} has {len(there)}: add --partition"
        raise NotThere(said)
    questions = log.questions()
    logs, ends = questions.watermarks(sources), questions.committed_ends(sources)
    bounds = {each: Watermarks(logs[each].low, ends[each]) for each in sources}
    if where.last is not None:
        newest = [reversed(_last(log, each, bounds[each], where.last)) for each in sources]
        merged = merge(*newest, key=lambda pair: -(pair[1].time_ms or 0))
        return [*islice(merged, where.last)][::-1][:count]
    begins = _begins(questions, where, bounds)
    read = [_stretch(log, each, first, bounds[each], count) for each, first in begins.items()]
    return [*islice(merge(*read, key=lambda pair: pair[1].time_ms or 0), count)]


def _begins(
    questions: Questions, where: Where, bounds: Mapping[TopicPartition, Watermarks]
) -> dict[TopicPartition, int]:
    """The first offset of each partition that has one."""
    if where.time_ms is not None:
        return questions.at_time([*bounds], where.time_ms)
    if where.offset is None:
        return {each: log.low for each, log in bounds.items()}
    ((source, log),) = bounds.items()
    if not log.low <= where.offset <= log.high:
        said = f"{source} has no offset {where.offset}: it holds {log.low} to {log.high - 1}"
        raise NotThere(said)
    return {source: where.offset}


def _stretch(
    log: TopicLog, source: TopicPartition, first: int, bounds: Watermarks, count: int
) -> Found:
    """The first records of a stretch, at most ``count``."""
    if first >= bounds.high:
        return []
    records = log.reader().read(source, first, bounds.high - 1)
    return [(source, record) for record in islice(records, count)]


def _last(log: TopicLog, source: TopicPartition, bounds: Watermarks, count: int) -> Found:
    """The newest ``count`` records. Not every offset has one: looks further back until it has."""
    reach = count
    while True:
        first = max(bounds.low, bounds.high - reach)
        found = _stretch(log, source, first, bounds, reach)
        if len(found) >= count or first == bounds.low:
            return found[-count:]
        reach *= 4
