"""What the actors say to each other. Values only; batches, never single records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from actors.contract.ports import SpillRecord, SpillState, StagedBatch, TargetState
from changes.column_changes import ColumnChange
from changes.model import KeyBound, Mode, TableName, TableSchema, TargetName
from changes.routing import TargetRoute
from offsets.log_epochs import EpochSpan, LogEpoch
from offsets.position import Run, TopicPartition
from offsets.recovery import Watermarks
from offsets.running import Running
from offsets.snapshot import SpillMark, TargetMark


class Address(NamedTuple):
    """Who gets a message: a role in a pipeline, and which one of several.

    The writers belong to no pipeline (they share one Spark session): their pipeline is ``""``.
    """

    pipeline: str
    role: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.role}[{self.number}]"


MESSAGE_OVERHEAD = 80
"""Bytes that a message costs besides its own: a bytes object's head, an int, two list places."""

WRITERS = Address("", "writers")
"""The queue that all writers take from."""


# --- the fetcher hears


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one partition, in log order, as columns. ``next_offset``: the position after."""

    source: TopicPartition
    offsets: list[int]
    values: list[bytes | None]
    next_offset: int
    time_ms: int | None = None
    """When the last one was made, in Unix milliseconds, as the log has it."""
    epochs: tuple[EpochSpan, ...] = ()
    """Their leader epochs, where the broker tells them."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """What the client said of its brokers: whether it is connected to any."""

    connected: bool


@dataclass(frozen=True, slots=True)
class Polled:
    """What one ``consume`` brought. Empty ``batches`` with ``positions``: the log's end moved on
    over transaction markers, or nothing happened."""

    batches: tuple[Fetched, ...] = ()
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    error: str | None = None
    """The source can't be read on (a position outside the log...): why, in one line."""
    state: SourceState | None = None
    """Now and then, when there is something new to tell."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions were given to this member, each with its start and the log as it was then."""

    starts: Mapping[TopicPartition, int]
    logs: Mapping[TopicPartition, Watermarks]
    confirmed: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, LogEpoch] = field(default_factory=dict)
    """Of the logs below the starts, where they are recorded."""
    at_frontier: frozenset[TopicPartition] = frozenset()
    """Those whose start is a recorded frontier: what began below it was applied."""
    running: Mapping[TopicPartition, Running] = field(default_factory=dict)
    """The producer's numbers at the starts, where they are recorded."""
    unrecorded: frozenset[TopicPartition] = frozenset()
    """Those of which neither a record nor the group says how far they were read."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions are taken away. ``lost``: another member may have them already, don't commit."""

    sources: tuple[TopicPartition, ...]
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Offered:
    """How an offer ended. Not ``taken``: the mailbox was full, the batch is to be parked."""

    to: Address
    batch: RecordBatch
    taken: bool


@dataclass(frozen=True, slots=True)
class RoomAgain:
    """A mailbox that refused has room again."""

    to: Address


@dataclass(frozen=True, slots=True)
class CommitFrontiers:
    """The local file holds these frontiers: the broker may have them. ``last``: close after.

    ``epochs``: the assignments they are of. One that waited here over a rebalance is stale, and
    committing it would move the group back.
    """

    frontiers: Mapping[TopicPartition, int]
    epochs: Mapping[TopicPartition, int]
    last: bool = False


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A batch was given up whose messages exist nowhere else: read these partitions again from
    their frontiers. ``epochs``: the assignments that are meant; under a later one it is done."""

    epochs: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Read no more; let the processors write what they hold."""


# --- a processor hears


@dataclass(frozen=True, slots=True)
class Share:
    """What one target got of a fetched batch. ``ddl``: a single message that is a barrier.

    ``table``: whose rows these are, where the target is meant to be of one table alone.
    """

    route: TargetRoute
    offsets: list[int]
    values: Sequence[bytes]
    size: int
    ddl: bool = False
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The shares of one processor, of one partition, under one assignment epoch.

    ``start`` is where the partition's reading began with that assignment; ``unrecorded``: nobody
    knows how far it was read before.
    """

    epoch: int
    source: TopicPartition
    shares: tuple[Share, ...]
    size: int
    log: Watermarks
    start: int = 0
    unrecorded: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A target's schema and marks as the sink shows them."""

    target: TargetName
    state: TargetState


