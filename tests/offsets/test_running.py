"""The producer's numbers: what is recorded with a frontier."""

from __future__ import annotations

from offsets.parts import MOST_SAMPLES, Running, RunningTrail
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot
from offsets.snapshot_text import decode, encode

SOURCE = TopicPartition("binlog", 0)


def test_numbers_are_recorded_only_at_their_position() -> None:
    """Those from further below would have a producer's messages dropped that counts anew."""
    trail = RunningTrail(Running(3, {"a": 6}))
    trail.add(5, {"a": 8})
    assert trail.at(3) == Running(3, {"a": 6})
    assert trail.at(4) is None
    assert trail.at(5) == Running(5, {"a": 8})
    assert trail.at(6) is None


def test_the_latest_numbers_of_a_position_count() -> None:
    """A position may be told twice."""
    trail = RunningTrail()
    trail.add(5, {"a": 8})
    trail.add(5, {"a": 9})
    assert trail.at(5) == Running(5, {"a": 9})


def test_a_target_that_stands_still_costs_no_memory_without_end() -> None:
    """Then fewer positions are known, the newest among them, and each rightly."""
    trail = RunningTrail()
    for at in range(10 * MOST_SAMPLES):
        trail.add(at, {"": at})
    known = [trail.at(at) for at in range(10 * MOST_SAMPLES)]
    kept = [found for found in known if found is not None]
    assert len(kept) <= MOST_SAMPLES
    assert all(found.numbers == {"": found.at} for found in kept)
    assert kept[-1].at == 10 * MOST_SAMPLES - 1


def test_numbers_outlive_the_offset_file() -> None:
    """With the position that they are of."""
    state = PartitionState(5, 5, running=Running(5, {"": 7, "set_1": 2**64 - 1}))
    snapshot = Snapshot("p", "g", partitions={SOURCE: state})
    assert decode(encode(snapshot)) == snapshot
    assert decode(encode(snapshot), edited=True) == snapshot
