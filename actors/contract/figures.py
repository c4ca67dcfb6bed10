"""Figures: what the actors answer when they are asked for their state. Values.

Ages are in seconds of the monotonic clock, times of the source in Unix milliseconds. Counts begin
with the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.contract.histogram import FRESH_S, WRITE_S, Histogram, HistogramFigures
from offsets.cuts import Cut
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class Figures:
    """The request for them (an ``ask``): the answer is one of the values below."""


@dataclass(frozen=True, slots=True)
class SchemasAwaited:
    """Messages of a topic that wait for schemas, and some of these."""

    messages: int
    schemas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegistryFigures:
    """A pipeline's schema registry. ``away``: why it gives no answer, and since when, by the
    pipeline's own messages. ``awaited``: by topic what waits for a schema, and for which ones."""

    away: str | None = None
    away_s: float | None = None
    awaited: Mapping[str, SchemasAwaited] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetcherFigures:
    """``dropped``: messages that no route wants, or that carry no change. ``unreachable_s``: how
    long no broker is connected. ``repeated``: messages that the producer sent again: dropped.
    ``passed_over``: messages that may ask for a change, of a table that they don't name for sure.
    ``left_out``: messages of ``left_out_tables`` tables, whose names no target can have. ``uncut``:
    why nothing can be cut, where it should be."""

    assigned: bool
    paused: bool
    positions: Mapping[TopicPartition, int]
    messages: int
    dropped: int
    parked_bytes: int
    unreachable_s: float | None
    repeated: int = 0
    passed_over: int = 0
    left_out: int = 0
    left_out_tables: int = 0
    left_out_named: Mapping[str, str] = field(default_factory=dict)
    """Some of these tables, each with the reason."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """By topic, where they are detected from the messages."""
    formats_awaited: Mapping[str, int] = field(default_factory=dict)
    """Topics whose format is not detected yet, with the number of messages that wait for it."""
    registry: RegistryFigures = field(default_factory=RegistryFigures)
    topics_gone: frozenset[str] = frozenset()
    """Topics that were read and are not there any more."""
    uncut: str | None = None


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """A write that was handed to the writers and has not ended; waiting for a free one counts."""

    rows: int
    attempt: int
    age_s: float
    retry_in_s: float | None


@dataclass(frozen=True, slots=True)
class ErrorFigures:
    """The last thing that went wrong. ``age_s`` None: it was before this process began.
    ``lasting``: nothing has succeeded since."""

    reason: str
    age_s: float | None
    lasting: bool


@dataclass(frozen=True, slots=True)
class QuarantineFigures:
    """A target in quarantine, or one whose sink is away: why, and what its spill holds. ``lanes``:
    first and last offset.

    ``full``: the bound is reached, and its messages wait. ``age_s``: since when, where its sink is
    away; None: since an earlier run.
    """

    reason: str
    bytes: int
    messages: int
    lanes: Mapping[TopicPartition, tuple[int, int]]
    releasing: bool
    full: bool
    age_s: float | None = None
    answered: bool = False
    """The sink answers again, and the spill is being replayed."""


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """One target as its processor sees it. Messages wait undecoded; staged files wait on disk.

    ``rows_read`` are the source's row changes as decoded, ``rows_written`` those that are
    published, ``rows_stored`` what they came to after folding. ``values_nulled`` are
    values that no lake can hold (zero dates), stored as null because configuration says so.
    ``ddl_not_understood`` counts statements that could not be read.
    """

    target: str
    phase: str
    buffered_messages: int
    buffered_bytes: int
    waiting_s: float | None
    staged_files: int
    staged_bytes: int
    messages_read: int
    messages_replayed: int
    messages_dropped: int
    rows_read: int
    rows_written: int
    rows_stored: int
    values_nulled: int
    dead_letters: int
    write: WriteFigures | None
    error: ErrorFigures | None
    hwms: Mapping[TopicPartition, int] = field(default_factory=dict)
    quarantine: QuarantineFigures | None = None
    away: QuarantineFigures | None = None
    """Its sink does not answer, and its messages are kept in its spill."""
    ddl_not_understood: int = 0
    rows_may_differ: str | None = None
    """The target's mark of that name."""
    writes: int = 0
    """Published writes; ``write_seconds`` is what the sink took for them in all."""
    write_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessorFigures:
    """``held``: the budgets are used up, so data is left in the mailbox."""

    held: bool
    targets: tuple[TargetFigures, ...]


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """What of one target is not done in one partition, and when its oldest message was made."""

    target: str
    first: int
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """One partition. ``lanes`` are those that hold the frontier, the lowest first.

    ``applied_ms``: when the newest message below the frontier was made.
    """

    frontier: int
    position: int
    confirmed: int | None
    applied_ms: int | None
    lanes: tuple[LaneFigures, ...]


