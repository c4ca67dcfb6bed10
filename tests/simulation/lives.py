"""Several lives of the process over one stream, ended by crashes and by stops."""

from __future__ import annotations

import random
from collections.abc import Mapping

from actors.contract import messages as msg
from tests.simulation.durable import Durable
from tests.simulation.staging import PlainStaging, RealStaging
from tests.simulation.stream import Stream
from tests.simulation.world import World


def live_through(
    stream: Stream,
    rng: random.Random,
    crashes: int,
    revokes: int,
    faults: Mapping[str, float],
    staging: type[RealStaging] | type[PlainStaging] = PlainStaging,
    worlds: list[World] | None = None,
) -> Durable:
    """Run the process over a stream, crashing up to so many times, until it has caught up.

    ``worlds`` collects the lives, for their traces.
    """
    durable = Durable.of(stream)
    for life in range(crashes + 1):
        crash_rate = 0.01 if life < crashes else 0.0
        world = World(
            durable, rng, crash_rate=crash_rate, revokes=revokes, staging=staging, **faults
        )
        if worlds is not None:
            worlds.append(world)
        if world.run():
            failed = [e for e in world.heard if isinstance(e, msg.PipelineFailed)]
            assert not failed, failed
            if life == crashes or rng.random() < 0.5:
                break
    return durable
