"""Loads of tables over several partitions, beside a stream in which keys move between them."""

from __future__ import annotations

import random

import pytest

from tests.simulation.keyed.history import keyed_history
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.loads.test_loads import assert_loaded
from tests.simulation.loads.world import Driver
from tests.simulation.staging import RealStaging


@pytest.mark.parametrize("seed", range(25))
def test_a_load_of_a_keyed_table_is_equal(seed: int) -> None:
    """Rows first, the stream of each partition over them, whatever crashes."""
    one_load(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(8))
def test_a_load_of_a_keyed_table_is_equal_for_long(block: int) -> None:
    """The same with more seeds."""
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        one_load(seed)


def one_load(seed: int) -> None:
    """One to six partitions and a load job through several lives."""
    rng = random.Random(seed)
    history = keyed_history(rng, rng.choice((0, 30)), rng.choice((10, 40)), rng.randrange(1, 7))
    pace = rng.choice(((0.15, 0.15), (0.01, 0.15), (0.15, 0.03)))
    faults = {"sink_fails": rng.choice((0, 0.3)), "disk_fails": rng.choice((0, 0.2))}
    durable = LoadDurable.with_history(history, pace, rng.choice((None, 0.1)))
    driver = Driver(
        durable, rng, ["t0", "t1"], {**faults, "staging": RealStaging}, crashes=rng.choice((0, 3))
    )
    driver.run()
    assert driver.ended == "done"
    assert_loaded(durable, history.stream)
