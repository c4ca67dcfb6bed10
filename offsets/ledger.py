"""The lane ledger: what is dispatched and not yet done, lane by lane.

Inside a lane writes complete in order, so nothing per record is kept: what is pending of the lane's
whole messages is one ``[first, through]``, however many there are. A message that came in parts is
a separate run, from its first part to its last: other messages stand between its parts and may be
done before it.

A partition's lanes are kept sorted by their lowest pending offset: the first of them holds the
frontier, and an acknowledgement moves one.

Passive and without a lock: the committer's mailbox is its lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sortedcontainers import SortedList

from offsets.position import NO_OFFSET, Lane, Run, TopicPartition

_NOTHING: Mapping[str, Sequence[Run]] = {}
_NO_FRAGMENTS: Mapping[str, int] = {}


class LedgerError(Exception):
    """The caller registered something that can't be true: its bug, never to be masked."""


class _Pending:
    """What is pending of one lane: a range of whole messages, and runs of split ones.

    ``runs`` are those that can be its lowest: each begins after the one before it and ends after
    it. A run that begins later than another and ends before it is no longer there: it goes first
    and never was the lowest. Without a range ``first`` is above ``through``.
    """

    __slots__ = ("first", "lowest", "runs", "through")

    def __init__(self, lowest: int) -> None:
        self.first = 0
        self.through = -1
        self.runs: deque[Run] | None = None
        self.lowest = lowest

    def add(self, first: int, through: int) -> None:
        """Whole messages, younger than those of the range."""
        if self.first > self.through:
            self.first = first
        self.through = through
        self.lowest = min(self.lowest, first)

    def add_run(self, run: Run) -> None:
        """A split message, completed after all that is here."""
        if self.runs is None:  # an empty deque takes more memory than all the rest
            self.runs = deque()
        while self.runs and self.runs[-1].first >= run.first:
            self.runs.pop()
        self.runs.append(run)
        self.lowest = min(self.lowest, run.first)

    def lift(self, through: int) -> bool:
        """All up to ``through`` is done. Returns whether anything is left."""
        if self.first <= through:
            self.first = through + 1
        left = self.first <= self.through
        runs = self.runs
        if runs is None:
            self.lowest = self.first
            return left
        while runs and runs[0][1] <= through:
            runs.popleft()
        if not runs:
            self.runs = None
            self.lowest = self.first
            return left
        lowest = runs[0][0]
        self.lowest = self.first if left and self.first < lowest else lowest
        return True


@dataclass(slots=True)
class _Partition:
    """One assigned partition: its position, its pending lanes, the messages that lack parts."""

    next_offset: int
    lanes: dict[str, _Pending] = field(default_factory=dict)
    order: SortedList[tuple[int, str]] = field(default_factory=SortedList)
    """Of each lane its lowest pending offset and its target."""
    fragments: dict[str, int] = field(default_factory=dict)

    def move(self, target: str, before: int, lowest: int) -> None:
        self.order.remove((before, target))
        self.order.add((lowest, target))

    def frontier(self) -> int:
        return min(self.unapplied(), min(self.fragments.values(), default=self.next_offset))

    def unapplied(self) -> int:
        """The lowest pending offset of any lane, else the position."""
        return self.order[0][0] if self.order else self.next_offset


