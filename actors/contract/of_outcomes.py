"""Messages to a writer, and how a write ended, which processor and committer hear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from actors.contract.addresses import Address
from actors.contract.of_targets import OF_SPILL
from actors.contract.writes import StagedBatch, TargetState
from changes.model.model import TargetName
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
    committer: Address | None
    """None: what is written is no change of a source."""
    gatherer: Address | None = None
    """Who has it written together with other targets' (``actors.together``); None: it goes to the
    writers by itself."""

    def over(self, epochs: Mapping[TopicPartition, int]) -> bool:
        """Whether it holds a lane whose assignment has ended. ``epochs``: of each partition, the
        oldest assignment whose messages are still taken.

        What a release writes belongs to no assignment: the spill has it, and a revoke ends the
        release.
        """
        return any(
            epoch != OF_SPILL and epoch < epochs.get(source, 0)
            for source, epoch in self.epochs.items()
        )


@dataclass(frozen=True, slots=True)
class Published:
    """The target shows the batch. ``seconds``: how long the write took. ``at_ms``: when it was
    done, in Unix milliseconds."""

    state: TargetState
    seconds: float
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A target contains the lanes' changes up to ``through``; ``state`` is what it shows now.

    ``state`` is None where nothing had to be published (replays, messages without effect).
    ``seconds``: how long the write took in the sink; ``at_ms``: when it was done, in Unix
    milliseconds, None without a write.
    """

    target: TargetName
    epochs: Mapping[TopicPartition, int]
    through: Mapping[TopicPartition, int]
    state: TargetState | None
    changes: int = 0
    seconds: float = 0.0
    at_ms: int | None = None


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


# Messages to the supervisor of a pipeline: how far it is, and how it ends.


@dataclass(frozen=True, slots=True)
class PipelineFailed:
    """A data error: this pipeline must stop, the others go on. ``at``: the record's place, if it is
    one record."""

    pipeline: str
    reason: str
    at: tuple[TopicPartition, int] | None = None


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
    """An actor failed unexpectedly: the process ends, and a restart replays harmlessly."""

    sender: Address
    reason: str


# Messages about dead letters: to their actor, and its answers.

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
    """The store did not take it; it may later. ``log_away``: the store got nothing, because the
    log did not return the record."""

    reason: str
    log_away: bool = False


@dataclass(frozen=True, slots=True)
class DeadLettersCounted:
    """How many stored letters are open: neither replayed nor discarded."""

    open: int


@dataclass(frozen=True, slots=True)
class DeadLettersNotCounted:
    """A store of letters can't be read; it may later."""

    reason: str


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
