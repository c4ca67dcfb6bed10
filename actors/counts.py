"""Folds the counts that targets' marks carry into the table of counts.

A run of counts is written whole each time, by its own name: writing it again changes nothing, so a
crash between a target's write and the fold, or between the fold and the next write, loses and
doubles nothing. What the table has, the target's next write leaves out of its marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import Figures, bare
from actors.contract.of_counts import SideFigures
from actors.own_table import OwnTable
from actors.runtime.mailbox import Tick
from changes.model.counts_table import SCHEMA
from changes.model.model import TargetName
from changes.routes.routing import shard_of
from offsets.counts import CountRow, LaneCounts
from offsets.cuts import next_number
from offsets.position import NO_OFFSET, TopicPartition

FOLD_EVERY_S = 60.0
"""So old are counts at most that the table does not have, while its sink answers."""

MANY_MINUTES = 240
"""So many minutes of one lane are folded at once: a log is read that is behind."""

Held = Mapping[TopicPartition, LaneCounts]


@dataclass(slots=True)
class _Fold:
    """The write that is being made: what of which targets, and how many runs that ended."""

    held: dict[str, Held]
    ended: int
    number: int
    rows: int
    path: str | None = None

    def written(self, path: str) -> None:
        """Its rows are in this file."""
        self.path = path


@dataclass(slots=True)
class _Reading:
    """Targets whose marks are to be read: an earlier run's counts, or another member's, may be in
    them. One after the other."""

    names: set[str]
    asked: str | None = None
    failed: dict[str, str] = field(default_factory=dict)

    def next(self) -> str | None:
        """The next one, from now on the one that is asked for; None: that was all of them."""
        self.asked = min(self.names - self.failed.keys(), default=None)
        return self.asked

    def again(self, names: Iterable[str]) -> None:
        """These too."""
        self.names.update(names)

    def read(self, name: str) -> None:
        """It is read, or can't ever be."""
        self.names.discard(name)


