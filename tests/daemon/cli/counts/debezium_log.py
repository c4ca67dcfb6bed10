"""A log of Debezium's records that a test writes, as real ones look, and what counting finds."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changes.formats import make_format
from changes.model.model import FormatOptions, TableName
from daemon.cli.counts.against import Against
from daemon.cli.counts.passed import with_said
from daemon.cli.counts.report import TableReport, reports
from daemon.cli.counts.result import CellKey
from daemon.cli.counts.scan import Scan, Scanned
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from sources.base.port import LogRecord
from tests.sources.fake_source import FakeSource

LOG = TopicPartition("shop", 0)
MINUTE = 29_000_000
"""A minute since 1970; ``RANGE`` begins with it."""
RANGE = range(MINUTE, MINUTE + 3)
OPS = {"I": "c", "U": "u", "D": "d", "T": "t", "R": "r"}


class TimedSource(FakeSource):
    """It finds offsets by the times of the test's records."""

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> dict[TopicPartition, int]:
        found = {}
        for source in sources:
            late = [r.offset for r in self.records.get(source, ()) if (r.time_ms or 0) >= unix_ms]
            if late:
                found[source] = min(late)
        return found


@dataclass
class Times:
    """The source's clock, and the delay after which records are in the log."""

    now_ms: int = (MINUTE - 1) * 60_000
    delay_ms: int = 500
    of_marks: bool = True
    """Marks of transactions have it, too: old readers leave it out."""


class DebeziumLog:
    """One pipeline's partitions. Each call appends a record; ``at`` sets the clock."""

    def __init__(self, *partitions: TopicPartition, low: int = 0) -> None:
        sources = partitions or (LOG,)
        self.source = TimedSource({each: Watermarks(low, low) for each in sources})
        self.clock = Times()

    def at(self, minute: int, second: int = 0) -> DebeziumLog:
        """Set the clock to a minute of the range (before it: negative)."""
        self.clock.now_ms = ((MINUTE + minute) * 60 + second) * 1000
        return self

    def put(
        self,
        value: Any,
        to: TopicPartition | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        """Append a value: an object, bytes, or none."""
        place = to or next(iter(self.source.logs))
        marks = self.source.logs[place]
        text = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        written = self.clock.now_ms + self.clock.delay_ms
        record = LogRecord(marks.high, None, text, headers, written)
        self.source.records.setdefault(place, []).append(record)
        self.source.logs[place] = Watermarks(marks.low, marks.high + 1)
        return marks.high

    def row(
        self,
        transaction: str | None,
        order: int,
        table: str = "shop.t",
        op: str = "I",
        to: TopicPartition | None = None,
        **more: Any,
    ) -> int:
        """A row event. ``more``: members of its source; ``headers`` of the record."""
        headers = more.pop("headers", ())
        database, _, name = table.partition(".")
        source = {"connector": "mariadb", "name": "one", "db": database, "table": name}
        source |= {"ts_ms": self.clock.now_ms, "snapshot": None, **more}
        told = {"id": transaction, "total_order": 9, "data_collection_order": order}
        row = {"id": 1}
        return self.put(
            {
                "before": row if op == "D" else None,
                "after": None if op in "DT" else row,
                "source": source,
                "op": OPS[op],
                "ts_ms": self.clock.now_ms,
                "transaction": None if transaction is None else told,
            },
            to,
            headers,
        )

    def begin(self, transaction: str, to: TopicPartition | None = None) -> int:
        """A BEGIN."""
        return self.put(self._mark("BEGIN", transaction, None, None), to)

    def end(
        self,
        transaction: str,
        tables: Mapping[str, int],
        to: TopicPartition | None = None,
        count: int | None = None,
    ) -> int:
        """An END. ``count``: of all events, where it contradicts the tables'."""
        total = sum(tables.values()) if count is None else count
        listed = [{"data_collection": n, "event_count": c} for n, c in tables.items()]
        return self.put(self._mark("END", transaction, total, listed), to)

    def _mark(self, status: str, id_: str, count: int | None, tables: Any) -> Any:
        told = {"status": status, "id": id_, "event_count": count, "data_collections": tables}
        return told | ({"ts_ms": self.clock.now_ms} if self.clock.of_marks else {})

    def transaction(self, id_: str, *rows: str, to: TopicPartition | None = None) -> None:
        """A whole one: each row is its op, or its table and op (``shop.u:D``)."""
        self.begin(id_, to)
        counted: dict[str, int] = {}
        for text in rows:
            table, _, op = text.rpartition(":")
            table = table or "shop.t"
            counted[table] = counted.get(table, 0) + 1
            self.row(id_, counted[table], table, op, to)
        self.end(id_, counted, to)

    def framed(self) -> DebeziumLog:
        """A transaction before the range, so that it is known to be read from its begin."""
        clock = self.clock.now_ms
        self.at(-1).transaction("before", "I")
        self.clock.now_ms = clock
        return self

    def passed(self, to: TopicPartition | None = None) -> DebeziumLog:
        """A transaction far behind the range."""
        self.at(30).transaction("after", "I", to=to)
        return self

    def scan(self, routes: Mapping[str, Collection[str]] | None = None, **options: Any) -> Scanned:
        """Count. ``routes``: by table its targets; else each table has one of its name."""

        def targets(table: TableName) -> tuple[str, ...]:
            if routes is None:
                return (f"lake.{table}",) if table.database == "shop" else ()
            return tuple(routes.get(str(table), ()))

        name, side = options.pop("format", "debezium-json"), options.pop("side", None)
        expected = options.pop("expected", None)
        against = None if expected is None else Against(RANGE, targets, expected)
        format_ = make_format(name, FormatOptions(**options))
        formats = {source.topic: format_ for source in self.source.logs}
        places = sorted(self.source.logs)
        scan = Scan(
            RANGE, targets, formats, self.source, self.source, places, side=side, against=against
        )
        found = scan.run()
        if against is None:
            return found
        return with_said(found, Snapshot("p", "g"), against, RANGE.stop * 60_000)

    def report(self, target: str = "lake.shop.t", **more: Any) -> TableReport:
        """What is said of one target."""
        return reports("p", [target], self.scan(**more), Snapshot("p", "g"), True)[0]


def cells(scanned: Scanned, target: str = "lake.shop.t") -> dict[int, tuple[int, int, int, Any]]:
    """By minute of the range: inserted, updated, deleted, expected; over all partitions one."""
    found = {}
    for key, cell in scanned.found.cells.items():
        if key.target == target:
            counted = cell.found
            minute = key.minute - MINUTE
            assert minute not in found
            found[minute] = counted.inserted, counted.updated, counted.deleted, cell.expected
    return found


def why(log: DebeziumLog, target: str = "lake.shop.t") -> tuple[str, str]:
    """The verdict, and the first reason without its place."""
    found = log.report(target)
    return found.verdict, found.why[0].partition(" at shop")[0] if found.why else ""


def key(minute: int, target: str = "lake.shop.t", at: TopicPartition = LOG) -> CellKey:
    """A cell of the range's minute."""
    return CellKey(target, *at, MINUTE + minute)
