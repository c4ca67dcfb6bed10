"""What the actors need from the world, as Protocols, with the thread that may call each.

Nothing here knows Kafka's client or Spark: the adapters live in ``daemon`` and ``sparkwriter``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from changes.model import (
    KeyBound,
    Mode,
    SinkOptions,
    TableName,
    TableSchema,
    TableStep,
    TargetName,
)
from offsets.fence import Span, is_amid
from offsets.moves import MarkMoves
from offsets.position import Step, TopicPartition
from offsets.snapshot import TargetMark

if TYPE_CHECKING:  # messages and effects are made of the values below
    from actors.contract.effects import Spill, Stage
    from actors.contract.messages import (
        Assigned,
        Confirmed,
        DeadLetter,
        Polled,
        Revoked,
        Staged,
        StageFailed,
    )


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a target's stored rows may differ from the source's from a write on, in one line.

    ``if_null``: only if a stored row has a null in this column. ``amid``: of rows that are written
    with it, too, so that it counts in a table without rows.
    """

    what: str
    if_null: str | None = None
    amid: bool = False


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One write for one target: a closed batch as a staged Parquet file, a DDL, or marks alone.

    ``path`` is None when there is no row to write: then only what a DDL asks for and the marks
    are published. ``schema`` is
    the wanted one: the sink creates the table, adds and widens columns until the target holds
    it. ``partial`` names the columns that have a presence column in the file
    (``changes.model.HAS_PREFIX``): where it is false the stored value stays. ``mode`` APPEND means
    the file carries ``CHANGELOG_COLUMNS`` and no row replaces another. ``changes`` counts the
    source's row changes that were folded into the ``rows``. ``positions`` names the source
    positions in the file's column ``changes.model.POSITION``: a target that keeps those takes a
    row only where it is not older than what it holds of the key, or held when that was deleted.
    """

    batch_id: str
    target: TargetName
    mode: Mode
    schema: TableSchema
    lanes: Mapping[TopicPartition, Span]
    path: str | None = None
    rows: int = 0
    changes: int = 0
    has_deletes: bool = False
    partial: tuple[str, ...] = ()
    bounds: tuple[KeyBound, ...] = ()
    positions: str | None = None
    ddl: tuple[tuple[TableStep, ...], ...] = ()
    """Statements, each with the steps that it takes at once."""
    moves_to: TargetName | None = None
    """The target has this name afterwards. Then, and with ``takes_from``, the write's lanes are
    one: the DDL's."""
    takes_from: TargetName | None = None
    """That target has this one's name afterwards: its own write sees to that, this one waits
    (WaitsForName) until it is so."""
    group: str = ""
    """Whose members may write these lanes: the consumer group and its cluster. The target keeps
    it beside each mark that the write moves. Empty: nobody's, and told from every other."""
    step: Step | None = None
    """The write is part of a message of several entries, and this is what the target holds of that
    afterwards. Then the lanes are one; before the last part its mark is just below the message."""
    begun: int = 0
    """Of the step's message: how many entries the target must show before the write."""
    options: SinkOptions = ()
    """What the route asks of this kind of sink alone, by name."""
    doubts: tuple[Doubt, ...] = ()
    """What it says of the rows that are stored already: the target's mark ``rows_may_differ`` names
    it afterwards, published in the same step."""
    table: TableName | None = None
    """Whose rows or statement it is, where the target is meant to be of one table alone: the sink
    keeps it with the target, and refuses those of another. None: no matter whose."""
    becomes: TableName | None = None
    """What that table is named afterwards, where a statement renames it."""

    @property
    def is_barrier(self) -> bool:
        """Whether it is a DDL, or the end of a message that had one."""
        bare = self.path is None and (self.step is not None or bool(self.doubts))
        return bool(self.ddl) or self.changes_name or self.becomes is not None or bare

    @property
    def amid(self) -> bool:
        """Whether it ends amid its message: the mark is below that, the step tells how far."""
        return is_amid(self)

    @property
    def changes_name(self) -> bool:
        """Whether another table, or none, has the target's name afterwards."""
        return self.moves_to is not None or self.takes_from is not None


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target shows of itself. A target that does not exist yet has no schema and no mark.

    One that was dropped or renamed away by a DDL has marks, but neither schema nor version.

    ``version`` is the sink's own name of the published state (Iceberg: the snapshot id).
    ``covered``: a write found itself there already, by its own lost attempt or by another's.
    ``parted``: its history is whole and does not hold the version that was recorded last.
    ``positions`` names the source positions that it keeps of each row, None where it keeps none.
    ``steps``: of lanes, how much it holds of the message above the mark.
    ``rows_may_differ``: what may have changed stored rows at the source alone (``offsets.doubts``).
    It is the table's: one that is made or filled again has none.
    """

    schema: TableSchema | None = None
    mode: Mode | None = None
    hwms: Mapping[TopicPartition, int] = field(default_factory=dict)
    version: str | None = None
    positions: str | None = None
    steps: Mapping[TopicPartition, Step] = field(default_factory=dict)
    covered: bool = field(default=False, compare=False)
    parted: bool = field(default=False, compare=False)
    rows_may_differ: str | None = None


class BatchWriter(Protocol):
    """A sink as a writer actor sees it: Iceberg, Delta, JDBC and others fit behind it unchanged.

    One instance serves one writer actor and is called on that actor's thread only; several
    instances of one sink work side by side on different targets.
    """

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        """Read the target's schema and marks, from the sink itself, never from a cache.

        ``recorded`` is what we know to have been published last. Where the sink has lost its marks
        since (its old versions were expired), they are these, if it can tell that nobody moved
        them in between. Raises SinkUnavailable (try again) or TargetRefused (it can't be had as it
        is).
        """
        ...

    def write(self, batch: StagedBatch) -> TargetState:
        """Publish the batch in one atomic step together with its lanes' new marks.

        Marks of lanes that are not in ``batch.lanes`` are carried over. Where the target shows
        every ``through`` already, or the step, nothing is written and its state is returned: a
        retry after a lost reply is harmless. Raises Fenced when a lane's mark is neither ``after``
        nor ``through``, or it is elsewhere in the step's message, Straggler where the batch's own
        group moved it; LostRace when another writer published meanwhile (the marks then decide);
        SinkUnavailable when trying again may help; TargetRefused when the schema can't fit, or
        rows would come beside another lane's without an order (``actors.processor.one_lane``).
        Whatever it raises, readers saw nothing.
        """
        ...


class ResettableSink(BatchWriter, Protocol):
    """A sink whose marks an operator may move. Called while no pipeline writes the target."""

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        """Publish the moved marks in one atomic step; repeating it changes nothing.

        Of a target that holds what happened as a list, what lies above a lowered mark goes in the
        same step, for it is going to be written again. A keyed target's rows stay: they are
        written over. A target that does not exist has nothing to be moved. Raises as
        ``BatchWriter.write``, never Fenced.
        """
        ...


@dataclass(frozen=True, slots=True)
class Swap:
    """A table that was filled under the name ``new`` takes the name ``old``.

    What has that name goes ``aside`` and, unless it is to be kept, away. ``frontiers``: of each
    partition, below which offset the new table holds everything.
    """

    old: TargetName
    new: TargetName
    aside: TargetName
    frontiers: Mapping[TopicPartition, int]
    keep_old: bool = False


class SwapTooEarly(Exception):
    """The old table holds more than the new one: ``marks`` are its. Nothing was changed."""

    def __init__(self, marks: Mapping[TopicPartition, int]) -> None:
        super().__init__("the old table holds more than the new one")
        self.marks = marks


@runtime_checkable
class Swaps(Protocol):
    """A sink whose tables can be exchanged. Called while no pipeline writes them."""

    def swap(self, swap: Swap) -> TargetState:
        """Exchange them; repeating it, also after it broke off, does what is left.

        Gives the target's state. Raises SwapTooEarly, TargetRefused, SinkUnavailable.
        """
        ...

    def remove(self, target: TargetName) -> None:
        """Remove a table that was not exchanged; repeating it does nothing.

        Raises SinkUnavailable, TargetRefused.
        """
        ...


class NotKept(Exception):
    """A dead letter, or a part of a spill, could not be made durable: one line. It may be later."""


class LogAway(NotKept):
    """The record could not be read again for its key and headers: no fault of the store's."""


