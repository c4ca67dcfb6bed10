"""What outlives a crash where tables are loaded: the database, too, and how far its log is."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.contract.ports import SwapTooEarly
from actors.contract.writes import Swap, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from daemon.operations.rebuild.rebuilds import Rebuilds
from databases.base.log_end import LogEnd, NoEnd, ReaderPosition, WalEnd
from offsets.fence import of_streams
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import Snapshot, SpillMark
from tests.simulation.durable import Durable
from tests.simulation.loads.history import History, Version
from tests.simulation.sink import FakeSink
from tests.simulation.stream import Due

MARGIN_S = 1.0
"""How long a commit may be in the log before a read sees it, at most."""

NEVER = 10**6


@dataclass
class Clockwork:
    """The database and its log on the way: commits become visible, and messages are appended, each
    in its order, either before the other."""

    history: History
    pace: tuple[float, float] = (0.15, 0.15)
    """How often a commit becomes visible, and how often a message is appended."""
    visible: int = 0
    logged: dict[TopicPartition, int] = field(default_factory=dict)
    seen_at: dict[int, float] = field(default_factory=dict)
    """When a commit was first in the log."""
    replica: float | None = None
    """How often the replica that is read applies a commit; None: the database itself is read."""
    applied: int = 0
    margin_s: float = MARGIN_S
    tells: str = "time"
    """What it and its messages tell: ``time``, ``positions`` or ``both``; ``reader``: the position
    of who reads its log alone."""
    rests: bool = False
    """Nothing new is committed; what was comes to the log."""

    def turn(self, rng: random.Random, now: float) -> None:
        """Something may happen in the database."""
        commits = self.history.commits
        seen, appended = self.pace
        if self.rests:
            appended *= sum(self.logged.values()) < self.visible
            seen = 0.0
        if self.visible < len(commits) and rng.random() < seen:
            self.visible += 1
        if self.replica is not None and self.applied < self.visible:
            self.applied += rng.random() < self.replica
        for source in sorted(set(commits)):
            if rng.random() < appended:
                self._append(source, now)
        self.settle(now)

    def settle(self, now: float) -> None:
        """What has been in the log for the margin is visible."""
        if self.visible == len(self.history.commits):
            return
        late = [at for at, when in self.seen_at.items() if now - when >= self.margin_s * 0.99]
        self.visible = max([self.visible, *(at + 1 for at in late)])

    def _append(self, source: TopicPartition, now: float) -> None:
        place = self.logged.get(source, 0)
        mine = [at for at, where in enumerate(self.history.commits) if where == source]
        if place < len(mine):
            self.logged[source] = place + 1
            self.seen_at[mine[place]] = now

    @property
    def version(self) -> Version:
        """What a read sees now."""
        return self.history.versions[self.shown]

    @property
    def shown(self) -> int:
        """How many commits a read sees now."""
        return self.visible if self.replica is None else self.applied

    @property
    def position(self) -> int:
        """How many commits are in the database's own log."""
        mine = [at + 1 for at in self.seen_at]
        return max([self.visible, *mine])

    @property
    def log_end(self) -> LogEnd:
        """What it says of its log: a hundred bytes a commit."""
        if self.tells == "time":
            return NoEnd("it tells no positions")
        committing = range(self.visible, self.position)
        return WalEnd(self.position * 100, tuple(map(str, committing)))

    @property
    def read(self) -> ReaderPosition:
        """Where the reader of its log is: all commits before it are in the topics."""
        if self.tells != "reader":
            return {}
        left = [at for at in range(len(self.history.commits)) if at not in self.seen_at]
        done = min(left, default=len(self.history.commits))
        return {"lsn_commit": done * 100}

    def written(self, commit: int) -> int:
        """Where a commit's first change is in its log: maybe before commits that came earlier."""
        return (commit + 1) * 100 - commit * 37 % 500

    @property
    def clock(self) -> int:
        """In commits; a clock that tells nothing is ahead of all."""
        return NEVER if self.tells in ("positions", "reader") else self.visible

    @property
    def over(self) -> bool:
        """Whether all has happened."""
        total = len(self.history.commits)
        behind = self.replica is not None and self.applied < total
        return self.visible == total and sum(self.logged.values()) == total and not behind

    def end(self, source: TopicPartition) -> int:
        """Where a partition ends now."""
        log, place = self.history.stream.log[source], self.logged.get(source, 0)
        if self.over:
            return self.history.stream.end[source]
        return log[place][0] if place < len(log) else self.history.stream.end[source]

    def after(self, source: TopicPartition, is_behind: Callable[[int], bool]) -> int | None:
        """The first message of a partition whose commit, by its number, is behind."""
        mine = [at for at, where in enumerate(self.history.commits) if where == source]
        for place, at in enumerate(mine[: self.logged.get(source, 0)]):
            if is_behind(at):
                return self.history.stream.log[source][place][0]
        # A heartbeat comes when all has happened.
        return self.history.stream.end[source] if self.over else None


