"""Messages to the fetcher: from its source, from full mailboxes and from the committer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.contract.addresses import Address
from actors.contract.messages.processor import RecordBatch
from offsets.log_epochs import EpochSpan, LogEpoch
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.running import Running


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one partition, in log order, as columns. ``next_offset``: the position after.

    No ``Messages``: a value may be None here (a tombstone), and no size is needed before it is
    known which target gets which of them.
    """

    source: TopicPartition
    offsets: list[int]
    values: list[bytes | None]
    next_offset: int
    time_ms: int | None = None
    """When the last one was made, in Unix milliseconds, as the log has it."""
    epochs: tuple[EpochSpan, ...] = ()
    """Their leader epochs, where the broker gives them."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """The client's state: whether it is connected to any broker."""

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
    """From time to time, when it has changed."""


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
class RoomAvailable:
    """A mailbox that refused has room again."""

    to: Address


@dataclass(frozen=True, slots=True)
class Settled:
    """A processor has no write of the asked partitions under way. ``ticket``: of which asking."""

    sender: Address
    ticket: int


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
class Reread:
    """A batch was given up whose messages exist nowhere else: read these partitions again from
    their frontiers. ``epochs``: the assignments that are meant; under a later one it is done."""

    epochs: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class PauseReading:
    """A person has reading pause, or go on. The group keeps this member. A question: answered when
    nothing more is read."""

    paused: bool


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Read no more; let the processors write what they hold."""
