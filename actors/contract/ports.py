"""Ports: what the actors need from outside, as Protocols, with the thread that may call each.

Nothing here knows Kafka's client or Spark: the adapters live in ``daemon`` and ``sparkwriter``. The
errors beside a protocol are those that its methods raise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from actors.contract.addresses import Address
from actors.contract.effects import Spill, Stage
from actors.contract.of_outcomes import DeadLetter
from actors.contract.of_reading import Assigned, Confirmed, Polled, Revoked
from actors.contract.of_targets import Staged, StageFailed
from actors.contract.raw_messages import SpillRecord, SpillState
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.formats.wire.schemas import SchemaId
from changes.model.model import TargetName
from offsets.cuts import KeepCuts
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves, TargetMark


class BatchWriter(Protocol):
    """A sink as a writer actor sees it: Iceberg, Delta, JDBC and others fit behind it unchanged.

    One instance serves one writer actor and is called on that actor's thread only; several
    instances of one sink work side by side on different targets.
    """

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        """Read the target's schema and marks, from the sink itself, never from a cache.

        ``recorded`` is what we know to have been published last. Where the sink has lost its marks
        since (its old versions were expired), they are these, if it is sure that no writer moved
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
        rows would come beside another lane's without an order (``actors.contract.one_lane``).
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


class OneFailed(Exception):
    """One of several writes failed, by the error that is its cause. ``target``: whose; None where
    it is the transaction's as a whole."""

    def __init__(self, target: TargetName | None) -> None:
        super().__init__("one of several writes failed")
        self.target = target


@runtime_checkable
class WritesTogether(Protocol):
    """A sink that can publish batches of several targets at once. On a writer's thread."""

    def write_together(self, batches: Sequence[StagedBatch], locks_s: float) -> list[TargetState]:
        """As ``BatchWriter.write`` of each, but readers see all of them or none. No batch is a
        barrier. Tables are made, and get columns, before that, each in a step of its own.
        ``locks_s``: how long it waits for a lock that somebody else has. Raises OneFailed, from
        what ``write`` would have raised; readers then saw nothing. Its target is None where it is
        no single one's fault."""
        ...


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


@runtime_checkable
class Tags(Protocol):
    """A sink that can name versions of its tables, so that cuts find them, and keep words beside
    them. Called beside writes of the same table, on a writer's thread.

    All raise SinkUnavailable (again later) and TargetRefused (the table can't be had, and why).
    """

    def tag(self, target: TargetName, version: str, number: int, keep: KeepCuts) -> None:
        """Tag this version as cut ``number``'s, and remove in the same commit the tags of the
        table's cuts that nobody needs any more (``offsets.cuts.needed``). Repeating it does
        nothing. Raises TargetRefused where the version is gone, or another one has that tag.
        """
        ...

    def untag(self, target: TargetName, above: int) -> None:
        """Remove the tags of cuts with numbers above that: what a crash left before the cut's row.
        A table that is not there has none."""
        ...

    def say_through(self, target: TargetName, moments: Mapping[str, str]) -> bool:
        """Have the table say of these gates, and of no others, through when it is complete.
        Repeating it does nothing. Returns whether there is a table."""
        ...


class NotKept(Exception):
    """A dead letter, or a part of a spill, could not be made durable: one line. It may be later."""


class LogAway(NotKept):
    """The record could not be read again for its key and headers: no fault of the store's."""


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
        """The spill is written: remove it, durably."""
        ...


class DeadLetterStore(Protocol):
    """Where records that can't be applied are kept. Called by one thread."""

    def keep(self, letter: DeadLetter) -> None:
        """Store it: durable when this returns. Raises NotKept; then it may be there or not.

        Raises LogAway where the record's key and headers can't be had, and nothing was tried.
        """
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


class SourceListener(Protocol):
    """What a source reports to the fetcher from inside ``poll``, on the fetcher's thread."""

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

    def pause(self, sources: Collection[TopicPartition] | None = None) -> None:
        """Stop the flow of assigned partitions, of every one without ``sources``; repeating it
        changes nothing."""
        ...

    def resume(self, sources: Collection[TopicPartition] | None = None) -> None:
        """Let assigned partitions flow again, every one without ``sources``; repeating it changes
        nothing."""
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


class Schemas(Protocol):
    """The schemas of one registry, kept on the disk. Called by fetchers; never waits for the
    registry: what it answers later comes to the fetcher as a message."""

    def want(self, user: Address, identities: Iterable[SchemaId]) -> tuple[SchemaId, ...]:
        """Have these kept, and compared with the registry's from then on. Returns those that are
        kept already; of the others ``user`` hears. Raises nothing that a registry may cause."""
        ...


class StagedFiles(Protocol):
    """The staged files of this run. Called by processors and writers."""

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files; one that is gone already is fine."""
        ...


class Stager(StagedFiles, Protocol):
    """What stages one processor's batches. Called by its thread alone."""

    def stage(self, request: Stage) -> Staged | StageFailed:
        """Decode, fold after the earlier files in order, write one file, remove the earlier ones.

        It remembers each target's columns from batch to batch.
        """
        ...


class Stagers(StagedFiles, Protocol):
    """All stagers of the process. Used where the actors are put together."""

    def of(self, pipeline: str, number: int) -> Stager:
        """The stager of a pipeline's processor."""
        ...
