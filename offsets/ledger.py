"""The lane ledger: what is dispatched and not yet done, as one interval per lane.

Inside a lane writes complete in order, so nothing per record is kept: a lane's pending stretch is
one ``[first, through]``. The lanes of a partition are sorted by ``first``, so the frontier is a
look at the head and an acknowledgement costs O(log lanes), however many messages are in flight.

Passive and without a lock: the committer's mailbox is its lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sortedcontainers import SortedSet

from offsets.position import Lane, TopicPartition


class LedgerError(Exception):
    """The ledger was told something that can't be true: a bug in the caller, never to be masked."""


@dataclass(slots=True)
class _Partition:
    """One assigned partition: its position and its pending lanes, lowest first."""

    next_offset: int
    pending: dict[str, tuple[int, int]] = field(default_factory=dict)
    by_first: SortedSet[tuple[int, str]] = field(default_factory=SortedSet)


class LaneLedger:
    """Tells, for each assigned partition, up to where everything is done.

    Contiguous means contiguous in dispatch order, never ``offset + 1``: gaps that transaction
    markers, aborted records and compaction leave in the log hold nothing up.
    """

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}

    @property
    def sources(self) -> tuple[TopicPartition, ...]:
        """The partitions that are assigned."""
        return tuple(self._partitions)

    def assign(self, source: TopicPartition, position: int) -> None:
        """Begin a partition at the offset that is read first. Forgets what was pending there."""
        self._partitions[source] = _Partition(position)

    def drop(self, source: TopicPartition) -> None:
        """Forget a partition that was taken away; its acknowledgements are stale from now on."""
        self._partitions.pop(source, None)

    def dispatched(
        self, source: TopicPartition, next_offset: int, lanes: Mapping[str, tuple[int, int]]
    ) -> None:
        """Register a batch: the consumer's position after it, and what each target's lane got.

        ``lanes`` maps a target to the first and last message offset that it got from this batch.
        Raises LedgerError when offsets go backwards.
        """
        part = self._known(source)
        if next_offset < part.next_offset:
            raise LedgerError(
                f"{source}: position goes back from {part.next_offset} to {next_offset}"
            )
        for target, (first, through) in lanes.items():
            if not part.next_offset <= first <= through < next_offset:
                raise LedgerError(
                    f"{source}: {first}..{through} of {target} is outside "
                    f"{part.next_offset}..{next_offset - 1}"
                )
            held = part.pending.get(target)
            if held is None:
                part.by_first.add((first, target))
                part.pending[target] = (first, through)
            else:
                part.pending[target] = (held[0], through)
        part.next_offset = next_offset

    def done(self, lane: Lane, through: int) -> None:
        """Take note that a lane is applied up to ``through``, inclusive.

        Below the lane's pending stretch, or for a lane with nothing pending, it changes nothing:
        a replayed acknowledgement is harmless. Raises LedgerError above what was dispatched.
        """
        source, target = lane
        part = self._known(source)
        if through >= part.next_offset:
            raise LedgerError(f"{source}: {target} done through {through}, never dispatched")
        held = part.pending.get(target)
        if held is None or through < held[0]:
            return
        first, last = held
        part.by_first.remove((first, target))
        if through >= last:
            del part.pending[target]
        else:
            part.pending[target] = (through + 1, last)
            part.by_first.add((through + 1, target))

    def frontier(self, source: TopicPartition) -> int:
        """The offset below which everything is done: what may be committed."""
        part = self._known(source)
        return part.by_first[0][0] if part.by_first else part.next_offset

    def position(self, source: TopicPartition) -> int:
        """The offset that is read next."""
        return self._known(source).next_offset

    def frontiers(self) -> dict[TopicPartition, int]:
        """The frontier of each assigned partition."""
        return {source: self.frontier(source) for source in self._partitions}

    def holders(self, source: TopicPartition) -> Iterable[tuple[str, int]]:
        """The targets that hold the frontier, lowest pending offset first."""
        return ((target, first) for first, target in self._known(source).by_first)

    def pending(self, lane: Lane) -> tuple[int, int] | None:
        """A lane's pending stretch, or None when nothing of it is in flight."""
        return self._known(lane.source).pending.get(lane.target)

    def _known(self, source: TopicPartition) -> _Partition:
        try:
            return self._partitions[source]
        except KeyError:
            raise LedgerError(f"{source} is not assigned") from None
