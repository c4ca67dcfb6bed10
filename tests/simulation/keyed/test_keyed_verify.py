"""Verifications and repairs of tables over several partitions, beside a stream in which keys move
between them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.simulation.keyed.history import keyed_history
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.staging import RealStaging
from tests.simulation.verify.plant import Plants
from tests.simulation.verify.test_verify import assert_right
from tests.simulation.verify.world import VerifyDriver


def one_verification(seed: int) -> VerifyDriver:
    """One to six partitions through several lives, and a verification that repairs."""
    rng = random.Random(seed)
    history = keyed_history(rng, 0, rng.choice((40, 80)), rng.randrange(1, 7), tables=1)
    faults = {
        "sink_fails": rng.choice((0, 0.2, 0.5)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 0, 0, 0, 2)),
        "staging": RealStaging,
    }
    pace = rng.choice(((0.05, 0.05), (0.15, 0.15), (0.15, 0.05), (0.05, 0.02)))
    durable = LoadDurable.with_history(history, pace)
    durable.clockwork.margin_s = rng.choice((0.02, 0.1, 0.5))
    plants = Plants(rng.choice((0, 4, 8, 8)), rng.random() < 0.3)
    driver = VerifyDriver(durable, rng, faults, rng.choice((0, 2, 6)), plants)
    driver.run()
    assert_right(driver, durable, history.stream)
    return driver


@pytest.mark.parametrize("seed", range(12))
def test_a_verification_of_a_keyed_table_is_right(seed: int) -> None:
    """Changed keys in two partitions, crashes, lost replies, another member's writes."""
    one_verification(seed)


@pytest.mark.long
def test_what_a_repair_of_a_keyed_table_has_to_survive_occurs_often() -> None:
    """And more seeds are right."""
    counts: Counter[str] = Counter()
    for seed in range(1000, 1080):
        counts.update(one_verification(seed).counts)
    for name in ("crash", "away", "repaired", "refused", "handed over"):
        assert counts[name] >= 3, (name, counts)
