"""A target's waiting messages (chunks), staged files, and the batch that is closed from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from actors.contract import messages as msg
from actors.contract.effects import LaneMessages
from actors.contract.multi_entry import EntryGroup
from actors.contract.raw_messages import Messages
from changes.model.model import TableName
from offsets.counts import Minutes
from offsets.key_partitioning import KeyPartitioning
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class PendingShare:
    """A share as it waits: neighbouring messages of one lane, undecoded."""

    source: TopicPartition
    epoch: int
    messages: Messages
    ddl: bool
    since: float
    restarts_columns: bool = False
    """The columns or the key are others from here on: what came before is written first, and what
    was known of the columns is forgotten. Then the sink decides whether it can follow."""
    table: TableName | None = None
    """See ``Share.table``. A batch is of one."""

    @property
    def is_barrier(self) -> bool:
        """Whether what came before must be written first."""
        return self.ddl or self.restarts_columns

    def above(self, hwm: int) -> PendingShare | None:
        """The part of the chunk that the target does not contain yet, None when there is none."""
        fresh = self.messages.above(hwm)
        if fresh is self.messages:
            return self
        return None if fresh is None else replace(self, messages=fresh)


@dataclass(slots=True)
class Queue:
    """Raw messages of a target in their order, with their sums."""

    chunks: deque[PendingShare] = field(default_factory=deque)
    messages: int = 0
    size: int = 0

    def add(self, chunk: PendingShare) -> None:
        """Add a chunk at the end of its lane."""
        self.chunks.append(chunk)
        self.messages += len(chunk.messages)
        self.size += chunk.messages.size

    def give_back(self, chunk: PendingShare) -> None:
        """Put a chunk back at the front: it was taken too early."""
        self.chunks.appendleft(chunk)
        self.messages += len(chunk.messages)
        self.size += chunk.messages.size

    def take(self, limit: int) -> list[PendingShare]:
        """Remove chunks of one table from the front: up to a barrier, or until ``limit`` bytes are
        reached.

        A barrier (DDL) at the front is taken alone. Chunks are never split: a message's changes
        belong to one batch.
        """
        taken: list[PendingShare] = []
        size = 0
        while self.chunks and size < limit:
            if taken and (self.chunks[0].is_barrier or self.chunks[0].table != taken[0].table):
                break
            chunk = self.chunks.popleft()
            self.messages -= len(chunk.messages)
            self.size -= chunk.messages.size
            taken.append(chunk)
            size += chunk.messages.size
            if chunk.ddl:
                break
        return taken

    def take_lane(self) -> list[PendingShare]:
        """Remove the front lane's chunks of one table, up to a barrier. Other lanes' between them
        stay: lanes have no order."""
        taken: list[PendingShare] = []
        left: list[PendingShare] = []
        first = next(iter(self.chunks), None)
        while first and self.chunks and not self.barrier_first:
            if self.chunks[0].table != first.table:
                break
            chunk = self.chunks.popleft()
            (taken if chunk.source == first.source else left).append(chunk)
        self.chunks.extendleft(reversed(left))
        self.messages -= sum(len(chunk.messages) for chunk in taken)
        self.size -= sum(chunk.messages.size for chunk in taken)
        return taken

    def forget(self, sources: frozenset[TopicPartition]) -> None:
        """Drop the chunks of partitions that went away."""
        kept = [chunk for chunk in self.chunks if chunk.source not in sources]
        self.clear()
        for chunk in kept:
            self.add(chunk)

    def clear(self) -> None:
        """Drop all: it is read again after a restart."""
        self.chunks.clear()
        self.messages = self.size = 0

    @property
    def barrier_first(self) -> bool:
        """Whether the next message is a barrier: what came before must be written first."""
        return bool(self.chunks) and self.chunks[0].is_barrier

    @property
    def since(self) -> float | None:
        """When the oldest message came, None when none waits."""
        return self.chunks[0].since if self.chunks else None


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A staged file that waits behind the write in flight; it holds rows of one lane only."""

    source: TopicPartition
    path: str
    changes: int
    size: int
    through: int
    first: int
    table: TableName | None = None
    carried: frozenset[str] | None = None
    key_partitioning: KeyPartitioning | None = None
    counts: Mapping[TopicPartition, Minutes] = field(default_factory=dict)


