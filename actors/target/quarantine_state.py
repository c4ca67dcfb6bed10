"""State of one target in quarantine: what waits for its spill, and how far a release is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from actors.contract import effects as fx
from actors.contract.figures import QuarantineFigures
from actors.contract.raw_messages import SpillState
from actors.target.pending import Chunk
from offsets.position import TopicPartition


@dataclass(slots=True)
class Quarantine:
    """One target's quarantine, or, with ``away``, the absence of its sink."""

    reason: str
    spill: SpillState
    waiting: deque[Chunk] = field(default_factory=deque)
    """What is not in the spill yet."""
    rereads: tuple[fx.LogRange, ...] = ()
    """What is no more in memory, and comes before ``waiting``: staged rows are no messages."""
    through: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """What is done once all that waits is spilled."""
    broken: bool = False
    """It can't be read, or not be filled: the pipeline stops."""
    away: bool = False
    """Its sink does not answer. Nobody has to do anything: it goes on once that does."""
    since: float | None = None
    """When that began. None: in an earlier run."""
    left_to_reread: tuple[fx.LogRange, ...] = ()
    """What is left of ``rereads`` once the disk has what it was asked for."""
    fresh: bool = False
    """It is of an earlier run: of a target that is being loaded nobody has tried to release it."""
    position: int | None = None
    """How far the spill is replayed, in bytes; None: it is not being released."""
    ending: bool = False
    """It is replayed and written, and the disk is to remove it: nothing more goes into it."""
    full: bool = False
    dropped: bool = False
    """What has no room in the spill is dropped, and that was said."""
    busy: bool = False
    """The disk has been asked, and its answer comes next."""
    retry_at: float | None = None
    attempts: int = 0

    @property
    def releasing(self) -> bool:
        """Whether the spill is being replayed."""
        return self.position is not None

    @property
    def read_all(self) -> bool:
        """Whether the replay has come to the spill's end."""
        return self.position is not None and self.position >= self.spill.bytes

    @property
    def waiting_bytes(self) -> int:
        """Raw messages in memory."""
        return sum(chunk.messages.size for chunk in self.waiting)

    @property
    def idle(self) -> bool:
        """Nothing is left to spill, or nothing that may be: then it is read again."""
        return self.full or not (self.waiting or self.rereads or self.through)

    def figures(self, now: float, answered: bool) -> QuarantineFigures:
        """How it stands. ``answered``: the target's marks are known."""
        spill = self.spill
        return QuarantineFigures(
            self.reason,
            spill.bytes,
            spill.messages,
            dict(spill.lanes),
            self.releasing,
            self.full,
            None if self.since is None else now - self.since,
            answered,
        )

    def next_rereads(self, most: int | None) -> tuple[fx.LogRange, ...]:
        """What is read again next: at most so many offsets, None: all. What comes after it is asked
        for later."""
        if most is None:
            self.left_to_reread = ()  # of when its sink was away
            return self.rereads
        pieces: list[fx.LogRange] = []
        left: list[fx.LogRange] = []
        for source, first, last in self.rereads:
            end = min(last, first + most - 1)
            if end >= first:
                pieces.append(fx.LogRange(source, first, end))
                most -= end - first + 1
            if end < last:
                left.append(fx.LogRange(source, max(first, end + 1), last))
        self.left_to_reread = tuple(left)
        return tuple(pieces)
