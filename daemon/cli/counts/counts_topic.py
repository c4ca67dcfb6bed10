"""Reads a topic that says how many changes the source made.

Its messages are JSON, one object each or an array of them: counts, ``{"table", "minute",
"operation", "n"}`` and maybe ``"part"``; and closings, ``{"table", "closed"}``. A count replaces
the one before of the same table, minute, operation and part, so one that is delivered twice counts
once; parts add up. What is not closed is not told: more of it may come.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from daemon.cli.base.texts import time_text
from daemon.cli.counts.expected import (
    MOST_COUNTS,
    ExpectedCounts,
    NoCount,
    column_of,
    table_of,
    whole,
)  # fmt: skip
from daemon.cli.counts.tally import TooMany
from offsets.counts import LAST_MINUTE, RowCounts
from offsets.position import TopicPartition
from settings.counted import counted
from settings.units import moment_of
from sources.base.port import LogRecord
from sources.base.topics import TopicLog

EARLY_MS = 600_000
"""So long before the range the topic is read: clocks differ. A count is never as old as that."""

AHEAD_MINUTES = 1440
"""A minute that is further ahead of its message is none: a number of seconds, say."""

COUNT, CLOSING = {"table", "minute", "operation", "n", "part"}, {"table", "closed"}
"""The members of each. A name that is misspelt may be a part's, whose count would replace another;
and a closing with a count would close without it."""

Piece = tuple[int, int, str]
"""Minute, operation, part."""


class TopicCounts:
    """The counts of a range. One thread's. Partitions are taken one after the other."""

    def __init__(self, topic: str, minutes: range, most: int = MOST_COUNTS) -> None:
        self._topic, self._minutes, self._most = topic, minutes, most
        self._pieces: dict[str, dict[Piece, int]] = {}
        self._homes: dict[str, dict[TopicPartition, None]] = {}
        self._closed_ms: dict[str, dict[TopicPartition, int]] = {}
        self._late: dict[TopicPartition, str] = {}
        self._unread: tuple[int, str] | None = None
        self._number = 0

    def begin(self, source: TopicPartition, first: LogRecord) -> None:
        """The first record that the topic has: what came before it is gone, or never was."""
        if (first.time_ms or 0) >= self._minutes.start * 60_000:
            self._late[source] = (
                f"{source} begins at {first.offset}, amid the range, at "
                f"{time_text(first.time_ms or 0)[:16]}Z"
            )

    def take(self, source: TopicPartition, record: LogRecord) -> None:
        """One record. Raises TooMany."""
        try:
            told = json.loads(record.value or b"")
            parsed = [_parsed(one, record) for one in (told if isinstance(told, list) else [told])]
        except (ValueError, RecursionError, NoCount) as error:
            why = str(error) if isinstance(error, NoCount) else "it is no JSON"
            at_ms = -1 if record.time_ms is None else record.time_ms
            if self._unread is None or at_ms < self._unread[0]:
                self._unread = at_ms, f"{source}:{record.offset} can't be read: {why}"
            return
        for table, piece, number in parsed:
            homes = self._homes.setdefault(table, {})
            closed_ms = self._closed_ms.setdefault(table, {})
            if piece is None and number >= self._minutes.stop:
                closed_ms.setdefault(source, record.time_ms or 0)
            elif piece is not None and piece[0] in self._minutes:
                homes[source] = None
                self._put(table, piece, number)

    def _put(self, table: str, piece: Piece, number: int) -> None:
        mine = self._pieces.setdefault(table, {})
        self._number += piece not in mine
        if self._number > self._most:
            most = counted(self._most, "count")
            raise TooMany(f"topic {self._topic}: more than {most} in the range: ask for less time")
        mine[piece] = number

    def expected(self) -> ExpectedCounts:
        """What all of that says."""
        found: dict[str, dict[int, RowCounts]] = {}
        why: dict[str, str] = {}
        for table in self._homes:
            if (reason := self._why(table)) is not None:
                why[table] = reason
                continue
            minutes: dict[int, RowCounts] = {}
            for (minute, column, _), number in self._pieces.get(table, {}).items():
                more = RowCounts(*(number * (at == column) for at in range(3)))
                minutes[minute] = minutes.get(minute, RowCounts()).plus(more)
            found[table] = minutes
        unread = "" if self._unread is None else self._unread[1]
        return ExpectedCounts(f"topic {self._topic}", found, why, "", unread or "no closing")

    def _why(self, table: str) -> str | None:
        """Its counts of the range are in one partition, and so is their closing. What is of other
        ranges does not matter: a table's messages may move between two ranges."""
        homes, closed_ms = [*self._homes[table]], self._closed_ms[table]
        if not homes and closed_ms:
            homes = [min(closed_ms, key=lambda source: closed_ms[source])]
        places = homes[:2] if closed_ms.keys() & {*homes} else [*homes[:1], *closed_ms][:2]
        if len(places) > 1:
            return f"its messages are in {places[0]} and in {places[1]}"
        at_ms = closed_ms[places[0]] if closed_ms else None
        if self._unread is not None and (at_ms is None or self._unread[0] <= at_ms):
            return self._unread[1]
        if at_ms is None:
            return f"{table} is not closed through {time_text(self._minutes.stop * 60_000)[:16]}Z"
        return self._late.get(places[0])


