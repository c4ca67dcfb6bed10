"""Where all below a start was applied: there the tail of a cut message may be dropped."""

from __future__ import annotations

from offsets.snapshot import PartitionState
from sources.kafka.start_resolver import is_frontier


def test_a_recorded_frontier_and_the_groups_commit_are_ones() -> None:
    """Another member commits frontiers, too."""
    assert is_frontier(PartitionState(5, 5), 5, 5)
    assert is_frontier(PartitionState(5, None), None, 5)
    assert is_frontier(PartitionState(5, 5), 9, 9)
    assert is_frontier(None, 9, 9)


def test_what_an_operator_or_the_configuration_chose_is_none() -> None:
    """From there a part without the ones before it is a loss, and must be told."""
    assert not is_frontier(PartitionState(5, None, reset=True), 5, 5)
    assert not is_frontier(None, None, 0)
    assert not is_frontier(PartitionState(5, 5), 5, 3)
