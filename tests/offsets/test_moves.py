"""Marks that an operator moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves

LANES = [TopicPartition("t", number) for number in range(3)]
marks = st.dictionaries(st.sampled_from(LANES), st.integers(-1, 20))


def test_lowered_at_most_lifted_at_least_and_no_lane_is_made() -> None:
    """A lane that the target does not have must not seem to be one of its."""
    moves = MarkMoves(lower={LANES[0]: 3, LANES[2]: 3}, lift={LANES[1]: 9})
    assert moves.of({LANES[0]: 7, LANES[1]: 4}) == {LANES[0]: 3, LANES[1]: 9}
    assert moves.of({LANES[0]: 1, LANES[1]: 12}) == {LANES[0]: 1, LANES[1]: 12}


@given(marks, marks, marks)
def test_repeating_moves_changes_nothing(
    lower: dict[TopicPartition, int],
    lift: dict[TopicPartition, int],
    held: dict[TopicPartition, int],
) -> None:
    """A crash before it was noted down makes them run twice."""
    moves = MarkMoves(lower, lift)
    once = moves.of(held)
    assert once.keys() == held.keys()
    assert moves.of(once) == once
