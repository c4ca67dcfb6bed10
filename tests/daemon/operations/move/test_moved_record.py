"""What is recorded of a pipeline that has moved to another Kafka."""

from __future__ import annotations

from daemon.operations.move.move import moved
from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.snapshot import PartitionState, Snapshot


def test_the_running_numbers_of_a_producer_come_along() -> None:
    """Where they are those of the frontier; other topics, and what an operator did, stay."""
    mine, other = TopicPartition("t", 0), TopicPartition("u", 0)
    numbers = {"a": 5}
    recorded = Snapshot(
        "p", "g", {"t": "one", "u": "two"},
        {mine: PartitionState(3, 3, LogEpoch(1, 3), True, Running(3, numbers), 2),
         other: PartitionState(4, 4)},
    )  # fmt: skip
    found = moved(recorded, {"t": "new"}, {mine: 5, other: 9})
    assert found.topic_ids == {"t": "new", "u": "two"}
    assert found.partitions == {
        mine: PartitionState(5, None, None, True, Running(5, numbers), 2),
        other: PartitionState(4, 4),
    }
