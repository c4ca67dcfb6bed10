"""Two members of one group in one thread: partitions go from one to the other in mid-stream.

They share the log, the group's commits and the targets; each has a snapshot of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from offsets.position import TopicPartition
from tests.simulation.durable import Durable
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.stream import Stream
from tests.simulation.world import World


@dataclass
class Group:
    """Who is to have a partition, and who has it. Its coordinator, so to say."""

    wanted: dict[TopicPartition, int] = field(default_factory=dict)
    holder: dict[TopicPartition, int] = field(default_factory=dict)


class Member(World):
    """One daemon of the group; asks the group at each poll what it has to give and to take."""

    def __init__(
        self, number: int, group: Group, durable: Durable, rng: random.Random, **faults: Any
    ) -> None:
        super().__init__(durable, rng, **faults)
        self.number = number
        self.group = group

    def _rebalance(self) -> None:
        group, me = self.group, self.number
        lost = tuple(s for s in self._position if group.holder.get(s) != me)
        gone = tuple(
            s for s in self._position if group.holder.get(s) == me and group.wanted[s] != me
        )
        for sources, is_lost in ((lost, True), (gone, False)):
            for source in sources:
                del self._position[source]
            if sources:
                self.trace.append(f"{self.now:.3f} {'lost' if is_lost else 'revoked'} {sources}")
                self._feed_revoked(msg.Revoked(sources, is_lost))
        for source in gone:
            group.holder.pop(source)
        new = tuple(s for s in self.sources if group.wanted[s] == me and s not in group.holder)
        for source in new:
            group.holder[source] = me
        if new:
            self._assign(new)

    def _feed_revoked(self, revoked: msg.Revoked) -> None:
        self._feed(FETCHER, revoked)

    def _carry_out(self, me: Address, effect: object) -> object | None:
        """The coordinator takes no commit of a partition that another member has."""
        if isinstance(effect, fx.Commit):
            held = {s: at for s, at in effect.frontiers.items() if self._holds(s)}
            effect = fx.Commit(held, effect.wait)
        return super()._carry_out(me, effect)

    def _holds(self, source: TopicPartition) -> bool:
        return self.group.holder.get(source) == self.number

    def has_applied(self, source: TopicPartition) -> bool:
        """Whether it has the partition and everything of that is applied."""
        ledger = self.logics[COMMITTER]._ledger
        return source in ledger.sources and ledger.frontier(source) >= self.durable.end[source]


def two_members(
    stream: Stream, rng: random.Random, moves: int, losses: float, faults: dict[str, Any]
) -> tuple[Member, Member]:
    """Run two members over a stream while partitions move so many times, until all is applied.

    ``losses``: how often a partition goes without its holder hearing of it in time. Half of such
    holders are stopped for a while, and wake up with what they held.
    """
    group = Group(dict.fromkeys(stream.log, 0))
    log, end, shape = stream.log, stream.end, stream.shape
    first = Durable(log, end, shape=shape)
    second = Durable(log, end, committed=first.committed, sink=first.sink, shape=shape)
    members = Member(0, group, first, rng, **faults), Member(1, group, second, rng, **faults)
    asleep, wakes_at = 0, 0
    for step in range(60_000):
        number = rng.randrange(2)
        if step < wakes_at and number == asleep:
            continue
        members[number].act()
        for member in members:
            failed = [e for e in member.heard if isinstance(e, msg.PipelineFailed)]
            assert not failed, (failed, member.trace[-40:])
        if moves > 0 and rng.random() < 0.03:
            moves -= 1
            source = rng.choice(tuple(stream.log))
            group.wanted[source] = 1 - group.wanted[source]
            if rng.random() < losses:
                loser = group.holder.pop(source, None)
                if loser is not None and rng.random() < 0.5:
                    asleep, wakes_at = loser, step + rng.randrange(1, 1000)
        if moves == 0 and step % 20 == 0 and group.holder == group.wanted:
            holders = group.holder.items()
            if all(members[number].has_applied(source) for source, number in holders):
                return members
    raise AssertionError(f"not all applied: {members[0].trace[-20:]} {members[1].trace[-20:]}")
