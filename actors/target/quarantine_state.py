"""State of one target in quarantine: what waits for its spill, and how far a release is.

Nobody else assigns its fields.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from actors.contract import effects as fx
from actors.contract.figures import QuarantineFigures
from actors.contract.raw_messages import SpillState
from actors.target.pending import PendingShare
from offsets.position import TopicPartition

Lanes = dict[TopicPartition, int]


@dataclass(slots=True)
class Quarantine:
    """One target's quarantine, or, with ``away``, the absence of its sink."""

    reason: str
    spill: SpillState
    waiting: deque[PendingShare] = field(default_factory=deque)
    """What is not in the spill yet."""
    rereads: tuple[fx.LogRange, ...] = ()
    """What is no more in memory, and comes before ``waiting``: staged rows are no messages."""
    through: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """What is done once all that waits is spilled."""
    broken: bool = False
    """It can't be read, or not be filled: the pipeline stops."""
    away: bool = False
    """Its sink does not answer. No action is needed: it continues once the sink answers."""
    begun_away: bool = field(init=False)
    """It was away when its spill was begun. It stays so if the sink refuses it later."""
    since: float | None = None
    """When that began. None: in an earlier run."""
    left_to_reread: tuple[fx.LogRange, ...] = ()
    """What is left of ``rereads`` once the disk has what was requested."""
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
    """A request to the disk is open; its answer comes next."""
    retry_at: float | None = None
    attempts: int = 0

    def __post_init__(self) -> None:
        self.begun_away = self.away

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

    # --- what happens to it

    def take(self, chunk: PendingShare) -> None:
        """It comes behind all that is in the spill, or waits for it."""
        self.waiting.append(chunk)

    def note_done(self, source: TopicPartition, epoch: int, last: int) -> None:
        """The lane counts as done up to there once all that waits is spilled."""
        before = self.through.get(source, last) if self.epochs.get(source) == epoch else last
        self.through[source], self.epochs[source] = max(last, before), epoch

    def forget(self, sources: Collection[TopicPartition]) -> None:
        """Partitions went away: what is spilled stays, what waits is read again."""
        self.waiting = deque(chunk for chunk in self.waiting if chunk.source not in sources)
        self.rereads = tuple(each for each in self.rereads if each.source not in sources)
        for source in sources:
            self.through.pop(source, None)
            self.epochs.pop(source, None)

    def begin_release(self) -> None:
        """Its spill is replayed from the start."""
        self.position, self.full = 0, False
        self.retry_at, self.attempts = None, 0

    def untried(self) -> None:
        """What broke its release off was no refusal: it is released by itself once more."""
        self.fresh = True

    def tried(self) -> None:
        """It has been released once by itself: not a second time."""
        self.fresh = False

    def break_off(self, reason: str, *, refused: bool) -> None:
        """The replay is over. ``refused``: a person has to find out why."""
        self.away = self.away and not refused
        self.position, self.reason, self.full = None, reason, False

    def ask(self, retry_at: float | None = None) -> None:
        """A request goes to the disk; ``retry_at``: the next one then, for what is left."""
        self.busy, self.retry_at = True, retry_at

    def ask_end(self) -> None:
        """A request to remove what is replayed and written goes to the disk."""
        self.ending = True
        self.ask()

    def read_to(self, position: int) -> None:
        """A page of the replay is there."""
        self.position, self.busy = position, False

    def spilled(self, state: SpillState) -> tuple[Lanes, Lanes]:
        """The disk has what was requested. Returns through and epochs of what is done now: nothing
        while pieces of the log are still to be read again."""
        self.spill, self.attempts, self.busy = state, 0, False
        self.rereads = self.left_to_reread
        if self.rereads:
            return {}, {}
        through, epochs = self.through, self.epochs
        for chunk in self.waiting:
            through[chunk.source] = max(chunk.messages.last, through.get(chunk.source, -1))
            epochs[chunk.source] = chunk.epoch
        self.waiting.clear()
        self.through, self.epochs = {}, {}
        return through, epochs

    def failed(self) -> int:
        """The disk, or the broker, did not do it; how often so far."""
        self.busy = False
        self.attempts += 1
        if self.releasing and not (self.ending or self.rereads):
            # The release goes on with what is there, and gives room; what waits comes behind it.
            # Not before what is to be read again: that is older.
            self.full = True
        return self.attempts

    def try_again(self, at: float | None) -> None:
        """The next request goes to the disk then; None: at once."""
        self.retry_at = at

    def fill(self, *, broken: bool = False) -> None:
        """Nothing more goes in: it has come to its bound, or is ``broken``."""
        self.full = True
        if broken:
            self.broken, self.busy = True, False

    def drop_waiting(self) -> tuple[int, bool]:
        """What is not in the spill holds the frontier, and is read again by the next start. Gives
        how many messages that were, and whether it is the first time."""
        messages, first = sum(len(chunk.messages) for chunk in self.waiting), not self.dropped
        self.waiting.clear()
        self.dropped = True
        return messages, first

    # --- questions

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
        """What is read again next: at most so many offsets, None: all. What comes after it is
        requested later."""
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