@dataclass(frozen=True, slots=True)
class CommitterFigures:
    """``applied_ms``: per target, when the newest message that it contains was made."""

    partitions: Mapping[TopicPartition, PartitionFigures]
    applied_ms: Mapping[str, int]
    changes: int
    stale: int
    saved_age_s: float | None
    save_error: str | None
    rows_may_differ: Mapping[str, str] = field(default_factory=dict)
    """The marks of that name that are recorded, also of targets that are not opened yet."""
    targets: tuple[str, ...] = ()
    """That are recorded, whether or not they are opened."""
    write_s: HistogramFigures = field(default_factory=Histogram(WRITE_S).figures)
    """What the sink took for each write."""
    write_freshness_s: HistogramFigures = field(default_factory=Histogram(FRESH_S).figures)
    """At each write's end, the age of the newest message in it."""


@dataclass(frozen=True, slots=True)
class DeadLetterFigures:
    """``stored``: in this run. ``error``: why the store does not take the oldest that waits.
    ``open``: how many of all that are stored were neither replayed nor discarded; None: not known
    yet."""

    stored: int
    waiting: int
    error: str | None
    open: int | None = None


@dataclass(frozen=True, slots=True)
class CutFigures:
    """``last``: of this run. ``error``: why none was made since, from this Unix second on."""

    last: Cut | None
    error: str | None
    failing_since: float | None = None


@dataclass(slots=True)
class Tally:
    """What a processor counts for one target."""

    messages_read: int = 0
    messages_replayed: int = 0
    messages_dropped: int = 0
    rows_read: int = 0
    rows_written: int = 0
    rows_stored: int = 0
    values_nulled: int = 0
    dead_letters: int = 0
    ddl_not_understood: int = 0
    writes: int = 0
    write_seconds: float = 0.0
    write_since: float | None = None
    error: str | None = None
    error_at: float | None = None
    lasting: bool = field(default=False)

    def read(self, messages: int) -> None:
        """Count messages that came."""
        self.messages_read += messages

    def replayed(self, messages: int) -> None:
        """Count messages that the target, or its spill, has."""
        self.messages_replayed += messages

    def dropped(self, messages: int) -> None:
        """Count messages that are not taken now, and are read again."""
        self.messages_dropped += messages

    def decoded(self, rows: int, nulled: int) -> None:
        """Count staged rows, and values that became NULL."""
        self.rows_read += rows
        self.values_nulled += nulled

    def not_understood(self, statements: int) -> None:
        """Count statements that are not followed."""
        self.ddl_not_understood += statements

    def begins_write(self, now: float) -> None:
        """A write is handed over."""
        self.write_since = now

    def wrote(self, changes: int, seconds: float) -> None:
        """Count a published write."""
        self.rows_written += changes
        self.writes += 1
        self.write_seconds += seconds

    def stored(self, rows: int) -> None:
        """Count rows of a published write; what went wrong before it is over."""
        self.rows_stored += rows
        self.lasting = False

    def stored_letter(self) -> None:
        """Count a dead letter."""
        self.dead_letters += 1

    def failed(self, reason: str, now: float | None) -> None:
        """Note what went wrong; None: in an earlier run, at an unknown time."""
        self.error, self.error_at, self.lasting = reason, now, True

    def recovered(self) -> None:
        """What went wrong last is over."""
        self.lasting = False

    def last_error(self, now: float) -> ErrorFigures | None:
        """The last error and its age."""
        if self.error is None:
            return None
        age_s = None if self.error_at is None else max(0.0, now - self.error_at)
        return ErrorFigures(self.error, age_s, self.lasting)


def bare(target: str, reason: str) -> str:
    """A reason without the target's name before it, for a text that names it already."""
    return reason.removeprefix(f"{target}: ")
