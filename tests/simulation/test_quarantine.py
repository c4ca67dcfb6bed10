"""A quarantine holds up nobody: the stream is done though nobody looks after it.

Two members may each have one target in quarantine, with a spill of its own, while partitions move
between them. In the end the tables are equal, or a release has said by name why it can't be. A
target is never released that lacks what another member's spill had.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from actors.contract import messages as msg
from changes.model.model import DdlPolicy
from tests.simulation.durable import Durable
from tests.simulation.group import Group, Member
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import Shape
from tests.simulation.stream import SOURCES, Stream, random_stream
from tests.simulation.world import World

RENAMING = (
    Shape(ddl=0.4, quarantine=True, policy=DdlPolicy("keep", "follow")),
    Shape(ddl=0.4, several=0.5, quarantine=True),
)


@pytest.mark.parametrize("shape", RENAMING, ids=["single", "several"])
def test_who_waits_for_a_name_of_a_quarantined_target_holds_up_nobody(shape: Shape) -> None:
    """It goes into quarantine as well, across processors, restarts and inside one message; and
    whoever is released first, all is right in the end."""
    seen: Counter[str] = Counter()
    for seed in range(30):
        rng = random.Random(seed)
        stream = random_stream(rng, 40, shape=shape)
        worlds = lives(Durable.of(stream), rng)
        said = [event for world in worlds for event in world.heard]
        assert not [event for event in said if isinstance(event, msg.PipelineFailed)], seed
        assert_equal(worlds[-1].durable, stream)
        for world in worlds:
            seen += world.seen
    assert seen["InQuarantine"] >= 30, seen


def lives(durable: Durable, rng: random.Random) -> list[World]:
    """All counts as done before anybody looks after a target; a crash comes before or after."""
    crash_at = rng.choice((None, rng.randrange(50, 1500)))
    worlds: list[World] = []
    for operated in (False, True):
        if worlds:
            worlds[-1].operated = operated
        while not (worlds and worlds[-1].run()):
            fails = rng.choice((0.0, 0.2))
            worlds.append(World(durable, rng, crash_at=crash_at, sink_fails=fails, refusals=2))
            worlds[-1].operated = operated
            crash_at = None
    return worlds


NAMED = "beyond its spill"
"""Why a target of two members that each have a spill of it can't be released."""


def members_of(stream: Stream, rng: random.Random) -> tuple[Member, Member]:
    """Two members that have a partition each, of one group, with one sink that refuses."""
    group = Group({source: number for number, source in enumerate(SOURCES)})
    log, end, shape = stream.log, stream.end, stream.shape
    first = Durable(log, end, shape=shape)
    second = Durable(log, end, committed=first.committed, sink=first.sink, shape=shape)
    return Member(0, group, first, rng, refusals=2), Member(1, group, second, rng, refusals=2)


def reasons(members: tuple[Member, ...]) -> list[str]:
    """Why targets are in quarantine."""
    return [
        member.logics[address]._buffers[name].quarantine.reason
        for member in members
        for address, name in member._quarantined()
    ]


def run(members: tuple[Member, Member], rng: random.Random, moves: int) -> list[str]:
    """Let them act, and partitions move, until all is applied; why what is left is in quarantine:
    what can't be released any more."""
    group = members[0].group
    for step in range(60_000):
        rng.choice(members).act()
        assert not [e for m in members for e in m.heard if isinstance(e, msg.PipelineFailed)]
        if moves and rng.random() < 0.01:
            moves -= 1
            source = rng.choice(SOURCES)
            group.wanted[source] = 1 - group.wanted[source]
        if moves or step % 20 or group.holder != group.wanted:
            continue
        if all(members[n].has_applied(source) for source, n in group.holder.items()):
            left = reasons(members)
            if all(NAMED in reason for reason in left):
                return left
    raise AssertionError(f"not all released: {reasons(members)}")


@pytest.mark.parametrize("lanes", [False, True], ids=["a list", "positions"])
@pytest.mark.parametrize("seed", range(30))
def test_no_release_drops_what_only_a_spill_has(seed: int, lanes: bool) -> None:
    """Who got the partition reads the spilled messages, too: else its marks would pass them, and
    the release would take them for written."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=80, shape=Shape(lanes=lanes, quarantine=True))
    members = members_of(stream, rng)
    if not run(members, rng, moves=3):
        assert_equal(members[0].durable, stream)