class SpillRecord(NamedTuple):
    """A raw message of a target in quarantine."""

    source: TopicPartition
    offset: int
    ddl: bool
    value: bytes
    table: TableName | None = None
    """See ``Share.table``: told when it is read, by the routes of then."""


@dataclass(frozen=True, slots=True)
class SpillState:
    """What a spill holds, durably. ``lanes``: the first and last offset of each."""

    bytes: int = 0
    messages: int = 0
    lanes: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)


class SpillBroken(Exception):
    """A spill, or what belongs into it, is damaged or gone: one line. It will not come back."""


class Spills(Protocol):
    """One processor's spills. Called by its thread alone. All raise NotKept and SpillBroken."""

    def append(self, spill: Spill) -> SpillState:
        """Append, durably; what the spill has already is passed over, so repeating is harmless."""
        ...

    def read(
        self, target: TargetName, position: int, limit: int
    ) -> tuple[Sequence[SpillRecord], int]:
        """Some ``limit`` bytes of records from a position on, and the position behind them."""
        ...

    def end(self, target: TargetName) -> None:
        """The spill is written: let it go, durably."""
        ...


class DeadLetterStore(Protocol):
    """Where records that can't be applied are kept. Called by one thread."""

    def keep(self, letter: DeadLetter) -> None:
        """Store it: durable when this returns. Raises NotKept; then it may be there or not.

        Raises LogAway where the record's key and headers can't be had, and nothing was tried.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class SinkUnavailable(Exception):
    """The sink can't take the write now; the same batch may be offered again later."""


