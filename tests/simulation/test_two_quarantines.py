"""Two members, one target, and each may have it in quarantine, with a spill of its own.

Partitions go to and fro meanwhile. In the end the tables are equal, or a release has said by name
why it can't be: never is a target released that lacks what another member's spill had.
"""

from __future__ import annotations

import random

import pytest

from actors.contract import messages as msg
from tests.simulation.durable import Durable
from tests.simulation.group import Group, Member
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import Shape
from tests.simulation.stream import SOURCES, Stream, random_stream

NAMED = "beyond its spill"


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