@dataclass(frozen=True, slots=True)
class BadMessageAt:
    """The first message that can't be applied: which of the request's stretches, which in that.

    ``of_table``: it has other columns or another key than those before it (``BadRecord``).
    """

    stretch: int
    index: int
    reason: str
    of_table: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """The messages are decoded; ``path`` is the staged file, None when they held no row at all.

    ``changes`` counts the row changes that were decoded (those of pieces were counted before),
    ``nulled`` the values among them that no lake can hold and configuration makes null.
    ``positions`` names the source positions that the rows carry, None where they carry none. Where
    there is a ``bad`` message, all that came before it is in the file and nothing of what follows.
    """

    target: TargetName
    path: str | None = None
    rows: int = 0
    size: int = 0
    changes: int = 0
    nulled: int = 0
    schema: TableSchema | None = None
    mode: Mode | None = None
    has_deletes: bool = False
    partial: tuple[str, ...] = ()
    bounds: tuple[KeyBound, ...] = ()
    positions: str | None = None
    bad: BadMessageAt | None = None
    declared_types: Mapping[str, str] | None = None
    """The columns' types in the source's words (``DeclaresTypes``) that differ from the last
    answer, or all that the rows declare where that was asked for."""
    column_changes: tuple[ColumnChange, ...] = ()
    begins: str = ""
    """The letter of the first change that was decoded."""


@dataclass(frozen=True, slots=True)
class StageFailed:
    """The staging folder did not take the file (disk full...); nothing of it remains."""

    target: TargetName
    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Partitions were revoked: drop what is not being written.

    ``epoch`` is the newest that was given out before: control overtakes data, so batches of it
    may still wait in the mailbox, and are stale from now on.
    """

    sources: tuple[TopicPartition, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Say ``Settled`` once no write of these partitions is under way: they go to another member,
    who must find the marks as they will be. Comes after their ``Forget``."""

    sources: tuple[TopicPartition, ...]
    ticket: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Write everything now, then say ``Drained``. ``batches``: how many were sent in all."""

    batches: int


@dataclass(frozen=True, slots=True)
class Flush:
    """This is all that a run reads which ends where the log ended: from the last of so many
    ``batches`` on no batch need wait for its age."""

    batches: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """Name what is not written yet (an ``ask``): the answer is a tuple of lines."""


# --- the writers hear


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """Read a target's state. The answer goes to ``reply_to``. ``recorded``: what it is known to
    have published last."""

    target: TargetName
    reply_to: Address
    recorded: TargetMark | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Publish a batch; tell the processor and the committer how it ended.

    ``through`` is what the batch covers of each lane, which is what may be acknowledged. A lane
    of which everything was a replay is covered to less than its mark in ``batch.lanes``.
    """

    batch: StagedBatch
    epochs: Mapping[TopicPartition, int]
    through: Mapping[TopicPartition, int]
    reply_to: Address
    committer: Address
    attempt: int = 1


# --- how a write ended: both the processor and the committer hear


@dataclass(frozen=True, slots=True)
class Written:
    """A target contains the lanes' changes up to ``through``; ``state`` is what it shows now.

    ``state`` is None where nothing had to be published (replays, messages without effect).
    """

    target: TargetName
    epochs: Mapping[TopicPartition, int]
    through: Mapping[TopicPartition, int]
    state: TargetState | None
    changes: int = 0


class FailureKind(Enum):
    """What to do about a failure of a sink."""

    RETRY = "retry"
    """It may pass: offer the same again later."""
    WAITS = "waits"
    """It will pass: another target's write comes first, in a renaming."""
    REFUSED = "refused"
    """The target can't hold what the source has."""
    FENCED = "fenced"
    """Another writer moved the target: what is known of its marks is out of date."""
    STRAGGLER = "straggler"
    """So it is, but the writer was a member of the same group that lost the partition."""
    RACED = "raced"
    """Another writer published first, as members that share a target do: the marks decide, now."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A write or an open did not happen; readers of the target saw nothing of it."""

    target: TargetName
    kind: FailureKind
    reason: str
    awaits: TargetName | None = None
    """With WAITS: whose write comes first."""


# --- a writer hears from its sink


@dataclass(frozen=True, slots=True)
class Published:
    """The target shows the batch. ``seconds``: how long the write took."""

    state: TargetState
    seconds: float


# --- whoever waits for a hand-over hears


@dataclass(frozen=True, slots=True)
class Settled:
    """A processor has no write of the asked partitions under way. ``ticket``: of which asking."""

    sender: Address
    ticket: int


# --- the committer hears