class ClosingPart(NamedTuple):
    """Neighbouring chunks of one lane in a closing: what of them is new, and how far they go.

    ``through`` is the last message. Where it is a replay ``lane`` holds less, or nothing.
    """

    lane: LaneMessages
    epoch: int
    through: int


class DeadRecord(NamedTuple):
    """A record of a lane that becomes a dead letter."""

    source: TopicPartition
    epoch: int
    offset: int


@dataclass(slots=True)
class Closing:
    """A batch that is closed and being staged: kept until the file is there (the disk may be
    full, then it is tried again)."""

    parts: tuple[ClosingPart, ...]
    size: int
    staged_files: tuple[StagedFile, ...]
    through: dict[TopicPartition, int]
    epochs: dict[TopicPartition, int]
    behind_write: TopicPartition | None
    """None: the batch itself. Else: a file of this partition, which will wait behind the write."""
    entry_group: EntryGroup | None = None
    """It is a part of the message that waits at the front: that one holds it."""
    table: TableName | None = None

    def firsts(self) -> dict[TopicPartition, int]:
        """The first message of each lane in it."""
        found: dict[TopicPartition, int] = {}
        for file in self.staged_files:
            found.setdefault(file.source, file.first)
        for part in self.parts:
            if part.lane.messages:
                found.setdefault(part.lane.source, part.lane.messages.first)
        return found

    def chunks(self, now: float) -> list[PendingShare]:
        """Its messages as they came. That of an entry group waits whole at the front."""
        if self.entry_group is not None:
            return []
        return [
            PendingShare(
                part.lane.source,
                part.epoch,
                Messages.of(part.lane.messages.offsets, part.lane.messages.values),
                False,
                now,
                table=self.table,
            )
            for part in self.parts
            if part.lane.messages
        ]

    def replayed(self) -> list[tuple[TopicPartition, int, int]]:
        """The parts of which the target has all: partition, epoch, last message."""
        if self.entry_group is not None:
            return []
        parts = [part for part in self.parts if not part.lane.messages]
        return [(part.lane.source, part.epoch, part.through) for part in parts]

    def without(self, sources: frozenset[TopicPartition]) -> Closing | None:
        """What is left when these partitions are revoked, None when that is nothing."""
        parts = tuple(part for part in self.parts if part.lane.source not in sources)
        staged_files = tuple(file for file in self.staged_files if file.source not in sources)
        through = {s: last for s, last in self.through.items() if s not in sources}
        if not parts and not staged_files and not through:
            return None
        held = sum(len(part.lane.messages) for part in self.parts)
        kept = sum(len(part.lane.messages) for part in parts)
        epochs = {s: epoch for s, epoch in self.epochs.items() if s not in sources}
        size = self.size * kept // max(held, 1)
        return replace(
            self, parts=parts, size=size, staged_files=staged_files, through=through, epochs=epochs
        )

    def cover(self, bad: msg.BadMessageAt | None) -> None:
        """Note what the new file covers besides earlier ones: all parts, or those before ``bad``.

        Each lane's marks move in the order of its parts. Behind ``bad`` that is still true of other
        lanes' replays: they are no messages that could be closed again.
        """
        waiting: set[TopicPartition] = set()
        for place, part in enumerate(self.parts):
            source, last = part.lane.source, part.through
            if bad is not None and place == bad.lane_index:
                waiting.add(source)
                if bad.index == 0:
                    continue
                last = part.lane.messages.offsets[bad.index - 1]
            elif bad is not None and place > bad.lane_index:
                if part.lane.messages:
                    waiting.add(source)
                if source in waiting:
                    continue
            self.through[source] = last
            self.epochs[source] = part.epoch
