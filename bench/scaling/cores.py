"""Changes a second of one daemon that writes nothing, on one core, on two, and so on.

The broker runs on all cores, as it would on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.rig import config, fill, messages, run_flow
from demo.broker import DevBroker

ROUNDS = 3
TABLES = 20
PROCESSORS = 2


def measure(folder: Path, count: int) -> Mapping[int, float]:
    """Changes a second by cores: the best of rounds that take turns."""
    every = sorted(os.sched_getaffinity(0))
    best = dict.fromkeys(range(1, len(every) + 1), 0.0)
    with DevBroker(folder / "broker") as broker:
        fill(broker.bootstrap, "cores", messages(count, TABLES))
        for number in range(ROUNDS):
            for cores in best:
                name = f"{cores}-{number}"
                settings = config(folder / name, broker.bootstrap, "cores", name, PROCESSORS)
                with only(every[:cores], every):
                    best[cores] = max(best[cores], count / run_flow(settings))
    return best


@contextmanager
def only(cores: list[int], after: list[int]) -> Iterator[None]:
    """What this thread starts meanwhile, threads and processes, runs on these cores alone."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, after)