class LostRace(SinkUnavailable):
    """Another writer published first. The sink is well: the same batch may be offered at once."""


class WaitsForName(SinkUnavailable):
    """The sink is well: what ``other`` has still to write comes first, in a renaming."""

    def __init__(self, reason: str, other: TargetName) -> None:
        super().__init__(reason)
        self.other = other


class TargetRefused(Exception):
    """The target can't hold what the source has (a type that can't widen, another key)."""


class SourceListener(Protocol):
    """What a source tells the fetcher from inside ``poll``, on the fetcher's thread."""

    def assigned(self, assigned: Assigned) -> None:
        """Partitions were given, and are being read from their starts already."""
        ...

    def revoked(self, revoked: Revoked) -> None:
        """Partitions go away when this returns: it may commit, but not wait for the fetcher."""
        ...

    def confirmed(self, confirmed: Confirmed) -> None:
        """The broker has taken a commit."""
        ...


class RecordSource(Protocol):
    """A log of partitions, read as a member of a group. Sole user: the fetcher's thread."""

    @property
    def revoke_patience_s(self) -> float:
        """How long ``SourceListener.revoked`` may take, at most, without losing the membership."""
        ...

    def start(self, listener: SourceListener) -> None:
        """Join the group. Partitions come later, inside ``poll``."""
        ...

    def poll(self, max_messages: int, timeout_s: float) -> Polled:
        """Wait for that many messages, for that long. Called regularly, or the group drops us."""
        ...

    def pause(self) -> None:
        """Stop the flow of every assigned partition; repeating it changes nothing."""
        ...

    def resume(self) -> None:
        """Let every assigned partition flow again; repeating it changes nothing."""
        ...

    def commit(self, frontiers: Mapping[TopicPartition, int], wait: bool) -> None:
        """Have the broker remember frontiers. Without ``wait`` the listener hears when it did.

        A failure is logged and changes nothing: the local file is ahead of the broker then.
        """
        ...

    def restart(self, sources: tuple[TopicPartition, ...]) -> None:
        """Read assigned partitions from their starts again, as if they came new: the listener
        hears ``assigned``. Where no start can be had the next poll says so."""
        ...

    def close(self) -> None:
        """Leave the group. Partitions are revoked inside."""
        ...


class StagedFiles(Protocol):
    """The staged files of this run. Called by processors and writers."""

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files; one that is gone already is fine."""
        ...


class Stager(StagedFiles, Protocol):
    """What stages one processor's batches. Called by its thread alone."""

    def stage(self, request: Stage) -> Staged | StageFailed:
        """Decode, fold after earlier pieces in order, write one file, remove the pieces.

        It remembers each target's columns from batch to batch.
        """
        ...


class Stagers(StagedFiles, Protocol):
    """All stagers of the process. Used where the actors are put together."""

    def of(self, pipeline: str, number: int) -> Stager:
        """The stager of a pipeline's processor."""
        ...
