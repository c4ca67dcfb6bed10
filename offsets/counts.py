"""Row changes of the source that a target holds, by the minute of the source's clock. Pure.

Each write carries those of its messages in its marks, so that both are published in one step: what
is counted is written, once. They are kept there until the table of counts has them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from offsets.position import TopicPartition

NO_MINUTE = 0
"""Stands for the minute where records don't tell when their changes happened, as rows do that were
read from a table."""

LAST_MINUTE = 4_223_371_679
"""The last one of the year 9999: no table can have a later time."""

LAST = 2**63 - 1
"""No offset is larger."""

MOST_MINUTES = 1440
"""So many minutes of a lane are kept apart, the latest ones. What is older, where the table of
counts takes none for a day, is counted as of no minute."""


class RowCounts(NamedTuple):
    """How many row changes: one that changes a row's key is an update."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserted + self.updated + self.deleted

    def plus(self, other: RowCounts) -> RowCounts:
        """Both together."""
        return RowCounts(*map(int.__add__, self, other))

    def minus(self, other: RowCounts) -> RowCounts:
        """These without the other ones."""
        return RowCounts(*map(int.__sub__, self, other))


Minutes = Mapping[int, RowCounts]
"""By minutes since 1970, of the source's clock."""


class LaneCounts(NamedTuple):
    """What a target holds of one lane's messages behind ``after``, up to and with ``through``.

    ``since`` names the write that began it. ``through`` may be amid a message whose first entries
    are counted.
    """

    since: str
    after: int
    through: int
    minutes: Minutes


class CountedWrite(Protocol):
    """What counts ask of a write."""

    @property
    def batch_id(self) -> str:
        """Names it, over restarts too."""
        ...

    @property
    def counts(self) -> Mapping[TopicPartition, Minutes] | None:
        """The changes in it; None: nobody has counted them."""
        ...

    @property
    def folded(self) -> Mapping[TopicPartition, LaneCounts]:
        """What the table of counts has by now: the write leaves that out of the marks."""
        ...


def minute_of(time_ms: int | None) -> int:
    """The minute of a time in milliseconds since 1970; of none where it is none that a table could
    have, as that of a source whose messages have microseconds instead."""
    minute = NO_MINUTE if time_ms is None else time_ms // 60_000
    return minute if NO_MINUTE < minute <= LAST_MINUTE else NO_MINUTE


def merged(parts: Iterable[Minutes]) -> dict[int, RowCounts]:
    """All of them together."""
    found: dict[int, RowCounts] = {}
    for part in parts:
        for minute, counts in part.items():
            found[minute] = found[minute].plus(counts) if minute in found else counts
    return found


def of_all(parts: Iterable[Mapping[TopicPartition, Minutes]]) -> dict[TopicPartition, Minutes]:
    """By lane, all of them together."""
    found: dict[TopicPartition, list[Minutes]] = {}
    for part in parts:
        for lane, minutes in part.items():
            found.setdefault(lane, []).append(minutes)
    return {lane: merged(minutes) for lane, minutes in found.items()}


def counts_after(
    held: Mapping[TopicPartition, LaneCounts],
    write: CountedWrite,
    spans: Mapping[TopicPartition, tuple[int, int]],
) -> Mapping[TopicPartition, LaneCounts]:
    """What the marks carry once a write is published. ``spans``: of each of its lanes the mark
    before and after it. A run of counts ends where changes come that are not counted."""
    if write.counts is None:
        still = (lane for lane in held if lane not in spans or len({*spans[lane]}) == 1)
        return {lane: held[lane] for lane in still} if held else held
    found = dict(held)
    for lane, folded in write.folded.items():
        if lane in found and found[lane].since == folded.since:
            found[lane] = _without(found[lane], folded, write.batch_id)
    for lane, (after, through) in spans.items():
        mine, more = found.get(lane), write.counts.get(lane, {})
        if mine is None or mine.through != after:  # else somebody has moved the mark
            mine = LaneCounts(write.batch_id, after, after, {})
        found[lane] = mine._replace(through=through, minutes=_bounded(merged((mine.minutes, more))))
    return found


def _without(mine: LaneCounts, folded: LaneCounts, since: str) -> LaneCounts:
    """What came behind the fold. Minutes that were too old meanwhile are among those of none."""
    left = dict(mine.minutes)
    for minute, counts in folded.minutes.items():
        at = minute if minute in left else NO_MINUTE
        left[at] = left.get(at, RowCounts()).minus(counts)
    minutes = {minute: counts for minute, counts in left.items() if any(counts)}
    return LaneCounts(since, folded.through, mine.through, minutes)


