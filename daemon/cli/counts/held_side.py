"""What targets hold of the log's changes, by the pipeline's table of counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changes.formats.engine.format import earliest
from changes.model.model import TableName
from changes.model.row_events import RowEvent
from daemon.cli.base.texts import time_text
from daemon.state.dead_letters.standing import Standing
from offsets.counts import NO_MINUTE, CountRow, HeldCounts, LaneCounts, RowCounts, held
from offsets.position import TopicPartition
from settings.counted import counted

Lane = tuple[str, TopicPartition]

NOTHING = HeldCounts(())


@dataclass(frozen=True, slots=True)
class HeldDifference:
    """A minute of which a target holds another number of changes than the log has."""

    source: TopicPartition
    minute: int
    in_log: int
    held: int


@dataclass(frozen=True, slots=True)
class TargetHolds:
    """One target. ``held``: its changes of the range. ``letters``: changes in dead letters that
    somebody has decided about. ``open``: that nobody has, a line each. ``why``: what can't be told,
    a line each."""

    held: int = 0
    letters: int = 0
    open: tuple[str, ...] = ()
    differences: tuple[HeldDifference, ...] = ()
    why: tuple[str, ...] = ()


@dataclass(slots=True)
class _Some:
    """How many changes, and the offset of the first one: a day may have millions."""

    number: int = 0
    first: int = 0

    def add(self, offset: int) -> None:
        """One more."""
        self.first = self.first if self.number else offset
        self.number += 1


@dataclass(slots=True)
class _Seen:
    """What the log has for one lane of a target."""

    minutes: Counter[int] = field(default_factory=Counter)
    uncounted: _Some = field(default_factory=_Some)
    open: _Some = field(default_factory=_Some)
    letters: int = 0


def as_targets_count(
    events: Sequence[RowEvent], targets: Callable[[TableName], tuple[str, ...]]
) -> Iterator[tuple[RowEvent, tuple[str, ...]]]:
    """The events of one message with the targets that are to hold them, and the time by which these
    count them: the earliest of what the message has for a target."""
    if len({event.time_ms for event in events}) < 2:
        yield from ((event, targets(event.table)) for event in events)
        return
    parts: dict[str, list[RowEvent]] = {}
    for event in events:
        for target in targets(event.table):
            parts.setdefault(target, []).append(event)
    for target, part in parts.items():
        time_ms = earliest(event.time_ms or 0 for event in part)
        yield from ((event._replace(time_ms=time_ms), (target,)) for event in part)


class HeldSide:
    """One range of one pipeline's log, beside what its targets hold. One thread's."""

    def __init__(
        self,
        minutes: range,
        rows: Callable[[TopicPartition, int], Iterable[CountRow]],
        letters: Callable[[TopicPartition, int], Mapping[str | None, Standing]],
    ) -> None:
        """``rows``: of all targets the runs that reach an offset of a lane. ``letters``: by target
        where a record's dead letter stands; of None one for no single target."""
        # From 1970 on is from ever on: that minute stands for none.
        self._minutes = range(max(minutes.start, NO_MINUTE + 1), minutes.stop)
        self._rows, self._letters = rows, letters
        self._begins: Mapping[TopicPartition, int] = {}
        self._held: dict[TopicPartition, dict[str, HeldCounts]] = {}
        self._seen: dict[Lane, _Seen] = {}
        self._late: dict[TopicPartition, list[tuple[int, int]]] = {}

    def begin(self, begins: Mapping[TopicPartition, int]) -> None:
        """The log is read from these offsets on: forget what was seen of it before."""
        self._begins = begins
        self._held.clear()
        self._seen.clear()
        self._late.clear()

    def see(
        self, source: TopicPartition, offset: int, event: RowEvent, targets: Iterable[str]
    ) -> None:
        """A row event of the log that targets are to hold; also one that was there before, and each
        half of a changed key."""
        if event.read or event.op == "T" or event.time_ms is None:
            return
        minute = event.time_ms // 60_000
        if minute not in self._minutes:
            return
        of_lane, letters = self._of(source), self._letters(source, offset)
        for target in targets:
            seen = self._seen.setdefault((target, source), _Seen())
            letter, lane = letters.get(target) or letters.get(None), of_lane.get(target, NOTHING)
            at = offset if letter is None else letter.offset
            if letter is not None and letter.state == "open":
                seen.open.add(at)
            elif (letter is None or letter.replayed) and not lane.has(at):
                seen.uncounted.add(at)
            elif letter is not None:
                seen.letters += 1
            else:
                seen.minutes[minute] += 1

    def is_amid(self, source: TopicPartition, offset: int) -> bool:
        """Whether reading would end, before this offset, amid what was counted together with
        changes of the range: the rest of it may have some, too."""
        if source not in self._late:
            runs = [run for lane in self._of(source).values() for run in lane.runs]
            late = [run for run in runs if run.through >= offset and self._is_of_range(run)]
            self._late[source] = [(run.after, run.through) for run in late]
        return any(after < offset - 1 and at >= offset for after, at in self._late[source])

    def _is_of_range(self, run: LaneCounts) -> bool:
        return any(minute in self._minutes for minute in run.minutes)

    def _of(self, source: TopicPartition) -> dict[str, HeldCounts]:
        found = self._held.get(source)
        if found is None:
            by_target: dict[str, list[CountRow]] = {}
            for row in self._rows(source, self._begins[source]):
                by_target.setdefault(row.target, []).append(row)
            found = self._held[source] = {name: held(rows) for name, rows in by_target.items()}
        return found

    def holds(self, ends: Mapping[TopicPartition, int]) -> dict[str, TargetHolds]:
        """By target what it holds. ``ends``: of each partition the offset that was read last."""
        read = {source: (self._begins[source], last) for source, last in ends.items()}
        for source in read:
            for name in self._of(source):
                self._seen.setdefault((name, source), _Seen())
        lanes: dict[str, list[TopicPartition]] = {}
        for target, source in sorted(self._seen):
            if source in read:
                lanes.setdefault(target, []).append(source)
        return {target: self._target(target, sources, read) for target, sources in lanes.items()}

    def _target(
        self,
        target: str,
        sources: Sequence[TopicPartition],
        read: Mapping[TopicPartition, tuple[int, int]],
    ) -> TargetHolds:
        total, letters = 0, 0
        open_: list[str] = []
        differences: list[HeldDifference] = []
        why: list[str] = []
        for source in sources:
            seen = self._seen[target, source]
            lane = self._held[source].get(target, NOTHING)
            minutes = lane.minutes(*read[source])
            total += sum(minutes[n].total for n in self._minutes if n in minutes)
            letters += seen.letters
            found = [*self._differences(source, seen, minutes)]
            why += self._why(source, seen, lane)
            if (timeless := minutes.get(NO_MINUTE, RowCounts()).total) and found:
                # Some of them may be of these minutes: not told, but never equal.
                said = counted(timeless, "change", "changes")
                first = time_text(found[0].minute * 60_000)[:16]
                why.append(
                    f"{said} of {source} are counted without a minute, and from {first}Z on "
                    f"{counted(len(found), 'minute differs', 'minutes differ')}"
                )
            else:
                differences += found
            if seen.open.number:
                what = counted(seen.open.number, "change is an open dead letter",
                               "changes are open dead letters")  # fmt: skip
                open_.append(f"{what}, first {source}:{seen.open.first}")
        return TargetHolds(total, letters, tuple(open_), tuple(differences), tuple(why))

    def _differences(
        self, source: TopicPartition, seen: _Seen, minutes: Mapping[int, RowCounts]
    ) -> Iterator[HeldDifference]:
        for minute in sorted({*seen.minutes, *minutes}):
            there = minutes[minute].total if minute in minutes else 0
            if minute in self._minutes and there != seen.minutes[minute]:
                yield HeldDifference(source, minute, seen.minutes[minute], there)

    def _why(self, source: TopicPartition, seen: _Seen, lane: HeldCounts) -> Iterator[str]:
        if seen.uncounted.number:
            what = counted(seen.uncounted.number, "change is", "changes are")
            yield f"{what} not counted in the target, first {source}:{seen.uncounted.first}"
        if doubtful := sorted(lane.doubtful.intersection(self._minutes)):
            first = time_text(doubtful[0] * 60_000)[:16]
            yield (
                f"{source} was read again, and what was counted before is not whole, from {first}Z"
                f" on: reading it from offset {lane.whole_from} on counts it again"
            )
