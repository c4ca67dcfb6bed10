"""A quarantine holds up nobody: the stream is done though nobody looks after it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from actors.contract import messages as msg
from changes.model import DdlPolicy
from tests.simulation.durable import Durable
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import Shape
from tests.simulation.stream import random_stream
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