class CountsLogic:
    """One per pipeline that counts. Deterministic; see ``handle``."""

    def __init__(
        self,
        pipeline: str,
        group: str,
        table: TargetName,
        processors: int,
        recorded: Iterable[str],
        unix_s: Callable[[], float],
        run_id: str,
    ) -> None:
        """``recorded``: the targets that earlier runs wrote. ``unix_s``: the time, in Unix
        seconds. ``run_id`` makes names of writes unique over restarts."""
        self._pipeline, self._processors, self._unix_s = pipeline, processors, unix_s
        self._me = Address(pipeline, "counts")
        self._table = OwnTable("counts", pipeline, group, table, SCHEMA, run_id)
        self._held: dict[str, dict[TopicPartition, LaneCounts]] = {}
        self._ended: list[tuple[str, TopicPartition, LaneCounts]] = []
        self._folded: dict[str, Held] = {}
        self._reading, self._opening = _Reading(set(recorded)), False
        self._fold: _Fold | None = None
        self._due: float | None = 0.0
        self._error: str | None = None
        self._failing_since: float | None = None

    def handle(self, message: object, now: float) -> list[fx.OwnTableEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case msg.CountsHeld(target, counts):
                return self._told(str(target), counts, now)
            case Tick():
                return self._begin(now)
            case msg.Opened(target, state):
                if target != self._table.name:
                    return self._read(str(target), state.counts, now)
                return self._opened(message, now)
            case msg.OwnStaged():
                return self._write(message)
            case msg.Written():
                return self._written(now)
            case msg.Failed(target, _, reason):
                if target != self._table.name:
                    return self._unread(message, now)
                return self._failed(reason, now)
            case msg.OwnNotStaged(reason):
                return self._failed(reason, now)
            case Figures():
                return [fx.Reply(SideFigures(self._error, self._failing_since))]
            case _:
                raise TypeError(f"an actor for counts does not know {message!r}")

    # --- what targets hold

    def _told(self, target: str, counts: Held, now: float) -> list[fx.OwnTableEffect]:
        self._keep(target, counts)
        if self._is_busy:
            return []
        many = any(len(lane.minutes) >= MANY_MINUTES for lane in counts.values())
        due = now if many else now + FOLD_EVERY_S
        if self._due is None or due < self._due:
            self._due = due
            return [fx.WakeAt(due)]
        return []

    def _keep(self, target: str, counts: Held) -> None:
        """A run that ends without being in the table is written all the same: with the table's name
        its marks may have gone."""
        held = self._held.setdefault(target, {})
        for lane, run in counts.items():
            was = held.get(lane)
            if was is not None and was.since != run.since and self._is_new(target, lane, was):
                self._ended.append((target, lane, was))
            held[lane] = run

    def _is_new(self, target: str, lane: TopicPartition, run: LaneCounts) -> bool:
        """Whether a run is not in the table as it is. One that grew amid a message is written once
        it is past it: a write that is under way may leave out just what the table has by that
        name."""
        had = self._folded.get(target, {}).get(lane)
        is_in = had is not None and (had.since, had.through) == (run.since, run.through)
        return bool(run.minutes) and not is_in

    def _changed(self) -> dict[str, Held]:
        """What the table does not have yet."""
        found: dict[str, Held] = {}
        for name, counts in self._held.items():
            if new := {s: run for s, run in counts.items() if self._is_new(name, s, run)}:
                found[name] = new
        return found

    @property
    def _is_due(self) -> bool:
        return bool(self._ended) or bool(self._changed())

    # --- reading marks

    def _begin(self, now: float) -> list[fx.OwnTableEffect]:
        """The time has come: what is to be read is read, and then all is folded."""
        if self._is_busy:
            return []
        self._reading.failed.clear()
        if self._table.is_open:
            return self._read_next(now)
        self._opening = True
        return [self._table.open()]

    @property
    def _is_busy(self) -> bool:
        return self._opening or self._fold is not None or self._reading.asked is not None

    def _read_next(self, now: float) -> list[fx.OwnTableEffect]:
        if (name := self._reading.next()) is not None:
            return [fx.Tell(WRITERS, msg.OpenTarget(TargetName.parse(name), self._me))]
        return self._stage() if self._is_due else self._rest(now)

    def _read(self, target: str, counts: Held, now: float) -> list[fx.OwnTableEffect]:
        if target != self._reading.asked:
            return []
        self._reading.read(target)
        self._keep(target, counts)
        return self._read_next(now)

    def _unread(self, failed: msg.Failed, now: float) -> list[fx.OwnTableEffect]:
        """Tried again at the next fold, unless the sink refuses it: what its marks carry is told
        when a write of it ends that."""
        target = str(failed.target)
        if target != self._reading.asked:
            return []
        if failed.kind is msg.FailureKind.REFUSED:
            self._reading.read(target)
            fields = {"target": target, "reason": bare(target, failed.reason)}
            return [fx.Log("warning", "counts_not_read", fields), *self._read_next(now)]
        self._reading.failed[target] = f"{target}: {bare(target, failed.reason)}"
        return self._read_next(now)

    def _opened(self, opened: msg.Opened, now: float) -> list[fx.OwnTableEffect]:
        """Where another member has moved the mark, partitions may have come from it: what is held
        of targets may be out of date, and is read after the mark."""
        if not self._opening:
            return []
        self._opening, before = False, self._table.last
        self._table.opened(opened)
        if before != self._table.last:
            self._reading.again(self._changed())
        return self._read_next(now)

    # --- the fold

    def _stage(self) -> list[fx.OwnTableEffect]:
        last = None if self._table.last == NO_OFFSET else self._table.last
        made = next_number(last, self._unix_s())
        changed = self._changed()
        runs = [(name, *each) for name, held in changed.items() for each in held.items()]
        rows = [CountRow(name, lane, made, run) for name, lane, run in (*runs, *self._ended)]
        count = sum(len(row.run.minutes) for row in rows)
        self._fold = _Fold(changed, len(self._ended), made, count)
        return [fx.StageOwn(tuple(rows))]

    def _write(self, staged: msg.OwnStaged) -> list[fx.OwnTableEffect]:
        fold = self._fold
        assert fold is not None
        fold.written(staged.path)
        return [self._table.write(fold.number, staged, fold.rows)]

    def _written(self, now: float) -> list[fx.OwnTableEffect]:
        fold, self._fold = self._fold, None
        assert fold is not None
        self._table.written(fold.number)
        del self._ended[: fold.ended]
        out: list[fx.OwnTableEffect] = []
        for name, held in fold.held.items():
            self._folded[name] = {**self._folded.get(name, {}), **held}
            at = Address(self._pipeline, "processor", shard_of(name, self._processors))
            told = msg.CountsFolded(TargetName.parse(name), self._folded[name])
            out.append(fx.Tell(at, told))
        return out + self._rest(now)

    def _failed(self, reason: str, now: float) -> list[fx.OwnTableEffect]:
        fold, self._fold, self._opening = self._fold, None, False
        self._table.lost()
        left = () if fold is None or fold.path is None else (fold.path,)
        out: list[fx.OwnTableEffect] = [fx.RemoveStaged(left)] if left else []
        return out + self._ill(reason, now)

    def _rest(self, now: float) -> list[fx.OwnTableEffect]:
        """Nothing is to be done before something new is told; or before what could not be read is
        tried again."""
        unread = self._reading.failed
        if unread:
            return self._ill("; ".join(sorted(unread.values())[:1]), now)
        self._error = self._failing_since = None
        self._due = now + FOLD_EVERY_S if self._is_due else None
        return [fx.WakeAt(self._due)]

    def _ill(self, reason: str, now: float) -> list[fx.OwnTableEffect]:
        self._error, self._due = reason, now + FOLD_EVERY_S
        if self._failing_since is None:
            self._failing_since = self._unix_s()
        return [
            fx.Log("warning", "counts_not_folded", {"reason": reason}),
            fx.WakeAt(self._due),
        ]
