"""What is recorded with a frontier is the epoch of a message that was seen below it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offsets.position import EpochSpan, LogEpoch, LogEpochs


def test_nothing_is_known_before_the_first_message_is_done() -> None:
    """A frontier at the first message has none below it."""
    epochs = LogEpochs()
    assert epochs.below(7) is None
    epochs.add(EpochSpan(2, 7, 9))
    assert epochs.below(7) is None
    assert epochs.below(8) == LogEpoch(2, 8)


def test_what_was_recorded_counts_until_a_message_is_done() -> None:
    """A restart without a new message records what it found."""
    epochs = LogEpochs(LogEpoch(2, 7))
    assert epochs.below(7) == LogEpoch(2, 7)
    epochs.add(EpochSpan(5, 9, 9))
    assert epochs.below(9) == LogEpoch(2, 7)
    assert epochs.below(10) == LogEpoch(5, 10)


def test_a_frontier_below_the_recorded_one_has_no_epoch() -> None:
    """After a reset backwards nothing is known of what lies there."""
    assert LogEpochs(LogEpoch(2, 7)).below(6) is None


def test_a_marker_behind_the_last_message_is_not_taken_for_one_of_its_epoch() -> None:
    """It may be of a younger epoch, and the broker would call the log cut."""
    epochs = LogEpochs()
    epochs.add(EpochSpan(0, 0, 9))
    assert epochs.below(12) == LogEpoch(0, 10)


@given(
    gaps=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1)), min_size=1, max_size=30),
    steps=st.lists(st.integers(0, 20), max_size=10),
)
def test_it_is_the_epoch_of_the_last_seen_message_below(
    gaps: list[tuple[int, int]], steps: list[int]
) -> None:
    """For any log with gaps and elections, and any frontiers that grow."""
    epochs, log, offset, epoch = LogEpochs(), {}, -1, 0
    for gap, election in gaps:
        offset, epoch = offset + gap, epoch + election
        log[offset] = epoch
        epochs.add(EpochSpan(epoch, offset, offset))
    frontier = 0
    for step in steps:
        frontier += step
        found = epochs.below(frontier)
        seen = [at for at in log if at < frontier]
        if not seen:
            assert found is None
        else:
            assert found is not None
            assert found.epoch == log[seen[-1]]
            assert seen[-1] < found.below <= frontier
            # Every message below it is of that epoch or an older one.
            assert all(log[at] <= found.epoch for at in log if at < found.below)
