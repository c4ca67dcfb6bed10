"""What a gate has closed, and who is still to be told of it. Pure; times are arguments.

Time is cut into partitions of one length, whose bounds are multiples of it since 1970, in UTC, by
the source's clock. They close in order; one that has closed may be reopened, and closes again under
the next version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from offsets.counts import RowCounts

KEPT = 1000
"""Closed partitions that are remembered one by one, the latest ones. Of older ones the highest
version is: one that is reopened still closes under a version that it never had."""

MOST_PENDING = 10_000
"""Notifications that wait for a way before nothing closes any more: the file has them all, and is
written whole with each. A week of partitions of a minute, 27 years of days."""

LATEST_MS = 2 * 10**14
"""No partition begins later: a moment of the year 8307. Moments have texts up to 9999."""

SUCCESS = "success"
"""The way that leaves a mark in a folder: the last word about a partition stands for all."""

Kind = Literal["closed", "reopened"]


class NotClosed(Exception):
    """Such a partition has not closed, so it can't be reopened: one line."""


@dataclass(frozen=True, slots=True)
class ClosedPartition:
    """``counts``: the row changes of each table that counts told; None: they told nothing.
    ``made``: by table of counts when the newest of them was written there, in seconds since 1970,
    0: there were none; None: no table has them. ``is_open``: it was reopened, and has not closed
    again."""

    begin_ms: int
    version: int
    at_ms: int
    counts: Mapping[str, RowCounts | None] = field(default_factory=dict)
    made: Mapping[str, int] | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification. ``ways``: those by which it was not taken yet."""

    id: str
    begin_ms: int
    kind: Kind
    document: Mapping[str, Any]
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateFinding:
    """What closes a partition. ``ends``: of each partition of the log the offset below which all
    of it is. ``counted``: whether counts agreed, too."""

    tables: tuple[str, ...]
    ends: Mapping[str, int] = field(default_factory=dict)
    counted: bool = False
    counts: Mapping[str, RowCounts | None] = field(default_factory=dict)
    made: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class GateRecord:
    """``first_ms``: where the first partition begins, ``next_ms`` the one after the last that has
    closed. ``older``: the highest version of the partitions that ``closed`` has no more.
    ``tables``: those that were complete through ``next_ms``."""

    gate: str
    length_ms: int
    first_ms: int
    next_ms: int
    closed: tuple[ClosedPartition, ...] = ()
    notices: tuple[Notice, ...] = ()
    older: int = 0
    tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError: it may be read from a file."""
        if self.length_ms < 1 or not 0 <= self.first_ms <= self.next_ms <= LATEST_MS:
            raise ValueError("its partitions are at no times")


def begin_of(moment_ms: int, length_ms: int) -> int:
    """Where the partition begins that contains a moment."""
    return moment_ms - moment_ms % length_ms


def new_record(gate: str, length_ms: int, moment_ms: int) -> GateRecord:
    """Of a gate whose first partition contains this moment."""
    begin = begin_of(moment_ms, length_ms)
    return GateRecord(gate, length_ms, begin, begin)


def due(record: GateRecord, now_ms: int, margin_ms: int) -> list[int]:
    """The partitions that may close now, by where they begin: those that were reopened, and the
    next one once it has ended by this clock, too. A source whose clock is ahead closes nothing."""
    found = [each.begin_ms for each in record.closed if each.is_open]
    if record.next_ms + record.length_ms + margin_ms <= now_ms:
        found.append(record.next_ms)
    return found


def closed(
    record: GateRecord, begin_ms: int, now_ms: int, finding: GateFinding, ways: Collection[str]
) -> GateRecord:
    """A partition that is due has closed: under version 1, or the one after its last."""
    before = _of(record, begin_ms)
    version = 1 if before is None else before.version + 1
    now = ClosedPartition(begin_ms, version, now_ms, finding.counts, finding.made)
    notice = _notice(record, "closed", now, now_ms, finding)
    others = (each for each in record.closed if each.begin_ms != begin_ms)
    if begin_ms == record.next_ms:
        next_ms = begin_ms + record.length_ms
        record = replace(record, next_ms=next_ms, tables=tuple(finding.tables))
    return _told(_bounded(replace(record, closed=_in_order(*others, now))), notice, ways)


def reopened(
    record: GateRecord, begin_ms: int, now_ms: int, tables: Collection[str], ways: Collection[str]
) -> GateRecord:
    """A closed partition has changed since. One that is open already stays as it is. Raises
    NotClosed."""
    check_closed(record, begin_ms)
    before = _of(record, begin_ms) or ClosedPartition(begin_ms, record.older, now_ms)
    if before.is_open:
        return record
    finding = GateFinding(tuple(tables), counted=bool(before.counts), counts=before.counts)
    notice = _notice(record, "reopened", before, now_ms, finding)
    others = (each for each in record.closed if each.begin_ms != begin_ms)
    all_ = _in_order(*others, replace(before, is_open=True))
    return _told(replace(record, closed=all_), notice, ways)


