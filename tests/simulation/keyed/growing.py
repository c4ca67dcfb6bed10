"""A topic that gets more partitions while it is read, by one member of a group or by two."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.contract import messages as msg
from offsets.position import TopicPartition
from tests.simulation.keyed.history import KeyedHistory
from tests.simulation.keyed.stream import TOPIC
from tests.simulation.loads.durable import Clockwork, LoadDurable
from tests.simulation.loads.world import LoadWorld
from tests.simulation.partitions import COMMITTER
from tests.simulation.staging import RealStaging


@dataclass
class GrowingLog(Clockwork):
    """The producer learns of the new partitions once they are there, and uses them from then on.
    What it has sent may come late: partitions are filled at their own pace."""

    grown: bool = False

    def _append(self, source: TopicPartition, now: float) -> None:
        history, place = self.history, self.logged.get(source, 0)
        assert isinstance(history, KeyedHistory)
        mine = [at for at, where in enumerate(history.commits) if where == source]
        if place < len(mine) and not self.grown and mine[place] >= (history.grown_at or 0):
            return
        super()._append(source, now)


class GrowingMember(LoadWorld):
    """Learns some time later than the producer that the topic has grown."""

    def __init__(
        self,
        durable: LoadDurable,
        rng: random.Random,
        shares: tuple[int, int],
        counts: tuple[int, int],
        **faults: Any,
    ) -> None:
        """``shares``: of so many members it is the one with this number; ``counts``: how many
        partitions the topic had, and has later."""
        super().__init__(durable, rng, **faults)
        self.operated = False
        number, self._members = shares
        self._number, self._had, self._has = number, *counts
        self._knows = 0
        self._tells = False

    def _mine(self, first: int, end: int) -> tuple[TopicPartition, ...]:
        numbers = range(first, end)
        return tuple(TopicPartition(TOPIC, n) for n in numbers if n % self._members == self._number)

    def _rebalance(self) -> None:
        log = self.durable.clockwork
        assert isinstance(log, GrowingLog)
        there = self._has if log.grown else self._had
        if there == self._knows or (self._knows and self.rng.random() > 0.05):
            return
        new, self._knows = self._mine(self._knows, there), there
        if new:
            self._assign(new)
        else:
            self._tells = True

    def _counts(self) -> dict[str, int]:
        return {TOPIC: self._knows}

    def _consume(self, limit: int) -> msg.Polled:
        polled = super()._consume(limit)
        counts = self._counts() if self._tells else {}
        self._tells = False
        positions = polled.positions if polled.batches or self._paused else dict(self._position)
        return msg.Polled(polled.batches, positions, counts=counts)

    def has_applied(self) -> bool:
        """Whether all that is in its partitions now is done."""
        ledger, end = self.logics[COMMITTER]._ledger, self.durable.clockwork.end
        mine = self._mine(0, self._knows)
        return bool(self._knows) and all(
            s in ledger.sources and ledger.frontier(s) >= end(s) for s in mine
        )


@dataclass
class Group:
    """Members over one log, sink and group, each with a state of its own."""

    history: KeyedHistory
    rng: random.Random
    counts: tuple[int, int]
    members: int
    faults: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.log = GrowingLog(self.history, (0.3, 0.15))
        self.durables = [
            LoadDurable.with_history(self.history, (0.3, 0.15)) for _ in range(self.members)
        ]
        first = self.durables[0]
        for each in self.durables:
            each.sink, each.committed, each.clockwork = first.sink, first.committed, self.log
        self.worlds = [self._live(number) for number in range(self.members)]

    def _live(self, number: int) -> GrowingMember:
        shares = number, self.members
        more = {"staging": RealStaging, **self.faults}
        world = GrowingMember(self.durables[number], self.rng, shares, self.counts, **more)
        world.now = max(each.now for each in self.durables)
        return world

    def act(self, *, crashes: bool) -> bool:
        """Let a member act; whether it crashed instead."""
        number = self.rng.randrange(self.members)
        if crashes and self.rng.random() < 0.002:
            self.worlds[number] = self._live(number)
            return True
        world = self.worlds[number]
        world.act()
        failed = [event for event in world.heard if isinstance(event, msg.PipelineFailed)]
        assert not failed, (failed, world.trace[-30:])
        return False

    @property
    def applied(self) -> bool:
        """Whether all that is in the log now is done."""
        return all(world.has_applied() for world in self.worlds)

    @property
    def over(self) -> bool:
        """Whether all is done, and each member knows of all partitions."""
        return (
            self.log.over and self.applied and all(w._knows == self.counts[1] for w in self.worlds)
        )

    @property
    def refused(self) -> dict[str, str]:
        """The targets in quarantine, with their reasons."""
        found = ((w, address, name) for w in self.worlds for address, name in w._quarantined())
        buffers = [world.logics[address]._buffers[name] for world, address, name in found]
        return {buffer.name: buffer.quarantine.reason for buffer in buffers}


def grown(group: Group, *, calm: bool, crashes: int) -> None:
    """Read all. ``calm``: partitions are added when nothing is left to be read."""
    before = group.history.grown_at or 0
    early = min(before, group.rng.randrange(1, before + 2))
    for _ in range(60_000):
        crashes -= group.act(crashes=crashes > 0)
        sent = sum(group.log.logged.values())
        if not group.log.grown:
            group.log.grown = sent >= before and group.applied if calm else sent >= early
        elif group.over:
            return
    raise AssertionError(f"not over: {[world.trace[-20:] for world in group.worlds]}")
