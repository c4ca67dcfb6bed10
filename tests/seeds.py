"""Runs thousands of seeds in processes of their own, and names those that fail.

``SIMULATION_SEED=<seed>`` runs that one alone, with its trace.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "10000"))
ALONE = os.environ.get("SIMULATION_SEED")

OneSeed = Callable[[int], Any]
"""A module's function: it raises where the seed's run is wrong."""


def assert_all_pass(one_seed: OneSeed, seeds: int = SEEDS, block: int = 250) -> None:
    """``block``: how many seeds a process gets at once."""
    blocks = [range(start, min(start + block, seeds)) for start in range(0, seeds, block)]
    # Spawned: the test's own process may have threads that a fork would tear.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        failed = [found for each in pool.map(partial(_failing, one_seed), blocks) for found in each]
    told = "\n".join(f"SIMULATION_SEED={seed}: {how}" for seed, how in failed[:3])
    assert not failed, f"{len(failed)} of {seeds} seeds fail\n{told}"


def _failing(one_seed: OneSeed, seeds: range) -> list[tuple[int, str]]:
    failed = []
    for seed in seeds:
        try:
            one_seed(seed)
        except Exception:
            failed.append((seed, traceback.format_exc(limit=-2)))
    return failed
