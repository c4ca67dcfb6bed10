"""The group hears of no frontier above what one member alone has, in a spill."""

from __future__ import annotations

import pytest

from offsets.position import TopicPartition
from offsets.snapshot import SpillMark
from offsets.store import below_spills

ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)


@pytest.mark.parametrize(
    ("frontier", "confirmed", "told"),
    [(50, 5, 10), (50, None, 10), (8, 5, 8), (50, 30, 30), (50, 90, 50)],
    ids=["held", "never confirmed", "below it", "another member came on", "and further"],
)
def test_a_commit_stays_below_a_spill(frontier: int, confirmed: int | None, told: int) -> None:
    """At its first message, and never back from where the group is."""
    spills = [SpillMark(1, {ONE: (10, 20)}), SpillMark(1, {ONE: (12, 40)})]
    frontiers = {ONE: frontier, TWO: 70}
    assert below_spills(frontiers, {ONE: confirmed}, spills) == {ONE: told, TWO: 70}


def test_without_a_spill_it_is_the_frontier() -> None:
    assert below_spills({ONE: 7}, {ONE: 3}, ()) == {ONE: 7}
