"""Two members share partitions and a target: nothing is lost or doubled, nobody stops."""

from __future__ import annotations

import random

import pytest

from actors.contract import messages as msg
from tests.simulation.group import two_members
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import PLAIN, Shape
from tests.simulation.stream import random_stream

pytestmark = pytest.mark.long

MULTI_ENTRY = Shape(ddl=0.2, several=0.6)


@pytest.mark.parametrize("seed", range(1000))
def test_hand_overs_in_mid_stream(seed: int) -> None:
    """Partitions go to and fro, told or not, while sinks fail, disks fill up, members are stopped
    for a while and writes outlive their revoke."""
    hand_over(seed, PLAIN)


@pytest.mark.parametrize("seed", range(300))
def test_hand_overs_amid_messages_of_several_entries(seed: int) -> None:
    """Who gets a partition goes on with a message's next entry group, and who lost it does not."""
    hand_over(seed, MULTI_ENTRY)


@pytest.mark.parametrize("seed", range(300))
def test_hand_overs_while_a_sink_goes_and_comes(seed: int) -> None:
    """Each member has spills of its own, and gets partitions of which the other one has some."""
    rng = random.Random(seed)
    shape = Shape(away=True, lanes=seed % 2 == 0, reread_offsets=2)
    stream = random_stream(rng, messages=80, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.3)), "disk_fails": rng.choice((0, 0.2))}
    losses = rng.choice((0.0, 0.5, 1.0))
    members = two_members(stream, rng, moves=rng.randrange(1, 9), losses=losses, faults=faults)
    for _ in range(60_000):
        if not any(member._quarantined() for member in members):
            break
        rng.choice(members).act()
    for member in members:
        assert not [e for e in member.heard if isinstance(e, msg.PipelineFailed)]
    assert_equal(members[0].durable, stream)


def hand_over(seed: int, shape: Shape) -> None:
    """Two members over one stream, and the tables compared at the end."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=80, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.3)), "disk_fails": rng.choice((0, 0.2))}
    losses = rng.choice((0.0, 0.5, 1.0))
    member, _ = two_members(stream, rng, moves=rng.randrange(1, 9), losses=losses, faults=faults)
    assert_equal(member.durable, stream)
