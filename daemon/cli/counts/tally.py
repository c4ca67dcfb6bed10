"""Counts one pipeline's records: by minute, and each transaction against its END. Pure.

A transaction of which an END was seen and all events is forgotten but for its name and minute: an
event of it that comes later is a repeated message. What is open is bounded, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from changes.model.model import TableName
from changes.model.row_events import RowEvent, Told, TransactionMark
from daemon.cli.counts.against import Against
from daemon.cli.counts.cells import COLUMN, MinuteCells
from daemon.cli.counts.names import TableNames
from daemon.cli.counts.notes import Notes
from daemon.cli.counts.result import LackingTransaction, LogCounts
from daemon.cli.counts.transaction import End, TableEvents, Transaction
from offsets.position import TopicPartition

MOST_OPEN = 100_000
"""Transactions without an END, or that lack events. Fewer: of several partitions that are read
beside each other one may be ahead by more. More cost a kilobyte each."""

MOST_CLOSED = 1_000_000
"""Names of finished transactions, by which repeated messages are known: a hundred bytes each."""

MOST_SHOWN = 1000
"""Transactions that are named."""

NO_END = "a transaction's END was not read"
NO_BEGIN = "a transaction's BEGIN was not read, and events of it are missing"
NO_END_TIME = "a transaction's END has no time, and events of it are missing"
NO_NAME = "changes name no transaction"
NO_TIME = "changes without a time of the source"
TWICE = "two transactions have one name, as where the source began to number again"
MIXED = "changes of several sources are in one partition: their transactions can't be told apart"


class TooMany(Exception):
    """The range has more transactions than are kept: one line."""


class SeveralSources(Exception):
    """The partitions are of several sources, which may name transactions alike."""


Key = tuple[TopicPartition | None, str]


class LogTally:
    """One thread's. ``minutes``: the range. ``joined``: a transaction's records may be in several
    partitions, all of one source; else each partition has its own."""

    def __init__(
        self,
        minutes: range,
        targets: Callable[[TableName], tuple[str, ...]],
        joined: bool = True,
        most_open: int = MOST_OPEN,
        most_closed: int = MOST_CLOSED,
        against: Against | None = None,
    ) -> None:
        """``targets``: the asked targets of a table; none: it is not asked. ``against``: compares
        them with numbers that are not in the log."""
        self._minutes, self._joined = minutes, joined
        self._most_open, self._most_closed = most_open, most_closed
        self._targets = targets
        self._names = TableNames(targets)
        self._cells = MinuteCells(targets, against)
        self._open: dict[Key, Transaction] = {}
        self._closed: dict[Key, int | None] = {}
        self._sources: dict[TopicPartition | None, str | None] = {}
        self._mixed: set[TopicPartition | None] = set()
        self._differences: list[LackingTransaction] = []
        self._more = self._begun_only = 0
        self._lacking: Counter[str] = Counter()
        self._notes = Notes()
        self._repeated: Counter[TopicPartition] = Counter()
        self._read: Counter[str] = Counter()
        self.ends: set[TopicPartition] = set()
        """The partitions in which transactions end."""
        self.waiting = 0
        """Transactions with changes in the range that have no END yet."""

    def take(self, source: TopicPartition, offset: int, told: Told) -> None:
        """Count what a message says. Raises TooMany, SeveralSources."""
        if isinstance(told, TransactionMark):
            self._mark(source, offset, told)
        elif targets := self._targets(told.table):
            self._event(source, offset, told, targets)

    def unread(self, source: TopicPartition, offset: int, why: str) -> None:
        """Note a record of which nothing can be said."""
        said = f"a record can't be read: {why}"
        self._notes.add(("unread",), said, source, offset, of_records=True)

    def _event(
        self, source: TopicPartition, offset: int, event: RowEvent, targets: tuple[str, ...]
    ) -> None:
        if event.read:
            self._read.update(targets)
        elif event.time_ms is None:
            self._notes.add((NO_TIME, targets), NO_TIME, source, offset, targets, of_records=True)
        elif self._has_transaction(source, offset, event):
            self._in_transaction(source, offset, event, event.time_ms // 60_000)
        elif event.op in COLUMN and (minute := event.time_ms // 60_000) in self._minutes:
            self._cells.add(event.table, event.op, source, minute)
            self._cells.untell(event.table, source, minute)
            self._notes.add((NO_NAME, targets), NO_NAME, source, offset, targets)

    def _has_transaction(self, source: TopicPartition, offset: int, event: RowEvent) -> bool:
        place = None if self._joined else source
        if event.source is not None and self._sources.setdefault(place, event.source) not in (
            None, event.source,
        ):  # fmt: skip
            if self._joined:
                raise SeveralSources
            self._mixed.add(place)
            self._notes.add((MIXED, source), MIXED, source, offset)
        return event.transaction is not None and place not in self._mixed

    def _in_transaction(
        self, source: TopicPartition, offset: int, event: RowEvent, minute: int
    ) -> None:
        assert event.transaction is not None
        assert event.order is not None
        key = self._key(source, event.transaction)
        if key in self._closed:
            self._repeated[source] += 1
            return
        self._names.seen(event.table)
        inside = minute in self._minutes
        found = self._opened(key)
        events = found.tables.setdefault(event.table, TableEvents())
        if not events.numbers.add(event.order) and not found.restarted:
            self._repeated[source] += 1
            return
        events.found += 1
        found.first = found.first or (source, offset)
        if event.op != "T":
            events.places.pop((source, minute), None)
            events.places[source, minute] = None
            if inside and not found.inside:
                found.inside = True
                self.waiting += found.end is None
        if inside and event.op in COLUMN:
            self._cells.add(event.table, event.op, source, minute)
        if found.end is not None:
            self._settle(key, found)

    def _mark(self, source: TopicPartition, offset: int, mark: TransactionMark) -> None:
        key, first = self._key(source, mark.id), source not in self.ends
        if mark.ends:
            self.ends.add(source)
        minute = None if mark.time_ms is None else mark.time_ms // 60_000
        if key in self._closed:  # a reader that restarts says it again
            if mark.ends and mark.tables and minute != self._closed[key]:
                self._notes.add((TWICE,), TWICE, source, offset, (), mark.id)
            return
        found = self._opened(key)
        if not mark.ends:
            return found.begin(minute)
        found.cut |= first and not found.begun
        self.waiting -= found.inside and found.end is None
        found.ended(End(source, offset, minute, mark.tables))
        self._settle(key, found)

    def _settle(self, key: Key, found: Transaction) -> None:
        """Forget a transaction that has what its END says. One that was restarted stays: of other
        partitions numbers may come again, which are no repeated messages."""
        expected = self._expected(found)
        if (
            found.restarted
            or expected is None
            or found.doubt(expected)
            or not found.is_whole(expected)
        ):
            return
        del self._open[key]
        if found.tables:
            if len(self._closed) >= self._most_closed:
                raise TooMany(f"more than {self._most_closed:,} transactions: ask for less time")
            assert found.end is not None
            self._closed[key] = found.end.minute

    def _key(self, source: TopicPartition, id_: str) -> Key:
        return (None if self._joined else source, id_)

    def _opened(self, key: Key) -> Transaction:
        found = self._open.get(key)
        if found is None:
            if len(self._open) >= self._most_open:
                oldest = next(iter(self._open))
                self._conclude(oldest, self._open.pop(oldest))
            found = self._open[key] = Transaction()
        return found

    def _expected(self, found: Transaction) -> Mapping[TableName, int] | None:
        """By asked table what an END says; None where a name may be of several tables."""
        if found.end is None or found.end.tables is None:
            return {}
        return self._names.expected(found.end.tables)

    # --- what stays open

    def _conclude(self, key: Key, found: Transaction) -> None:
        """Say what is wrong with a transaction of the range."""
        end = found.end
        self.waiting -= found.inside and end is None
        self._begun_only += end is None and not found.tables and found.begun_minute in self._minutes
        expected = self._expected(found)
        if end is not None and found.is_timeless:
            if not found.cut and (expected != {} or end.tables is None):
                self._cant_tell(key, found, expected or {}, NO_END_TIME)
            return
        if not found.overlaps(self._minutes) or (end is None and not found.has_changes):
            return
        if end is not None and end.tables is not None and expected == {} and not found.tables:
            return  # of tables that nobody asks for
        if end is None:
            why = NO_END
        elif expected is None:
            why = "its END has a name that may be of several tables"
        else:
            why = found.doubt(expected)
            if not why and not found.begun:
                why = NO_BEGIN
        if why:
            self._cant_tell(key, found, expected or {}, why)
            return
        assert end is not None
        assert expected is not None
        for table, number, there in found.lacks(expected):
            self._differ(key, found, end, table, number, there)

    def _cant_tell(
        self, key: Key, found: Transaction, expected: Mapping[TableName, int], why: str
    ) -> None:
        tables = dict.fromkeys((*found.tables, *expected))
        targets = tuple(dict.fromkeys(t for table in tables for t in self._targets(table)))
        for table, events in found.tables.items():
            for source, minute in events.places:
                if minute in self._minutes:
                    self._cells.untell(table, source, minute)
        end = found.end
        if end is not None and end.minute is not None and end.minute in self._minutes:
            for table in expected:
                self._cells.untell(table, end.source, end.minute)
        place = found.first if end is None else (end.source, end.offset)
        assert place is not None
        self._notes.add((why, targets), why, *place, targets, key[1])

    def _differ(
        self, key: Key, found: Transaction, end: End, table: TableName, number: int, there: int
    ) -> None:
        source, minute = found.place_of_missing(table, self._minutes)
        self._cells.lack(table, source, minute, number - there)
        self._lacking.update(self._targets(table))
        if len(self._differences) >= MOST_SHOWN:
            self._more += 1
            return
        self._differences.append(
            LackingTransaction(
                key[1], end.source, end.offset, minute, str(table), self._targets(table),
                number, there,
            )
        )  # fmt: skip

    def found(self) -> LogCounts:
        """Everything, once all is read. To be called once."""
        for key, each in self._open.items():
            self._conclude(key, each)
        cells = self._cells.all(told=bool(self.ends) and not self._mixed)
        return LogCounts(
            cells, tuple(self._differences), self._more, self._notes.all(), self._repeated,
            self._read, frozenset(self.ends), self._begun_only, self._lacking,
        )  # fmt: skip
