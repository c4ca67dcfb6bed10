"""Ten thousand lives and deaths: every seed is another interleaving of crashes and failures.

A failing seed is printed; ``SIMULATION_SEED=<seed>`` runs that one alone, with its trace.
"""

from __future__ import annotations

import os
import random
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import random_shape
from tests.simulation.stream import random_stream
from tests.simulation.world import World

pytestmark = pytest.mark.long

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "10000"))
BLOCK = 250


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


def seeds_that_fail(seeds: range) -> list[tuple[int, str]]:
    """Run in a process of its own: the failing seeds, each with how it failed."""
    failed = []
    for seed in seeds:
        try:
            one_seed(seed)
        except Exception:
            failed.append((seed, traceback.format_exc(limit=-2)))
    return failed


@pytest.mark.timeout(1800)
def test_each_change_is_applied_once_whatever_the_seed() -> None:
    """Sink, tables, changelog equal the oracle's after crashes, lost replies, zombies, revokes."""
    if alone := os.environ.get("SIMULATION_SEED"):
        worlds: list[World] = []
        try:
            one_seed(int(alone), worlds)
        finally:
            for life, world in enumerate(worlds):
                print(f"--- life {life}", *world.trace, sep="\n")
        return
    blocks = [range(start, min(start + BLOCK, SEEDS)) for start in range(0, SEEDS, BLOCK)]
    # Spawned: the test's own process may have threads that a fork would tear.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        failed = [found for block in pool.map(seeds_that_fail, blocks) for found in block]
    told = "\n".join(f"SIMULATION_SEED={seed}: {how}" for seed, how in failed[:3])
    assert not failed, f"{len(failed)} of {SEEDS} seeds fail\n{told}"
