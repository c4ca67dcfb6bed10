"""Reads one pipeline's log around a range of time, and counts it.

Partitions are read beside each other by the times of their records, so that a transaction's records
in several of them come close together. Each is read from a while before the range to a while behind
it: clocks differ, and a change is as old as its statement, not as its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import groupby

from changes.formats.engine.format import Format
from changes.model.model import BadMessage, Head, Kind, TableName
from changes.model.row_events import RowEvent, Told, TransactionMark
from daemon.cli.counts.against import Against, SourceSays
from daemon.cli.counts.bounds import SKEW_MS, BeginsLate, Bounds
from daemon.cli.counts.held_side import HeldSide, TargetHolds, as_targets_count
from daemon.cli.counts.result import LogCounts
from daemon.cli.counts.tally import LogTally, SeveralSources
from daemon.state.command_schemas import CommandSchemas
from offsets.position import TopicPartition
from settings.counted import counted
from sources.base.consumed import as_consumed, topics_format
from sources.base.port import LogRecord, Questions, Reader

MARGIN_S = 60
"""How long before the range the log is read, at first: ten times as long each time that no change
of before it is there."""

AT_ONCE = 500
"""Records whose heads are read together."""

MOST_PARTITIONS = 32
"""Partitions that are read beside each other: each has a client of its own, and its memory."""


class TooWide(Exception):
    """There are more partitions than can be read together: one line."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """``ranges``: of each partition what was read of it."""

    found: LogCounts
    ranges: tuple[Bounds, ...]
    holds: Mapping[str, TargetHolds] | None = None
    """By target what it holds; None where the pipeline counts nothing."""
    says: Mapping[str, SourceSays] | None = None
    """By target what is said beside the log; None where ENDs alone say something."""
    nothing: SourceSays | None = None
    """What is said of the others."""


class Scan:
    """One range of one pipeline's log. One thread's."""

    def __init__(
        self,
        minutes: range,
        targets: Callable[[TableName], tuple[str, ...]],
        formats: Mapping[str, Format],
        questions: Questions,
        reader: Reader,
        sources: list[TopicPartition],
        schemas: CommandSchemas | None = None,
        side: HeldSide | None = None,
        against: Against | None = None,
    ) -> None:
        """``formats``: by topic; none of a topic without records. ``against``: the numbers that are
        said beside the log, as they were before it is read. Raises TooWide."""
        if len(sources) > MOST_PARTITIONS:
            raise TooWide(
                f"the pipeline reads {counted(len(sources), 'partition')}: counts join the "
                f"transactions of at most {MOST_PARTITIONS}"
            )
        self._minutes, self._targets, self._formats = minutes, targets, formats
        self._from_ms, self._to_ms = minutes.start * 60_000, minutes.stop * 60_000
        self._questions, self._reader, self._sources = questions, reader, sources
        self._schemas, self._side, self._against = schemas, side, against
        self._margins_s = dict.fromkeys(sources, MARGIN_S)
        self._behind: set[str] = set()
        """Transactions that have changes behind the range."""

    def run(self) -> Scanned:
        """Read and count. Raises TooMany, RangeGone, NotAnswered, LogUnreadable, LogGone,
        RouteConflict."""
        joined = True
        while True:
            ranges, against = self._ranges(), self._against
            tally = LogTally(self._minutes, self._targets, joined, against=against)
            self._behind.clear()
            try:
                if against is not None:
                    against.begin()
                if (side := self._side) is not None:
                    side.begin({source: at.begin for source, at in ranges.items()})
                self._count(tally, ranges)
                ends = {source: at.read_to - 1 for source, at in ranges.items()}
                holds = None if side is None else side.holds(ends)
                in_order = tuple(ranges[source] for source in self._sources)
                return Scanned(tally.found(), in_order, holds)
            except SeveralSources:
                joined = False
            except BeginsLate as late:
                self._margins_s[late.source] *= 10

    def _ranges(self) -> dict[TopicPartition, Bounds]:
        marks = self._questions.watermarks(self._sources)
        ends = self._questions.committed_ends(self._sources)

        def at(unix_ms: int, sources: list[TopicPartition]) -> Mapping[TopicPartition, int]:
            return self._questions.at_time(sources, unix_ms) if sources else {}

        begins: dict[TopicPartition, int] = {}
        for margin_s in set(self._margins_s.values()):
            some = [source for source in self._sources if self._margins_s[source] == margin_s]
            begins |= at(max(0, self._from_ms - margin_s * 1000), some)
        found = {}
        for source in self._sources:
            low, end = marks[source].low, ends[source]
            begin = min(max(begins.get(source, end), low), end)
            found[source] = Bounds(source, low, begin, end, read_to=begin)
        return found

    def _count(self, tally: LogTally, ranges: Mapping[TopicPartition, Bounds]) -> None:
        logs = [self._records(tally, each) for each in ranges.values() if each.begin < each.end]
        records = merge(*logs, key=lambda pair: pair[1].time_ms or 0)
        for source, group in groupby(records, key=lambda pair: pair[0]):
            some: list[LogRecord] = []
            for _, record in group:
                some.append(record)
                # Where reading ends is told by the times of records that were looked at.
                if len(some) >= (1 if ranges[source].latest_ms is None else AT_ONCE):
                    self._take(tally, ranges, source, some)
                    some = []
            self._take(tally, ranges, source, some)

    def _records(
        self, tally: LogTally, bounds: Bounds
    ) -> Iterator[tuple[TopicPartition, LogRecord]]:
        for record in self._reader.read(bounds.source, bounds.begin, bounds.end - 1):
            waiting = bool(tally.ends) and tally.waiting > 0
            waiting |= self._against is not None and self._against.missing > 0
            is_over = bounds.is_over(self._to_ms, record.time_ms, waiting)
            side, at = self._side, record.offset
            if is_over and not (side is not None and side.is_amid(bounds.source, at)):
                return
            bounds.read_to = record.offset + 1
            yield bounds.source, record
        bounds.read_to = bounds.end

    def _take(
        self,
        tally: LogTally,
        ranges: Mapping[TopicPartition, Bounds],
        source: TopicPartition,
        records: list[LogRecord],
    ) -> None:
        if not records:
            return
        format_ = self._formats.get(source.topic)
        if format_ is None:
            for record in records:
                tally.unread(source, record.offset, "the format of its topic is not known")
            return
        values = [as_consumed(format_, source.topic, record) for record in records]
        if self._schemas is not None:
            self._schemas.fetch(values)
        one = topics_format(format_, source.topic)
        one.turn_to(str(source), records[0].offset, records[-1].offset + 1)
        for record, value, head in _heads(one, records, values, tally, source):
            try:
                self._look(tally, ranges[source], record, one, value, head)
            except BadMessage as bad:
                tally.unread(source, record.offset, str(bad))

    def _look(
        self,
        tally: LogTally,
        bounds: Bounds,
        record: LogRecord,
        format_: Format,
        value: bytes | None,
        head: Head,
    ) -> None:
        source, offset, log_ms = bounds.source, record.offset, record.time_ms
        if head.kind is Kind.PART:
            tally.unread(source, offset, "it is a part of a message, which is not counted")
            return
        needless = head.kind is Kind.ROWS and bounds.started and bounds.passed
        if needless and head.table is not None and not self._targets(head.table):
            return
        told = format_.row_events(value, head)
        if not told and head.kind is Kind.NOTHING:
            time_ms = format_.source_ms(value)
            bounds.see_time(time_ms, log_ms, self._from_ms, self._to_ms)
        for each in told:
            bounds.see(each, log_ms, self._from_ms, self._to_ms)
            self._pass_end(bounds, each)
            tally.take(source, offset, each)
            if self._against is not None and isinstance(each, RowEvent):
                self._against.see(each.table)
        if self._side is not None:
            events = [each for each in told if isinstance(each, RowEvent)]
            for event, targets in as_targets_count(events, self._targets):
                self._side.see(source, offset, event, targets)

    def _pass_end(self, bounds: Bounds, told: Told) -> None:
        """An END of a transaction with changes behind the range is behind it, too."""
        if isinstance(told, TransactionMark):
            if told.ends and told.id in self._behind:
                bounds.passed = True
        elif bounds.passed and _is_behind(told, self._to_ms) and len(self._behind) < AT_ONCE:
            assert told.transaction is not None
            self._behind.add(told.transaction)


def _is_behind(event: RowEvent, to_ms: int) -> bool:
    late = event.time_ms is not None and event.time_ms > to_ms + SKEW_MS
    return late and not event.read and event.transaction is not None


def _heads(
    format_: Format,
    records: list[LogRecord],
    values: list[bytes | None],
    tally: LogTally,
    source: TopicPartition,
) -> Iterator[tuple[LogRecord, bytes | None, Head]]:
    """The heads of records; one that can't be read is noted, and the next one is read."""
    at = 0
    while at < len(values):
        try:
            for head in format_.heads(values[at:]):
                yield records[at], values[at], head
                at += 1
        except BadMessage as bad:
            tally.unread(source, records[at].offset, str(bad))
            at += 1
