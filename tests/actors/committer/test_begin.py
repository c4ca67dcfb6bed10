"""Where reading began is recorded: what lies below was not read here."""

from __future__ import annotations

import pytest

from actors.committer.rule import CommitterLogic
from actors.contract import messages as msg
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot

P0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("recorded", "confirmed", "start", "begin"),
    [
        (None, None, 40, 40),
        (None, 40, 40, 40),
        (PartitionState(40, begin=7), 40, 40, 7),
        (PartitionState(40), 40, 40, None),  # by an older version
        (PartitionState(40, begin=7), 40, 60, 60),  # forced
        (PartitionState(40, begin=7), 60, 60, 7),  # another member has read meanwhile
        (PartitionState(40, begin=7), 40, 20, 7),
    ],
)
def test_where_reading_begins(
    recorded: PartitionState | None, confirmed: int | None, start: int, begin: int | None
) -> None:
    """At the first start, and where an operator has the log go on above the record."""
    states = {} if recorded is None else {P0: recorded}
    logic = CommitterLogic("p", Snapshot("p", "g", partitions=states), 1.0, None)
    logic.handle(msg.EpochStarted(1, P0, start, 99, confirmed), 0.0)
    assert logic.snapshot().partitions[P0].begin == begin
    logic.handle(msg.Release((P0,)), 1.0)
    logic.handle(msg.Saved({P0: start}), 1.0)
    assert logic.snapshot().partitions[P0].begin == begin