class LaneLedger:
    """Knows, for each assigned partition, up to where everything is done.

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
        self,
        source: TopicPartition,
        next_offset: int,
        lanes: Mapping[str, tuple[int, int]],
        runs: Mapping[str, Sequence[Run]] = _NOTHING,
        fragments: Mapping[str, int] = _NO_FRAGMENTS,
    ) -> None:
        """Register a batch: the consumer's position after it, and what each target's lane got.

        ``lanes`` maps a target to the first and last message offset that it got from this batch.
        ``runs`` maps a target to the split messages that became whole in it, in the order of
        their last parts. ``fragments`` are all messages that lack parts after this batch, by a
        name of the caller's, with the offset of their first part: each holds the frontier there,
        and gives way to its runs in the same call that has it no more.

        Raises LedgerError when offsets go backwards, or something begins where the frontier may
        have been already.
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
            lane = self._lane(part, target, first)
            lane.add(first, through)
        if runs:
            self._add_runs(source, part, next_offset, runs)
        if fragments or part.fragments:
            self._set_fragments(source, part, next_offset, fragments)
        part.next_offset = next_offset

    def _lane(self, part: _Partition, target: str, first: int) -> _Pending:
        """A target's lane, which is about to get something from ``first`` on."""
        lane = part.lanes.get(target)
        if lane is None:
            lane = part.lanes[target] = _Pending(first)
            part.order.add((first, target))
        elif first < lane.lowest:
            part.move(target, lane.lowest, first)
            lane.lowest = first
        return lane

    def _add_runs(
        self,
        source: TopicPartition,
        part: _Partition,
        next_offset: int,
        runs: Mapping[str, Sequence[Run]],
    ) -> None:
        held = set(part.fragments.values())
        for target, whole in runs.items():
            last = part.next_offset
            for run in whole:
                if not (run.first >= part.next_offset or run.first in held):
                    raise LedgerError(f"{source}: nothing held {run.first} for a run of {target}")
                if not (last <= run.through < next_offset and run.first <= run.through):
                    raise LedgerError(
                        f"{source}: the run {run.first}..{run.through} of {target} does not end "
                        f"in {last}..{next_offset - 1}"
                    )
                last = run.through
                self._lane(part, target, run.first).add_run(run)

    def _set_fragments(
        self,
        source: TopicPartition,
        part: _Partition,
        next_offset: int,
        fragments: Mapping[str, int],
    ) -> None:
        for name, first in fragments.items():
            known = part.fragments.get(name) == first
            if not (known or part.next_offset <= first < next_offset):
                raise LedgerError(f"{source}: nothing held {first} for the open message {name}")
        part.fragments = dict(fragments)

    def done(self, lane: Lane, through: int) -> None:
        """Take note that a lane is applied up to ``through``, inclusive.

        A split message is done with its last part. Below what the lane has pending, or for a lane
        with nothing pending, it changes nothing: a replayed acknowledgement is harmless. Raises
        LedgerError above what was dispatched.
        """
        source, target = lane
        part = self._known(source)
        if through >= part.next_offset:
            raise LedgerError(f"{source}: {target} done through {through}, never dispatched")
        pending = part.lanes.get(target)
        if pending is None:
            return
        before = pending.lowest
        if not pending.lift(through):
            del part.lanes[target]
            part.order.remove((before, target))
        elif pending.lowest != before:
            part.move(target, before, pending.lowest)

    def frontier(self, source: TopicPartition) -> int:
        """The offset below which everything is done: what may be committed."""
        return self._known(source).frontier()

    def applied(self, source: TopicPartition) -> int:
        """The offset below which all that is whole is done: open messages don't count."""
        return self._known(source).unapplied()

    def position(self, source: TopicPartition) -> int:
        """The offset that is read next."""
        return self._known(source).next_offset

    def frontiers(self) -> dict[TopicPartition, int]:
        """The frontier of each assigned partition."""
        return {source: self.frontier(source) for source in self._partitions}

    def holders(self, source: TopicPartition) -> Iterable[tuple[str, int]]:
        """Who holds the frontier, lowest pending offset first: targets, and open messages."""
        part = self._known(source)
        opened = ((first, f"open message {name}") for name, first in part.fragments.items())
        return ((target, first) for first, target in sorted([*part.order, *opened]))

    def pending(self, lane: Lane) -> tuple[int, int] | None:
        """A lane's lowest and highest pending offset, or None when nothing of it is in flight."""
        found = self._known(lane.source).lanes.get(lane.target)
        if found is None:
            return None
        return found.lowest, max(found.through, found.runs[-1].through if found.runs else NO_OFFSET)

    def _known(self, source: TopicPartition) -> _Partition:
        try:
            return self._partitions[source]
        except KeyError:
            raise LedgerError(f"{source} is not assigned") from None
