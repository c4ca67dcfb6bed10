"""Partitions that are added to a topic while its tables are read."""

from __future__ import annotations

import random

import pytest

from tests.simulation.keyed.growing import Group, grown
from tests.simulation.keyed.history import keyed_history
from tests.simulation.keyed.test_keyed import assert_equal_or_refused

LOSING = (1105,)
"""In these a file that waited behind a write was checked with the number before."""


def one_topic(seed: int, members: int, *, calm: bool, crashes: int = 0) -> dict[str, str]:
    """What is refused of a topic that grows. Nothing else may differ."""
    rng = random.Random(seed)
    counts = rng.randrange(1, 5), rng.randrange(5, 9)
    history = keyed_history(rng, 0, 50, counts[0], grown=counts[1], grows_at=25)
    faults = {"sink_fails": rng.choice((0, 0.3)), "disk_fails": rng.choice((0, 0.2))}
    group = Group(history, rng, counts, members, faults)
    grown(group, calm=calm, crashes=crashes)
    assert_equal_or_refused(group.durables[0], history.stream, group.refused)
    return group.refused


@pytest.mark.parametrize("members", [1, 2])
def test_an_order_that_is_lost_is_never_lost_silently(members: int) -> None:
    """Late records of before the change, members that learn of it at different times, crashes."""
    found = [one_topic(seed, members, calm=False, crashes=seed % 3) for seed in range(25)]
    found += [one_topic(seed, members, calm=False, crashes=1) for seed in LOSING]
    reasons = [reason for each in found for reason in each.values()]
    assert reasons, "no seed lost an order"
    assert all("belongs into partition" in reason for reason in reasons)


@pytest.mark.parametrize("members", [1, 2])
def test_nothing_is_refused_where_all_was_read_before(members: int) -> None:
    """The documented way, also where one member learns of the change long before the other."""
    for seed in range(15):
        assert one_topic(seed, members, calm=True, crashes=seed % 2) == {}, seed


@pytest.mark.long
@pytest.mark.parametrize("block", range(4))
def test_a_growing_topic_for_long(block: int) -> None:
    """The same with more seeds."""
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        one_topic(seed, 1 + seed % 2, calm=False, crashes=seed % 4)
        assert one_topic(seed, 2, calm=True, crashes=seed % 3) == {}, seed
