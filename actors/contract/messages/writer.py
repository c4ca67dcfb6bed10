"""Messages to a writer, and how a write ended, which processor and committer hear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from actors.contract.addresses import Address
from actors.contract.writes import StagedBatch, TargetState
from changes.model import TargetName
from offsets.position import TopicPartition
from offsets.snapshot import TargetMark


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """Read a target's state. The answer goes to ``reply_to``. ``recorded``: what it is known to
    have published last."""

    target: TargetName
    reply_to: Address
    recorded: TargetMark | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Publish a batch; the processor and the committer hear how it ended.

    ``through`` is what the batch covers of each lane, which is what may be acknowledged. A lane
    of which everything was a replay is covered to less than its mark in ``batch.lanes``.
    """

    batch: StagedBatch
    epochs: Mapping[TopicPartition, int]
    through: Mapping[TopicPartition, int]
    reply_to: Address
    committer: Address
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Published:
    """The target shows the batch. ``seconds``: how long the write took."""

    state: TargetState
    seconds: float


@dataclass(frozen=True, slots=True)
class Written:
    """A target contains the lanes' changes up to ``through``; ``state`` is what it shows now.

    ``state`` is None where nothing had to be published (replays, messages without effect).
    ``seconds``: how long the write took in the sink.
    """

    target: TargetName
    epochs: Mapping[TopicPartition, int]
    through: Mapping[TopicPartition, int]
    state: TargetState | None
    changes: int = 0
    seconds: float = 0.0


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
    """As FENCED, but the other writer was a member of the same group, which lost the partition."""
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
