"""Staged files under the seeded scheduler: each is removed once nobody needs it."""

from __future__ import annotations

import random

import pytest

from actors import messages as msg
from tests.simulation.stream import random_stream
from tests.simulation.world import Durable, World


@pytest.mark.parametrize("seed", range(60))
def test_no_staged_file_is_left(seed: int) -> None:
    """Whatever failed and was tried again, on the sink or on the disk, by the end all are gone."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=60)
    world = World(Durable(stream.log, stream.end), rng, sink_fails=0.4, disk_fails=0.3)
    staged_at_all = False
    while not any(isinstance(event, msg.CaughtUp) for event in world.heard):
        world.act()
        staged_at_all = staged_at_all or bool(world.staged)
    assert staged_at_all
    assert world.staged == {}
