"""One target's changes on their way: raw messages, staged pieces, the write in flight.

A passive record with the small rules that need nothing but it; the processor decides when.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from actors.contract import messages as msg
from actors.contract.figures import Tally, TargetFigures, WriteFigures
from actors.contract.ports import Doubt, StagedBatch, TargetState
from actors.processor.waiting import Chunk, Closing, Piece
from changes.routing import TargetRoute
from offsets.fence import Span
from offsets.position import NO_OFFSET, Step, TopicPartition
from offsets.snapshot import TargetMark

if TYPE_CHECKING:  # which is about buffers
    from actors.processor.quarantine import Quarantine


class DeadRecord(NamedTuple):
    """A record of a lane that becomes a dead letter."""

    source: TopicPartition
    epoch: int
    offset: int


class Passed(NamedTuple):
    """Of the message at the front so many entries (``done``) need no write, beside those that the
    target shows; what it shows else, that must be found out again."""

    source: TopicPartition
    epoch: int
    offset: int
    shown: Step
    done: int


class Phase(Enum):
    """Where a target stands."""

    OPENING = "opening"
    """Its marks are not known yet: nothing may be written."""
    READY = "ready"
    WRITING = "writing"
    """A write is in flight, or waits for its next attempt: there is one at a time."""
    STAGING = "staging"
    """A closed batch could not be staged yet."""
    QUARANTINED = "quarantined"
    """The sink refuses it: its messages are spilled until it is released."""
    STOPPED = "stopped"
    """A data error: nothing more is applied, so the frontier stays below it."""


@dataclass(slots=True)
class TargetBuffer:
    """All that a processor holds for one target."""

    route: TargetRoute
    name: str = field(init=False)
    """The target's name, as lanes know it."""
    pace: float = field(init=False)
    """At which part of the age a batch is due, from a half to the whole: each target its own.
    Targets that began together would else be decoded all at once, and nothing in between."""
    phase: Phase = Phase.OPENING
    state: TargetState = field(default_factory=TargetState)
    chunks: deque[Chunk] = field(default_factory=deque)
    messages: int = 0
    size: int = 0
    pieces: list[Piece] = field(default_factory=list)
    through: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    reopen: bool = False
    """The marks are to be read again before anything more is written."""
    marked: dict[TopicPartition, int] = field(default_factory=dict)
    """Of each lane, the assignment since which the marks were read, or are to be: before it
    another member may have moved them."""
    recorded: TargetMark | None = None
    """What the target is known to have published: by the last run, then by our own writes."""
    fed: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Of each lane, its assignment and the first offset that still comes under it."""
    unrecorded: set[TopicPartition] = field(default_factory=set)
    """Those of these lanes of which nobody knows how far they were read before."""
    fenced_at: Mapping[TopicPartition, int] | None = None
    """The marks as they were known when a write was fenced, until they are read again."""
    closing: Closing | None = None
    write: msg.WriteBatch | None = None
    write_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first message of each lane in the last write that was handed over."""
    retry_at: float | None = None
    """When the sink is asked again, for the write or the opening. None: not waiting."""
    attempts: int = 0
    races: int = 0
    """How often in a row another member published first."""
    stage_again_at: float | None = None
    """When staging is tried again. On its own: a piece may fail to stage while a write waits."""
    stage_attempts: int = 0
    condemned: DeadRecord | None = None
    """The next message can't be applied and is being stored: nothing is closed before it is."""
    doomed: str | None = None
    """What is wrong with the next message: the target stops when what came before is written."""
    passed: Passed | None = None
    types: dict[str, str] = field(default_factory=dict)
    """The columns' types in the source's words, by names in small letters, as far as known.

    They go with what is planned and staged, ahead of what the target shows: whenever that is looked
    at again they are forgotten, for what they came from may be given up, or another member's."""
    stated: set[str] = field(default_factory=set)
    """Columns that statements added, after their tables: rows that have them are no news."""
    defaulted: set[str] = field(default_factory=set)
    """Columns of which it was said that inserts don't carry their default."""
    filled: set[str] = field(default_factory=set)
    """Columns of which it was said that their NULLs may come as the default, after their tables."""
    begun: bool = False
    """Its first change of this run was looked at."""
    news: dict[str, Doubt] = field(default_factory=dict)
    """What rows told of their columns and no statement did, until a write has published it."""
    era: int = 0
    """How often what is known of the columns was out of date, by a DDL or by other columns."""
    reminded: int | None = None
    """The last era of which whoever decodes was told the stored columns."""
    began_anew: DeadRecord | None = None
    """The latest message with which the columns began anew."""
    quarantine: Quarantine | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.name = str(self.route.name)
        self.pace = 0.5 + zlib.crc32(self.name.encode()) % 1024 / 2048

    def opening(self, reply_to: msg.Address) -> msg.OpenTarget:
        """The request to have the target's state read."""
        return msg.OpenTarget(self.route.name, reply_to, self.recorded)

    def add(self, chunk: Chunk) -> None:
        """Take a share at the end of its lane. Under a new assignment the marks are read again; for
        a release they have just been."""
        if chunk.epoch not in (msg.OF_SPILL, self.marked.get(chunk.source)):
            self.marked[chunk.source] = chunk.epoch
            self.reopen = True
        self.chunks.append(chunk)
        self.messages += len(chunk.offsets)
        self.size += chunk.size

    def take(self, limit: int) -> list[Chunk]:
        """Remove chunks of one table from the front: up to a barrier, or until ``limit`` bytes are
        reached.

        A barrier (DDL) at the front is taken alone. Chunks are never split: a message's changes
        belong to one batch.
        """
        taken: list[Chunk] = []
        size = 0
        while self.chunks and size < limit:
            if taken and (self.chunks[0].is_barrier or self.chunks[0].table != taken[0].table):
                break
            chunk = self.chunks.popleft()
            self.messages -= len(chunk.offsets)
            self.size -= chunk.size
            taken.append(chunk)
            size += chunk.size
            if chunk.ddl:
                break
        return taken

    def give_back(self, chunk: Chunk) -> None:
        """Put a chunk back at the front: it was taken too early."""
        self.chunks.appendleft(chunk)
        self.messages += len(chunk.offsets)
        self.size += chunk.size

    @property
    def held_bytes(self) -> int:
        """Raw messages in memory: those that wait, and those that the disk did not take.

        What is being staged is as good as gone: the answer comes before the next message.
        """
        refused = self.closing is not None and self.stage_again_at is not None
        closing = self.closing.size if self.closing and refused else 0
        return self.size + closing + (self.quarantine.waiting_bytes if self.quarantine else 0)

    def clear(self) -> None:
        """Let go of all that waits: it will be read again after a restart."""
        self.chunks.clear()
        self.messages = self.size = 0

    def stop(self) -> None:
        """Hold nothing and take nothing any more."""
        self.clear()
        self.pieces.clear()
        self.through.clear()
        self.epochs.clear()
        self.closing = self.write = self.retry_at = self.stage_again_at = None
        self.condemned = self.passed = None
        self.phase = Phase.STOPPED

    @property
    def barrier_first(self) -> bool:
        """Whether the next message is a barrier: what came before must be written first."""
        return bool(self.chunks) and self.chunks[0].is_barrier

    @property
    def since(self) -> float | None:
        """When the oldest waiting message came, None when none waits."""
        return self.chunks[0].since if self.chunks else None

    def due_at(self, age_s: float) -> float | None:
        """When the oldest waiting message makes a batch due, None when none waits."""
        return self.chunks[0].since + age_s * self.pace if self.chunks else None

    @property
    def empty(self) -> bool:
        """Whether nothing is held: no message, no piece, no write, nothing to be spilled."""
        return self.settled and (self.quarantine is None or self.quarantine.idle)

    @property
    def at_rest(self) -> bool:
        """Whether there is nothing to do for it until something happens to it."""
        waits = self.reopen or self.retry_at is not None or self.stage_again_at is not None
        ready = self.phase in (Phase.READY, Phase.STOPPED)
        return ready and self.settled and self.quarantine is None and not waits

    @property
    def settled(self) -> bool:
        """Whether nothing is on its way to the target."""
        idle = self.closing is None and self.write is None and self.condemned is None
        return idle and not self.chunks and not self.pieces and not self.through

    def hwm(self, source: TopicPartition) -> int:
        """The lane's high-water mark as the target shows it."""
        return self.state.hwms.get(source, NO_OFFSET)

    def cover(
        self, through: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> None:
        """The next write holds this as well: a piece, a barrier, or messages without a row."""
        self.through.update(through)
        self.epochs.update(epochs)

    def spans(self, through: dict[TopicPartition, int]) -> dict[TopicPartition, Span]:
        """The lanes of a batch, each from what the target shows."""
        return {
            source: Span(self.hwm(source), max(last, self.hwm(source)))
            for source, last in through.items()
        }

    def waits_of(self, source: TopicPartition, epoch: int) -> bool:
        """Tell whether something waits of a lane under that assignment: all that does, or none."""
        parts = () if self.closing is None else self.closing.parts
        read = {c.epoch for c in self.chunks if c.source == source}
        read |= {part.epoch for part in parts if part.stretch.source == source}
        holders = (self, self.closing) if self.closing is not None else (self,)
        read |= {each.epochs[source] for each in holders if source in each.epochs}
        dead = self.condemned is not None and self.condemned[:2] == (source, epoch)
        return dead or epoch in read

    def forget(self, sources: frozenset[TopicPartition]) -> tuple[str, ...]:
        """Drop the lanes that were revoked; returns the paths of staged files to remove.

        A write in flight goes on: its marks fence it, its acknowledgement is stale. A batch that
        could not be staged yet goes on with the lanes that stay.
        """
        if self.condemned is not None and self.condemned.source in sources:
            self.condemned = None
        kept = [chunk for chunk in self.chunks if chunk.source not in sources]
        self.chunks = deque(kept)
        self.messages = sum(len(chunk.offsets) for chunk in kept)
        self.size = sum(chunk.size for chunk in kept)
        if self.closing is not None:
            self.closing = self.closing.without(sources)
            if self.closing is None:
                self.stage_again_at = None
                if self.phase is Phase.STAGING:
                    self.phase = Phase.WRITING if self.write is not None else Phase.READY
        gone = tuple(piece.path for piece in self.pieces if piece.source in sources)
        self.pieces = [piece for piece in self.pieces if piece.source not in sources]
        for source in sources:
            self.through.pop(source, None)
            self.epochs.pop(source, None)
        return gone

    def figures(self, now: float) -> TargetFigures:
        """How the target stands."""
        tally = self.tally
        return TargetFigures(
            target=self.name,
            phase=self.phase.value,
            buffered_messages=self.messages,
            buffered_bytes=self.size,
            waiting_s=None if self.since is None else now - self.since,
            staged_files=len(self.pieces),
            staged_bytes=sum(piece.size for piece in self.pieces),
            messages_read=tally.messages_read,
            messages_replayed=tally.messages_replayed,
            messages_dropped=tally.messages_dropped,
            rows_read=tally.rows_read,
            rows_written=tally.rows_written,
            rows_stored=tally.rows_stored,
            values_nulled=tally.values_nulled,
            dead_letters=tally.dead_letters,
            write=self._write_figures(now),
            error=tally.last_error(now),
            hwms=dict(self.state.hwms),
            quarantine=None if self.quarantine is None else self.quarantine.figures(),
            ddl_not_understood=tally.ddl_not_understood,
            rows_may_differ=self.state.rows_may_differ,
        )

    def _write_figures(self, now: float) -> WriteFigures | None:
        if self.write is None:
            return None
        since, retry_at = self.tally.write_since, self.retry_at
        return WriteFigures(
            rows=self.write.batch.rows,
            attempt=max(self.attempts, 1),
            age_s=0.0 if since is None else now - since,
            retry_in_s=None if retry_at is None else max(0.0, retry_at - now),
        )

    def remaining(self) -> str | None:
        """One line that names what is held, None when nothing is."""
        if self.empty:
            return None
        parts = [f"{self.messages} messages waiting"] if self.chunks else []
        if self.quarantine is not None and not self.quarantine.idle:
            parts.append(f"{self.quarantine.waiting_bytes} bytes not spilled yet")
        if self.condemned is not None:
            parts.append(f"offset {self.condemned.offset} waits for the dead-letter store")
        if self.pieces or self.closing:
            parts.append(f"{len(self.pieces) + (self.closing is not None)} staged")
        if self.write is not None:
            batch: StagedBatch = self.write.batch
            parts.append(f"a write of {batch.rows} rows in flight (attempt {self.attempts})")
        return f"{self.name}: {', '.join(parts)}"