@dataclass(frozen=True, slots=True)
class EpochStarted:
    """A partition is read from ``start`` under a new epoch.

    ``until`` is the log's end as it was then, ``confirmed`` the broker's last known commit,
    ``log`` the leader epoch and ``running`` the numbers that were recorded with the start.
    """

    epoch: int
    source: TopicPartition
    start: int
    until: int
    confirmed: int | None
    log: LogEpoch | None = None
    running: Running | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A fetched batch is about to be sent on: it comes before the data, always.

    ``lanes``: target -> first and last message offset it gets. Empty: only the position moved.
    ``runs``: target -> the split messages for it that became whole with this batch.
    ``fragments``: all messages that lack parts after it, by name, with their first part's offset.
    ``running``: the producer's numbers after it, by stream, where it tells any.
    """

    epoch: int
    source: TopicPartition
    next_offset: int
    lanes: Mapping[str, tuple[int, int]]
    time_ms: int | None = None
    runs: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)
    fragments: Mapping[str, int] = field(default_factory=dict)
    epochs: tuple[EpochSpan, ...] = ()
    running: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FormatTold:
    """A topic's format was told from its messages; it comes before any ``Dispatched`` of them."""

    topic: str
    format: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has these commits."""

    frontiers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Release:
    """Partitions go away: save, then answer with their frontiers (an ``ask``)."""

    sources: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SaveNow:
    """Save at once and hand the frontiers on as the last ones: the drain is over."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The stores before the group's commit hold these frontiers, durably."""

    frontiers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SaveFailed:
    """A store did not take the snapshot: ``reason`` names it. Those before it may have."""

    reason: str


# --- quarantine: a processor hears, and says

OF_SPILL = -1
"""The epoch of messages that come from a spill: they were acknowledged when they went into it."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """All that was handed over is in the spill, durably."""

    target: TargetName
    state: SpillState


@dataclass(frozen=True, slots=True)
class SpillFailed:
    """The spill could not be written or read. ``lasting``: trying again won't help."""

    target: TargetName
    reason: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class SpillRead:
    """Messages of a spill; ``position`` is behind them."""

    target: TargetName
    records: Sequence[SpillRecord]
    position: int


@dataclass(frozen=True, slots=True)
class SpillEnded:
    """The spill is gone."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class SpillListed:
    """The committer hears what a target's spill holds now; None: there is none any more.

    It comes before the ``Written`` of those messages, so that no snapshot counts them as done
    without naming where they are.
    """

    target: str
    mark: SpillMark | None


@dataclass(frozen=True, slots=True)
class RetryTarget:
    """Release a target (an ``ask``): the answer is a RetryAnswer, None from who has it not."""

    target: str


@dataclass(frozen=True, slots=True)
class RetryAnswer:
    """Whether a release has begun, and one line about it."""

    begun: bool
    line: str


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """A target's processor hears whose write waits for one of that target, in a renaming.

    The answer is an InQuarantine, or none: ``target`` asks again at its next attempt.
    """

    target: TargetName
    other: TargetName
    batch_id: str
    reply_to: Address


@dataclass(frozen=True, slots=True)
class InQuarantine:
    """``other`` is in quarantine, so ``target``, whose batch waits for it, can't be written."""

    target: TargetName
    other: TargetName
    batch_id: str


# --- the dead letters hear


DEAD_LETTERS = "(dead letters)"
"""The lane of each partition that holds messages of which no target is known."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that can't be applied. Without ``target`` the committer hears when it is stored,
    else its processor, ``reply_to``, does."""

    source: TopicPartition
    epoch: int
    offset: int
    value: bytes | None
    reason: str
    target: TargetName | None = None
    reply_to: Address | None = None

    @property
    def place(self) -> str:
        """Where in the log it is."""
        return f"{self.source} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class DeadLetterKept:
    """The store has it, durably."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class DeadLetterNotKept:
    """The store did not take it; it may later. ``log_away``: it was not asked, since the log did
    not give the record."""

    reason: str
    log_away: bool = False


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The record is stored: it counts as done."""

    source: TopicPartition
    epoch: int
    offset: int
    target: TargetName | None


@dataclass(frozen=True, slots=True)
class DeadLetterRefused:
    """There are too many: the record stays open and its target stops before it."""

    target: TargetName
    reason: str


# --- the supervisor hears


@dataclass(frozen=True, slots=True)
class PipelineFailed:
    """A data error: this pipeline must stop, the others go on."""

    pipeline: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything below the end offsets seen at the start is applied."""

    pipeline: str


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table that is being rebuilt holds all that the old one did: it may take its name."""

    pipeline: str
    target: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pipeline is. ``lag``: messages up to the log's end as it was at the start."""

    pipeline: str
    lag: int
    changes: int


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A signal asks the process to end; the second one asks it to end now."""

    signal: str


@dataclass(frozen=True, slots=True)
class Drained:
    """A processor holds nothing any more."""

    sender: Address


@dataclass(frozen=True, slots=True)
class SourceClosed:
    """The last commit was made and the consumer has left the group."""

    pipeline: str


@dataclass(frozen=True, slots=True)
class ActorCrashed:
    """An actor failed in a way nobody foresaw: the process ends, a restart replays harmlessly."""

    sender: Address
    reason: str