def check_closed(record: GateRecord, begin_ms: int) -> None:
    """Raises NotClosed, with why."""
    if begin_ms % record.length_ms:
        near = begin_of(begin_ms, record.length_ms)
        raise NotClosed(f"no partition begins at {iso(begin_ms)}: one does at {iso(near)}")
    if begin_ms >= record.next_ms:
        raise NotClosed(
            f"{iso(begin_ms)} has not closed yet: the next one is {iso(record.next_ms)}"
        )
    if begin_ms < record.first_ms:
        raise NotClosed(f"{iso(begin_ms)} never closed: the first one is {iso(record.first_ms)}")


def pending(record: GateRecord, way: str) -> tuple[Notice, ...]:
    """What was not taken by a way yet, in order."""
    return tuple(each for each in record.notices if way in each.ways)


def full(record: GateRecord, ways: Collection[str], most: int = MOST_PENDING) -> list[str]:
    """The ways for which so many notifications wait that none may be added."""
    return [way for way in ways if len(pending(record, way)) >= most]


def taken(record: GateRecord, way: str, ids: Iterable[str]) -> GateRecord:
    """Notifications were taken by a way."""
    gone = {*ids}
    left = (_without(each, way) if each.id in gone else each for each in record.notices)
    return replace(record, notices=tuple(each for each in left if each.ways))


def only_by(record: GateRecord, ways: Collection[str]) -> GateRecord:
    """Without what waits for a way that the gate has no more."""
    left = (replace(n, ways=tuple(w for w in n.ways if w in ways)) for n in record.notices)
    return replace(record, notices=tuple(each for each in left if each.ways))


def complete_through(record: GateRecord, table: str) -> int | None:
    """The moment up to which a table has all partitions closed; None: it has none. One that came
    to the gate since the last closing was proved nothing yet, and then all up to that."""
    open_ = (each.begin_ms for each in record.closed if each.is_open)
    through = min((record.next_ms, *open_))
    return through if table in record.tables and through > record.first_ms else None


def watched(record: GateRecord, now_ms: int, for_ms: int) -> list[ClosedPartition]:
    """The closed partitions that late rows reopen: those that closed within this time, and of which
    counts are known."""
    return [
        each for each in record.closed
        if not each.is_open and each.made is not None and each.at_ms >= now_ms - for_ms
    ]  # fmt: skip


def iso(moment_ms: int) -> str:
    """A moment as notifications and folders spell it."""
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    fine = "milliseconds" if moment_ms % 1000 else "seconds"
    return moment.isoformat(timespec=fine).replace("+00:00", "Z")


def _of(record: GateRecord, begin_ms: int) -> ClosedPartition | None:
    return next((each for each in record.closed if each.begin_ms == begin_ms), None)


def _in_order(*closed: ClosedPartition) -> tuple[ClosedPartition, ...]:
    return tuple(sorted(closed, key=lambda each: each.begin_ms))


def _bounded(record: GateRecord) -> GateRecord:
    """One that is open is kept, however old."""
    old = [each for each in record.closed[:-KEPT] if not each.is_open]
    if not old:
        return record
    left = tuple(each for each in record.closed if each not in old)
    return replace(record, closed=left, older=max(record.older, *(each.version for each in old)))


def _told(record: GateRecord, notice: Notice, ways: Collection[str]) -> GateRecord:
    before = record.notices
    if SUCCESS in ways:
        same = (each.id for each in before if each.begin_ms == notice.begin_ms)
        before = taken(record, SUCCESS, same).notices
    if not ways:
        return replace(record, notices=before)
    return replace(record, notices=(*before, replace(notice, ways=tuple(ways))))


def _without(notice: Notice, way: str) -> Notice:
    return replace(notice, ways=tuple(each for each in notice.ways if each != way))


def _notice(
    record: GateRecord, kind: Kind, of: ClosedPartition, now_ms: int, finding: GateFinding
) -> Notice:
    name = f"{record.gate}:{iso(of.begin_ms)}:{of.version}"
    id_ = name if kind == "closed" else f"{name}:{kind}"
    counts = {table: finding.counts.get(table) for table in finding.tables}
    document = {
        "id": id_,
        "type": kind,
        "gate": record.gate,
        "from": iso(of.begin_ms),
        "through": iso(of.begin_ms + record.length_ms),
        "version": of.version,
        "at": iso(now_ms),
        "tables": {table: None if c is None else c._asdict() for table, c in counts.items()},
        "ends": dict(finding.ends),
        "counts": finding.counted,
    }
    return Notice(id_, of.begin_ms, kind, document, ())
