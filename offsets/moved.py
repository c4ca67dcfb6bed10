"""A partition's record once an operator has moved its frontier. Pure."""

from __future__ import annotations

from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import PartitionState, Snapshot


def moved_state(recorded: Snapshot, source: TopicPartition, to: int, end: int) -> PartitionState:
    """With the frontier at ``to``, in a log that ends at ``end``."""
    state = recorded.partitions.get(source)
    # The epoch of the log below a frontier is not known of another place.
    log = state.log if state is not None and state.frontier == to else None
    reread, before = _reread(recorded, source, to, end), None if state is None else state.withdraws
    withdraws = before if reread is None else min(to, to if before is None else before)
    begin = _begin(state, to)
    return PartitionState(
        to, None, log, reset=True, reread=reread, begin=begin, withdraws=withdraws
    )


def _begin(state: PartitionState | None, to: int) -> int | None:
    """Put forward, it skips what lies between; put back, it reads what it had skipped."""
    if state is None or to > state.frontier:
        return to
    return None if state.begin is None else min(state.begin, to)


def _reread(recorded: Snapshot, source: TopicPartition, to: int, end: int) -> int | None:
    """Up to where tables may hold more than what lies below the new frontier: to the log's end.
    What they hold is recorded every few seconds, and what a killed daemon wrote then is not."""
    state = recorded.partitions.get(source)
    marks = (mark.hwms.get(source, NO_OFFSET) for mark in recorded.targets.values())
    held = max(marks, default=NO_OFFSET) + 1
    if state is not None:
        held = max(held, state.frontier, state.reread or 0)
        if to >= held:
            return None
    return max(held, end)
