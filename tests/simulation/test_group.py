"""Two members share partitions and a target: nothing is lost or doubled, nobody stops."""

from __future__ import annotations

import random

import pytest

from tests.simulation.group import two_members
from tests.simulation.oracle import assert_equal
from tests.simulation.stream import random_stream


@pytest.mark.parametrize("seed", range(1000))
def test_hand_overs_in_mid_stream(seed: int) -> None:
    """Partitions go to and fro, told or not, while sinks fail, disks fill up, members are stopped
    for a while and writes outlive their revoke."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=80)
    faults = {"sink_fails": rng.choice((0, 0.3)), "disk_fails": rng.choice((0, 0.2))}
    losses = rng.choice((0.0, 0.5, 1.0))
    member, _ = two_members(stream, rng, moves=rng.randrange(1, 9), losses=losses, faults=faults)
    assert_equal(member.durable, stream)
