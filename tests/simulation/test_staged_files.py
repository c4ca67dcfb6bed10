"""Staged files under the seeded scheduler: each is removed once nobody needs it."""

from __future__ import annotations

import random

import pytest

from tests.simulation.durable import Durable
from tests.simulation.shape import random_shape
from tests.simulation.stream import random_stream
from tests.simulation.world import World


@pytest.mark.parametrize("seed", range(60))
def test_no_staged_file_is_left(seed: int) -> None:
    """Whatever failed and was tried again, on the sink or on the disk, by the end all are gone."""
    rng = random.Random(seed)
    stream = random_stream(rng, 60, shape=random_shape(rng))
    faults = {"sink_fails": 0.4, "disk_fails": 0.3, "refusals": 2}
    world = World(Durable.of(stream), rng, **faults)
    staged_at_all = False
    while not world.ended:
        world.act()
        staged_at_all = staged_at_all or bool(world.staged)
    assert staged_at_all
    assert world.staged == {}