class SwappingSink:
    """``Swaps`` over the sink's tables."""

    def __init__(self, sink: FakeSink, refuses: Callable[[], Exception | None]) -> None:
        self._sink, self._refuses = sink, refuses

    def open(self, target: TargetName, recorded: object = None) -> TargetState:
        return self._sink.open(target)

    def write(self, batch: Any) -> TargetState:
        raise NotImplementedError

    def swap(self, swap: Swap) -> TargetState:
        if (refusal := self._refuses()) is not None:
            raise refusal
        old, new = self._sink.tables.get(str(swap.old)), self._sink.tables.get(str(swap.new))
        if new is None:
            raise TargetRefused(f"nothing was filled for {swap.old}")
        if old is not None:
            held = of_streams(old.marks.offsets)
            if any(at >= swap.frontiers.get(lane, 0) for lane, at in held.items()):
                raise SwapTooEarly(held)
            new.marks = new.marks.lifted(old.marks)
        self._sink.tables[str(swap.old)] = self._sink.tables.pop(str(swap.new))
        self._sink.changed(swap.new)
        self._sink.changed(swap.old)
        return self._sink.open(swap.old)

    def remove(self, target: TargetName) -> None:
        if isinstance(refusal := self._refuses(), SinkUnavailable):
            raise refusal
        if self._sink.tables.pop(str(target), None) is not None:
            self._sink.changed(target)


class _Spills:
    """``SpillFolder`` as far as the end of a rebuild uses it."""

    def __init__(self, durable: LoadDurable) -> None:
        self._durable = durable

    def drop(self, target: TargetName) -> None:
        self._durable.folder(lambda: False).of(target).end()


@dataclass
class LoadDurable(Durable):
    """With the database beside it."""

    clockwork: Clockwork = field(default_factory=lambda: Clockwork(History(None)))  # type: ignore[arg-type]
    now: float = 0.0
    lost: set[str] = field(default_factory=set)
    refusals: Callable[[], Exception | None] = lambda: None
    """What the sink says to an exchange of names, or to a removal; None: it does it."""

    @classmethod
    def with_history(
        cls,
        history: History,
        pace: tuple[float, float],
        replica: float | None = None,
        tells: str = "time",
    ) -> LoadDurable:
        """Before the first life."""
        stream = history.stream
        return cls(
            stream.log,
            stream.end,
            shape=stream.shape,
            messages=stream.messages,
            due=stream.due,
            clockwork=Clockwork(history, pace, replica=replica, tells=tells),
        )

    def settle(self) -> None:
        """What a start does before anything is read."""
        sinks = {"lake": SwappingSink(self.sink, self.refusals)}
        rebuilds = Rebuilds(lambda: sinks, _Spills(self), self._record, lambda target: "")  # type: ignore[arg-type, return-value]
        self.snapshot = rebuilds.settle(self.snapshot)
        found = self.folder(lambda: False).found(self.snapshot.spills)
        marks = {str(f.target): SpillMark(f.state.bytes, dict(f.state.lanes)) for f in found}
        self.snapshot = replace(self.snapshot, spills=marks)

    def _record(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def _check_one(self, source: TopicPartition, message: Due) -> None:
        """A target that is being loaded has its messages in the new table, or in that one's spill;
        or its load begins again, and reads them from the database."""
        for target in message.targets:
            if not self._has(target, source, message.offset):
                super()._check_one(source, Due(message.offset, (target,), ()))

    def _has(self, target: str, source: TopicPartition, offset: int) -> bool:
        rebuild = self.snapshot.rebuilds.get(target)
        if rebuild is None or rebuild.load is None:
            return False
        marks: Mapping[TopicPartition, int] = self.sink.marks(rebuild.into)
        held = marks.get(source, NO_OFFSET) >= offset
        spilled = self.holds_spilled(rebuild.into, source, offset)
        before = offset < rebuild.load.since.get(source, 0)
        return held or spilled or before or rebuild.load.broken is not None
