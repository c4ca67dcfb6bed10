"""Ten thousand lives and deaths: every seed is another interleaving of crashes and failures.

A failing seed is printed; ``SIMULATION_SEED=<seed>`` runs that one alone, with its trace.
"""

from __future__ import annotations

import random

import pytest

from tests.seeds import ALONE, assert_all_pass
from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import random_shape
from tests.simulation.stream import random_stream
from tests.simulation.world import World

pytestmark = pytest.mark.long


def one_seed(seed: int, worlds: list[World] | None = None) -> None:
    """One stream through several lives, and the tables compared at the end."""
    rng = random.Random(seed)
    tables, messages = rng.choice((1, 2, 4)), rng.choice((5, 20, 50))
    stream = random_stream(rng, messages, tables, random_shape(rng))
    faults = {
        "sink_fails": rng.choice((0, 0.2, 0.5)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 1, 3)),
    }
    durable = live_through(
        stream,
        rng,
        crashes=rng.randrange(4),
        revokes=rng.choice((0, 0, 4)),
        faults=faults,
        worlds=worlds,
    )
    assert_equal(durable, stream)


@pytest.mark.timeout(1800)
def test_each_change_is_applied_once_whatever_the_seed() -> None:
    """Sink, tables, changelog equal the oracle's after crashes, lost replies, zombies, revokes."""
    if ALONE is not None:
        worlds: list[World] = []
        try:
            one_seed(int(ALONE), worlds)
        finally:
            for life, world in enumerate(worlds):
                print(f"--- life {life}", *world.trace, sep="\n")
        return
    assert_all_pass(one_seed)
