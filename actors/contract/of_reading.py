"""Messages to the fetcher: from its source, from full mailboxes and from the committer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.contract.addresses import Address
from actors.contract.of_targets import RecordBatch
from changes.formats.wire.schemas import SchemaId
from offsets.parts import Running
from offsets.position import EpochSpan, LogEpoch, Run, TopicPartition
from offsets.rebuild import LoadHindered
from offsets.recovery import Watermarks
from offsets.snapshot import SpillMark


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one partition, in log order, as columns. ``next_offset``: the position after.
    No ``Messages``: a value may be None (a tombstone), and sizes matter once targets are known.
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
    """Whether it is connected to any broker; ``away``: partitions that none of those has."""

    connected: bool
    away: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Polled:
    """What one ``consume`` brought. Without ``batches`` the log's end may have moved on."""

    batches: tuple[Fetched, ...] = ()
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    error: str | None = None
    """The source can't be read on (a position outside the log...): why, in one line."""
    state: SourceState | None = None
    """From time to time, when it has changed."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """From time to time, how many partitions topics have."""
    gone: frozenset[str] | None = None
    """Topics that were read and are not there any more. None: the same as before."""


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
    adopted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The group's commits at which a daemon without a record began: new targets may lack rows."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many partitions their topics have, where each key has one partition."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of their topics, where they were requested."""

    def started(self, source: TopicPartition, epoch: int, *, more: bool) -> EpochStarted:
        """What the committer hears of one of them."""
        start, end = self.starts[source], self.logs[source].high
        confirmed, log = self.confirmed.get(source), self.epochs.get(source)
        running, adopted = self.running.get(source), self.adopted.get(source)
        id_ = self.topic_ids.get(source.topic)
        return EpochStarted(epoch, source, start, end, confirmed, log, running, id_, adopted, more)


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
    """A processor has no write of these partitions under way. ``ticket``: of which request."""

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


@dataclass(frozen=True, slots=True)
class SchemasKept:
    """These schemas of the pipeline's registry are on the disk: messages that need them go on."""

    identities: tuple[SchemaId, ...]


@dataclass(frozen=True, slots=True)
class SchemaMissing:
    """The registry has no such schema, for longer than its grace, or one that can't be used: each
    message that needs it is a bad one. ``SchemasKept`` may follow."""

    identity: SchemaId
    reason: str


@dataclass(frozen=True, slots=True)
class SchemaRefused:
    """The registry has another schema under the identity than the one that is kept: nothing that
    names it is decoded, with either."""

    identity: SchemaId
    reason: str


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Whether a registry answers: ``away`` says why not, None: it does."""

    registry: str
    away: str | None


# Messages to the committer: what was read and sent on, and what the stores hold.


@dataclass(frozen=True, slots=True)
class EpochStarted:
    """A partition is read from ``start`` under a new epoch.

    ``until`` is the log's end as it was then, ``confirmed`` the broker's last known commit,
    ``log`` the leader epoch and ``running`` the numbers that were recorded with the start.
    ``topic_id``: None where it was not requested. ``more``: others of this assignment follow.
    """

    epoch: int
    source: TopicPartition
    start: int
    until: int
    confirmed: int | None
    log: LogEpoch | None = None
    running: Running | None = None
    topic_id: str | None = None
    adopted: int | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class TopicsGone:
    """These topics are not there any more: nothing of theirs is waited for."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A fetched batch is about to be sent on: it comes before the data, always.

    ``lanes``: target -> first and last message offset it gets. Empty: only the position moved.
    ``runs``: target -> the split messages for it that became whole with this batch.
    ``fragments``: all messages that lack parts after it, by name, with their first part's offset.
    ``running``: the producer's numbers after it, by stream, where it gives any.
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
class FormatDetected:
    """A topic's format was detected from its messages. Comes before any ``Dispatched`` of them."""

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
    """A store did not take the snapshot: ``reason`` names it. Stores before it may have it."""

    reason: str


@dataclass(frozen=True, slots=True)
class SpillListed:
    """The committer hears what a target's spill holds now; None: there is none any more.

    It comes before the ``Written`` of those messages: no snapshot counts them without the spill.
    """

    target: str
    mark: SpillMark | None


@dataclass(frozen=True, slots=True)
class LoadBroken:
    """The load that fills the table ``into`` can't go on as it was begun.

    It comes before the ``Written`` of messages that the table is not to get any more.
    """

    into: str
    why: LoadHindered