def _parsed(told: Any, record: LogRecord) -> tuple[str, Piece | None, int]:
    """Table, what is counted and how many; or of a closing no such piece, and through when. Raises
    NoCount."""
    if not isinstance(told, dict):
        raise NoCount("it is no object, and no array of them")
    closes = "closed" in told
    if others := told.keys() - (CLOSING if closes else COUNT):
        what = "closing" if closes else "count"
        raise NoCount(f"{min(others)!r} is no member of a {what}")
    table = table_of(told.get("table"))
    if closes:
        return table, None, _minute(told["closed"], record)
    part = told.get("part", "")
    if not isinstance(part, str):
        raise NoCount(f"part {part!r} is no text")
    piece = _minute(told.get("minute"), record), column_of(told.get("operation")), part
    return table, piece, whole(told.get("n"), "number of changes")


def _minute(value: Any, record: LogRecord) -> int:
    """A number since 1970, or a time with its zone. Raises NoCount."""
    if isinstance(value, str):
        try:
            minute = int(moment_of(value, "2026-11-01T00:00:00Z").timestamp() // 60)
        except (ValueError, OverflowError) as error:
            raise NoCount(str(error)) from error
    else:
        minute = whole(value, "minute since 1970")
    latest = LAST_MINUTE if record.time_ms is None else record.time_ms // 60_000 + AHEAD_MINUTES
    if not 0 <= minute <= min(latest, LAST_MINUTE):
        raise NoCount(f"minute {minute} is more than a day behind its message")
    return minute


def counts_of_topic(log: TopicLog, minutes: range) -> ExpectedCounts:
    """What a topic says of a range. Raises TooMany, TopicMissing, NotAnswered, LogUnreadable,
    LogGone."""
    _, sources = log.describe()
    questions, reader = log.questions(), log.reader()
    by = f"topic {log.topic}"
    for how in questions.compacted([log.topic]).values():
        return ExpectedCounts(by, why_all=f"{by} {how}: counts of it may be gone")
    begin_ms = max(0, minutes.start * 60_000 - EARLY_MS)
    lows = questions.watermarks(sources)
    begins, ends = questions.at_time(sources, begin_ms), questions.committed_ends(sources)
    found = TopicCounts(log.topic, minutes)
    for source in sources:
        first, end = begins.get(source, ends[source]), ends[source]
        records: Iterable[LogRecord] = reader.read(source, first, end - 1) if first < end else ()
        for number, record in enumerate(records):
            if number == 0 and first <= lows[source].low:
                found.begin(source, record)
            found.take(source, record)
    return found.expected()
