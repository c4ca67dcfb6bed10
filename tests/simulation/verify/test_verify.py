"""Verifications and repairs beside a stream, whatever happens when: what is said to be equal is, no
row is told that is right, and no repair loses a row.

A failing seed is printed; ``SIMULATION_SEED=<seed>`` runs that one alone, with its trace.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from databases.base.port import Key
from tests.seeds import ALONE, SEEDS, assert_all_pass
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.loads.history import random_history
from tests.simulation.shape import Shape
from tests.simulation.stream import Stream
from tests.simulation.verify.plant import Plants, reached
from tests.simulation.verify.sides import PartitionRead
from tests.simulation.verify.world import VerifyDriver

LOSING = (114, 147)
"""In these a repair loses a row where it is read while the pipeline stands."""

MOVED = (42, 201)
"""In these a row is lost where it is looked up in the partition alone."""


def one_seed(seed: int, partition: PartitionRead | None = None) -> VerifyDriver:
    """One database, its stream through several lives, and a verification that repairs, of one
    partition or of all rows."""
    rng = random.Random(seed)
    shape = Shape(
        minimal=rng.random() < 0.9,
        quarantine=rng.random() < 0.3,
        columns=("v", "w", "x"),
        moves=rng.choice((0.2, 0.8, 0.8)),
    )
    history = random_history(rng, 0, rng.choice((40, 80)), 1, shape)
    faults = {
        "sink_fails": rng.choice((0, 0.2, 0.5)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 0, 0, 0, 2)),
    }
    pace = rng.choice(((0.05, 0.05), (0.15, 0.15), (0.15, 0.05), (0.05, 0.02)))
    durable = LoadDurable.with_history(history, pace)
    durable.clockwork.margin_s = rng.choice((0.02, 0.1, 0.5))
    plants = Plants(rng.choice((0, 4, 8, 8)), rng.random() < 0.3)
    driver = VerifyDriver(durable, rng, faults, rng.choice((0, 2, 6)), plants, partition)
    driver.run()
    assert_right(driver, durable, history.stream)
    return driver


def assert_right(driver: VerifyDriver, durable: LoadDurable, stream: Stream) -> None:
    """By what was planted, what was said, and what there is when the stream is at its end."""
    found, undecided = set(driver.table.found), {key for key, _ in driver.table.undecided}
    tainted = reached(durable, driver.plants.keys)
    assert found <= tainted, "told as different, and never was"
    rows, table = stream.tables[driver.target], durable.sink.tables.get(driver.target)
    columns = {column for row in rows.values() for column in row}
    shown = {
        key: {column: row.get(column) for column in columns}
        for key, row in (table.shown() if table is not None else {}).items()
    }
    keys = shown.keys() | rows.keys()
    wrong = {(str(key[0]),) for key in keys if shown.get(key) != rows.get(key)}
    assert wrong <= tainted, "a row is lost"
    others = set[Key]()
    if driver.partition is not None:
        # Rows that were wrong elsewhere are not told, and may come to any key afterwards.
        of = found | (driver.partition.kept or set())
        wrong, others = wrong & of, driver.plants.keys - of
    if () not in undecided:
        told = reached(durable, undecided | (found - driver.repaired) | others)
        assert wrong <= told, "said to be equal, or repaired"
    driver.counts["still wrong, and told"] += bool(wrong)
    assert driver.refused.keys() <= driver.plants.hated


@pytest.mark.parametrize("seed", [*range(24), *LOSING])
def test_a_verification_beside_the_stream_is_right(seed: int) -> None:
    """Partial rows, changed keys, crashes, lost replies, quarantines, another member's writes."""
    one_seed(seed)


@pytest.mark.parametrize("seed", [*range(24), *MOVED])
def test_a_verification_of_a_partition_is_right(seed: int) -> None:
    """Rows move into it and out of it: none is told that is right, none is lost, and what was in it
    whenever it was read, and is wrong, is told."""
    of_a_partition(seed)


def of_a_partition(seed: int) -> VerifyDriver:
    return one_seed(seed, PartitionRead("v", seed % 2))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "seeds",
    [pytest.param(250, marks=pytest.mark.long), pytest.param(SEEDS, marks=pytest.mark.soak)],
)
def test_thousands_of_verifications_are_right(seeds: int) -> None:
    """Every seed is another interleaving of reads, changes, crashes and failures."""
    if ALONE is not None:
        driver = one_seed(int(ALONE))
        print(*driver.trace, sep="\n")
        return
    assert_all_pass(one_seed, seeds, block=50)
    assert_all_pass(of_a_partition, seeds, block=50)


@pytest.mark.long
def test_what_a_repair_has_to_survive_occurs_often() -> None:
    """What the seeds never come to is not proved by them."""
    counts: Counter[str] = Counter()
    for seed in range(60):
        counts.update(one_seed(seed).counts)
    names = ("crash", "away", "repaired", "left out", "followed", "refused", "handed over")
    for name in names:
        assert counts[name] >= 3, (name, counts)
