"""Partitions that a daemon began at the group's commit: tables that are new there may lack rows."""

from __future__ import annotations

from collections.abc import Mapping

from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot
from sources.kafka.start_resolver import adopted

ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)
LOGS = dict.fromkeys((ONE, TWO), Watermarks(0, 100))


def found(
    recorded: Mapping[TopicPartition, PartitionState], starts: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    return adopted(starts, Snapshot("p", "g", partitions=recorded), {ONE, TWO}, LOGS)


def test_without_any_record_all_that_the_group_has_read_is_adopted() -> None:
    """Nothing is, where reading begins with the log."""
    assert found({}, {ONE: 7, TWO: 0}) == {ONE: 7}


def test_it_stays_where_it_was_adopted() -> None:
    """However far the partition is by now."""
    assert found({ONE: PartitionState(50, 50, adopted=7)}, {ONE: 50}) == {ONE: 7}


def test_what_another_member_of_a_second_copy_began_is_adopted_as_well() -> None:
    """That member's record is its own: this one knows from its own that the group's is not theirs.
    A partition that it has recorded otherwise it did not adopt."""
    recorded = {ONE: PartitionState(50, 50, adopted=7)}
    assert found(recorded, {TWO: 30}) == {TWO: 30}
    assert found({**recorded, TWO: PartitionState(30)}, {TWO: 30}) == {}


def test_a_member_that_adopted_nothing_knows_its_groups_tables() -> None:
    """A partition comes to it from another member in a rebalance."""
    assert found({ONE: PartitionState(50, 50)}, {TWO: 30}) == {}
