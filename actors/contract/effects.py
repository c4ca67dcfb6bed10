"""What an actor's logic asks for. The shell around it carries these out and nothing else.

An effect either has no answer, or its answer comes back to the same logic as a message, at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from actors.contract.addresses import Address
from actors.contract.of_cuts import SayThrough, TagVersion, WriteTogether
from actors.contract.of_outcomes import DeadLetter
from actors.contract.of_targets import RecordBatch
from actors.contract.raw_messages import Messages, SpillRecord
from actors.contract.writes import StagedBatch
from changes.formats.wire.schemas import SchemaId
from changes.model.model import TableSchema, TargetName
from changes.routes.routing import TargetRoute
from offsets.counts import CountRow
from offsets.cuts import Cut
from offsets.key_partitioning import Partitioned
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import Snapshot, TargetMark

# --- any actor


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a control message."""

    to: Address
    message: object


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Have a ``Tick`` at that monotonic second; None cancels."""

    when: float | None


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the ``ask`` that is being handled."""

    value: object


@dataclass(frozen=True, slots=True)
class Log:
    """One event for the log: ``level`` is structlog's method name."""

    level: str
    event: str
    fields: Mapping[str, object]


# --- the fetcher


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer a batch to a processor; ``Offered`` comes back."""

    to: Address
    batch: RecordBatch


@dataclass(frozen=True, slots=True)
class Consume:
    """Poll the source; ``Polled`` comes back. Assignments are handled inside."""

    max_messages: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop the flow of assigned partitions, of all without ``sources``; polling goes on.
    Idempotent."""

    sources: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Let assigned partitions flow again, all without ``sources``. Idempotent."""

    sources: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class WantSchemas:
    """Have schemas of the pipeline's registry on the disk. ``SchemasKept`` comes back with those
    that are there already, and again for each that comes later."""

    identities: tuple[SchemaId, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit to the broker. ``wait``: synchronously, as the last act or when partitions go."""

    frontiers: Mapping[TopicPartition, int]
    wait: bool


@dataclass(frozen=True, slots=True)
class ReleaseSources:
    """Ask the committer to save and give the frontiers of partitions that go away.

    First wait, for as long as a revoke may take, until none of the processors in ``settle`` has a
    write of them under way.
    """

    sources: tuple[TopicPartition, ...]
    commit: bool
    settle: tuple[Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """Decide again where these partitions are read from; ``Assigned`` comes, as after a revoke."""

    sources: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CloseSource:
    """Leave the group and close the consumer."""


# --- a processor


@dataclass(frozen=True, slots=True)
class LaneMessages:
    """Undecoded messages of one lane, in order.

    ``rows_before``: so many rows of its one message were staged before; a changelog counts on.
    ``held``: the target's mark of the lane when this was closed.
    """

    source: TopicPartition
    messages: Messages
    rows_before: int = 0
    held: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class Stage:
    """Decode messages, fold them after earlier files, in order, and write one staged file.

    ``Staged`` comes back. The earlier files are removed once the new one is written.
    """

    route: TargetRoute
    earlier_files: tuple[str, ...]
    lanes: tuple[LaneMessages, ...]
    generation: int = 0
    """Another number than the last: the target's columns were dropped, renamed or redefined since,
    so what is known of them from earlier messages is forgotten."""
    stored: TableSchema | None = None
    """The target's columns, for messages without types: with a generation's first batch."""
    all_types: bool = False
    """Answer with all types that the rows declare, also with those answered before."""
    merged: frozenset[str] | None = None
    """The target's columns, in small letters, where several source tables may feed it: then
    ``Staged.tables`` says whose inserts lack some. None: it is of one table."""
    partitioned: Partitioned | None = None
    """Each key has one partition: that is looked at, too. None: partitions say nothing of keys."""
    counted: bool = False
    """The changes are counted by the source's minutes."""


@dataclass(frozen=True, slots=True)
class RemoveStaged:
    """Remove staged files that will not be written."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Take no data from the mailbox (its sender will pause) until a ``Hold`` with False."""

    held: bool


class LogRange(NamedTuple):
    """A range of the log that is read again for one target's messages, first to last offset."""

    source: TopicPartition
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Spill:
    """Append to a target's spill: what of ``rereads`` is its own, then ``records``; ``Spilled`` or
    ``SpillFailed`` comes back."""

    target: TargetName
    reason: str
    rereads: tuple[LogRange, ...]
    records: tuple[SpillRecord, ...]
    away: bool = False
    """Its sink does not answer: a start goes on by itself."""


@dataclass(frozen=True, slots=True)
class ReadSpill:
    """Read some bytes of a spill; ``SpillRead`` or ``SpillFailed`` comes back."""

    target: TargetName
    position: int
    limit: int


@dataclass(frozen=True, slots=True)
class EndSpill:
    """Remove a spill that is written; ``SpillEnded`` or ``SpillFailed`` comes back."""

    target: TargetName


# --- the dead letters


@dataclass(frozen=True, slots=True)
class KeepDeadLetter:
    """Store a record durably; ``DeadLetterKept`` or ``DeadLetterNotKept`` comes back."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class CountDeadLetters:
    """Count the stored letters that are open; ``DeadLettersCounted`` or ``DeadLettersNotCounted``
    comes back."""


# --- a writer


@dataclass(frozen=True, slots=True)
class OpenInSink:
    """Read the target; ``Opened`` or ``Failed`` comes back."""

    target: TargetName
    recorded: TargetMark | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """Write and publish the batch; ``Published`` or ``Failed`` comes back."""

    batch: StagedBatch


@dataclass(frozen=True, slots=True)
class StageOwn:
    """Stage a cut's row, or counts; ``OwnStaged`` or ``OwnNotStaged`` comes back."""

    rows: Cut | tuple[CountRow, ...]


# --- the committer


@dataclass(frozen=True, slots=True)
class SaveSnapshot:
    """Have the stores record a snapshot; ``Saved`` or ``SaveFailed`` comes back.

    ``owned`` are the partitions that this member owns: what the snapshot says of others may be out
    of date.
    """

    snapshot: Snapshot
    owned: tuple[TopicPartition, ...] = ()


Shared = Tell | WakeAt | Reply | Log | Hold | Offer
"""What the shell itself carries out, for any actor."""
OfFetcher = Consume | Pause | Resume | WantSchemas | Commit | ReleaseSources | Restart | CloseSource
OfTarget = Stage | RemoveStaged | Spill | ReadSpill | EndSpill
OfWriter = OpenInSink | Publish | WriteTogether | TagVersion | SayThrough | RemoveStaged
OfOwnTables = StageOwn | RemoveStaged
FetcherEffect = Shared | OfFetcher
TargetEffect = Shared | OfTarget
OfDeadLetters = KeepDeadLetter | CountDeadLetters
DeadLetterEffect = Shared | OfDeadLetters
WriterEffect = Shared | OfWriter
OwnTableEffect = Shared | OfOwnTables
CommitterEffect = Shared | SaveSnapshot