def _bounded(minutes: Minutes) -> Minutes:
    """The latest minutes; the older ones as of no minute."""
    if len(minutes) <= MOST_MINUTES:
        return minutes
    late = sorted(minutes)[-MOST_MINUTES + 1 :]
    old = merged({NO_MINUTE: counts} for minute, counts in minutes.items() if minute < late[0])
    return old | {minute: minutes[minute] for minute in late}


def to_json(counts: LaneCounts) -> list[object]:
    """As marks keep it."""
    minutes = {str(minute): list(each) for minute, each in sorted(counts.minutes.items())}
    return [counts.since, counts.after, counts.through, minutes]


def from_json(entry: Sequence[object]) -> LaneCounts:
    """Read back what ``to_json`` made."""
    since, after, through, minutes = entry
    assert isinstance(minutes, dict)
    found = {int(minute): RowCounts(*each) for minute, each in minutes.items()}
    return LaneCounts(str(since), int(str(after)), int(str(through)), found)


# The table of counts, read.


class CountRow(NamedTuple):
    """Rows of the table of counts: what a lane's changes in a run of writes were.

    ``made`` is when they were written, in seconds since 1970. A run that went on after it was
    written is written again, up to where it is then; which of both the next run begins behind is
    known when that one is written.
    """

    target: str
    lane: TopicPartition
    made: int
    run: LaneCounts


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """What the table of counts says of one lane of a target.

    ``runs``: in order; none meets another. ``doubtful``: minutes of which changes may be missing
    here: the log was read again from amid what a run had counted, and that is left out as a whole.
    ``whole_from``: the offset from which on reading once more would count these, too.
    """

    runs: tuple[LaneCounts, ...]
    doubtful: frozenset[int] = frozenset()
    whole_from: int | None = None

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The offsets that are counted, each behind the first and up to the second."""
        return tuple((run.after, run.through) for run in self.runs)

    def minutes(self, first: int = 0, last: int = LAST) -> Minutes:
        """What the runs that have an offset of this range counted, ends included."""
        return merged(run.minutes for run in self.runs if run.after < last and run.through >= first)

    def has(self, offset: int) -> bool:
        """Whether an offset is counted."""
        place = bisect_left(self.runs, offset, key=lambda run: run.through)
        return place < len(self.runs) and self.runs[place].after < offset


def held(rows: Iterable[CountRow]) -> HeldCounts:
    """What the rows of one lane of a target say together.

    Where offsets were counted again, because the log was read again, the later run is right.
    """
    kept: list[LaneCounts] = []
    doubtful: set[int] = set()
    begins: list[int] = []
    for versions in _latest_first(rows):
        fitting = (v for v in versions if not any(_meet(v, each) for each in kept))
        if (found := next(fitting, None)) is not None:
            kept.append(found)
        elif not _cover(kept, versions[-1]):
            doubtful.update(versions[-1].minutes)
            begins.append(versions[-1].after + 1)
    runs = sorted(kept, key=lambda run: (run.after, run.through))
    return HeldCounts(tuple(runs), frozenset(doubtful), min(begins, default=None))


def _latest_first(rows: Iterable[CountRow]) -> Iterator[list[LaneCounts]]:
    """The runs, the latest one first, each as it was written, the longest first."""
    runs: dict[str, dict[int, LaneCounts]] = {}
    made: dict[str, tuple[int, int]] = {}
    for row in rows:
        versions, run = runs.setdefault(row.run.since, {}), row.run
        before = versions.get(run.through, run)
        versions[run.through] = run._replace(minutes={**before.minutes, **run.minutes})
        place = row.made, run.through
        made[run.since] = max(place, made.get(run.since, place))
    for since in sorted(runs, key=lambda since: made[since], reverse=True):
        yield [runs[since][through] for through in sorted(runs[since], reverse=True)]


def _meet(one: LaneCounts, other: LaneCounts) -> bool:
    return one.after < other.through and other.after < one.through


def _cover(kept: Iterable[LaneCounts], run: LaneCounts) -> bool:
    """Whether all of it was counted by others."""
    at = run.after
    for each in sorted(kept, key=lambda each: each.after):
        if each.after <= at:
            at = max(at, each.through)
    return at >= run.through
