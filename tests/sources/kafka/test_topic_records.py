"""What stands in the compacted topic, without a broker."""

from __future__ import annotations

from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.snapshot import PartitionState, Snapshot
from sources.kafka.topic_records import Entries, records

SOURCE = TopicPartition("shop", 0)


def test_a_frontier_is_never_there_without_its_topics_format() -> None:
    """They are in one record: of two, a crash between them would leave one."""
    batch = Snapshot("p", "g", {}, {SOURCE: PartitionState(7)}, formats={"shop": "ogg-json"})
    entries = Entries("p", "g")
    for record in records(batch).partitions:
        entries.apply(record.key, record.value, "here")
    assert entries.loaded().snapshot == batch


def test_all_of_a_partition_is_read_back() -> None:
    """What is left out would be forgotten at each restart."""
    state = PartitionState(7, 5, LogEpoch(2, 6), True, Running(6, {"": 3}), 4, 9, 2, 1)
    entries = Entries("p", "g")
    for record in records(Snapshot("p", "g", {}, {SOURCE: state})).partitions:
        entries.apply(record.key, record.value, "here")
    assert entries.loaded().snapshot.partitions == {SOURCE: state}
