"""Messages to a processor: shares of batches, how its staging ended, revokes, the drain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages, SpillRecord, SpillState
from actors.contract.writes import TargetState
from changes.model.model import KeyBound, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from offsets.counts import Minutes
from offsets.key_partitioning import KeyPartitioning
from offsets.position import TopicPartition
from offsets.recovery import Watermarks

if TYPE_CHECKING:
    from changes.formats.engine.column_changes import ColumnChange
    from changes.formats.engine.lacking import ShownColumns


@dataclass(frozen=True, slots=True)
class Share:
    """What one target got of a fetched batch. ``ddl``: a single message that is a barrier.

    ``table``: whose rows these are, where the target is meant to be of one table alone.
    """

    route: TargetRoute
    messages: Messages
    ddl: bool = False
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The shares of one processor, of one partition, under one assignment epoch.

    ``start`` is where the partition's reading began with that assignment; ``unrecorded``: there
    is no record of how far it was read before; ``adopted``: see ``Assigned``.
    """

    epoch: int
    source: TopicPartition
    shares: tuple[Share, ...]
    size: int
    log: Watermarks
    start: int = 0
    unrecorded: bool = False
    adopted: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A target's schema and marks as the sink shows them."""

    target: TargetName
    state: TargetState


@dataclass(frozen=True, slots=True)
class BadMessageAt:
    """The first message that can't be applied: in which of the request's lanes, and
    at which place there.

    ``of_table`` and ``of_keys`` as of ``BadRecord``.
    """

    lane_index: int
    index: int
    reason: str
    of_table: bool = False
    of_keys: bool = False


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """How many partitions topics have."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Staged:
    """The messages are decoded; ``path`` is the staged file, None when they held no row at all.

    ``changes`` counts the row changes that were decoded (without those of earlier files),
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
    has_rows: bool = False
    partial: tuple[str, ...] = ()
    bounds: tuple[KeyBound, ...] = ()
    positions: str | None = None
    bad: BadMessageAt | None = None
    declared_types: Mapping[str, str] | None = None
    """The columns' types in the source's words (``TableDecoder.declared_types``) that differ from
    the last answer, or all that the rows declare where that was requested."""
    column_changes: tuple[ColumnChange, ...] = ()
    begins: str = ""
    """The letter of the first change that was decoded."""
    refused: str | None = None
    """Why the target can't have the shape that its route asks for. Then nothing is staged."""
    not_by_key: str | None = None
    """Why its changes may not be in the partitions of their keys. Then nothing is staged."""
    key_partitioning: KeyPartitioning | None = None
    """How the keys of what was decoded are spread, where each has one partition."""
    moves: bool = False
    """Some row takes what it lacks from the stored row of another key."""
    carried: frozenset[str] | None = None
    """As of ``changes.model.model.Changes``, of what was decoded (without earlier files)."""
    tables: Mapping[str, ShownColumns] = field(default_factory=dict)
    """What each source table's rows have, where some inserts lack a column and the target is of
    several tables (``Stage.merged``)."""
    counts: Mapping[TopicPartition, Minutes] = field(default_factory=dict)
    """The changes that were decoded, where they are counted (``Stage.counted``)."""
    cut: bool = False
    alike: bool = False
    """Both as of ``changes.model.model.Changes``."""


@dataclass(frozen=True, slots=True)
class StageFailed:
    """The staging folder did not take the file (disk full...); nothing of it remains.

    ``elsewhere``: a record is not in its key's partition, by the number of them as far as known.
    """

    target: TargetName
    reason: str
    elsewhere: bool = False


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
    """The run ends where the log ended, and all is read: after this many ``batches`` no batch waits
    for its age."""

    batches: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """The request to name what is not written yet (an ``ask``): the answer is a tuple of lines."""


# Messages about a target in quarantine: its spill, and its release.

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
class RetryTarget:
    """Release a target (an ``ask``): the answer is a RetryAnswer, or None where the target is
    another processor's."""

    target: str


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """A person has a target written no more, or again (an ``ask``, answered by every processor)."""

    target: str
    paused: bool


GOES_ON_ALONE = "is away: it goes on by itself once its sink answers"
"""Of a target that no request releases."""


@dataclass(frozen=True, slots=True)
class RetryAnswer:
    """Whether a release has begun, and one line about it."""

    begun: bool
    line: str


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """To ``other``'s processor: in a renaming the write of ``target`` waits for one of ``other``.

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
