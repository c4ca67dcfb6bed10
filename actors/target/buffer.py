"""One target's changes on their way: raw messages, staged files, the write in flight.

A passive record with the small rules that need nothing but it; the processor decides when.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import Tally, TargetFigures, WriteFigures
from actors.contract.writes import StagedBatch, TargetState
from actors.target.columns import Columns
from actors.target.pending import Chunk, DeadRecord, Queue, StagedFile
from actors.target.quarantine_state import Quarantine
from actors.target.target_state import Life, Phase
from changes.routes.routing import TargetRoute
from offsets.fence import Span
from offsets.position import NO_OFFSET, Step, TopicPartition
from offsets.rebuild import Load
from offsets.snapshot import TargetMark


class Passed(NamedTuple):
    """How many entries (``done``) of the message at the front need no write, those that the target
    shows included. It is true only as long as the target shows ``shown``."""

    source: TopicPartition
    epoch: int
    offset: int
    shown: Step
    done: int


@dataclass(slots=True)
class TargetBuffer:
    """All that a processor holds for one target."""

    route: TargetRoute
    name: str = field(init=False)
    """The target's name, as lanes know it."""
    pace: float = field(init=False)
    """The part of the configured age after which a batch is due, from 0.5 to 1, another for each
    target. Else targets that began together would all be decoded at once."""
    life: Life = field(default_factory=Life)
    state: TargetState = field(default_factory=TargetState)
    queue: Queue = field(default_factory=Queue)
    staged_files: list[StagedFile] = field(default_factory=list)
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
    """Those of these lanes without a record of how far they were read before."""
    fenced_at: Mapping[TopicPartition, int] | None = None
    """The marks as they were known when a write was fenced, until they are read again."""
    write_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first message of each lane in the last write that was handed over."""
    pending_letter: DeadRecord | None = None
    """The next message can't be applied and is being stored: nothing is closed before it is."""
    asked_at: float | None = None
    """Since when the sink has not answered what it is asked for this target."""
    doomed: str | None = None
    """What is wrong with the next message: the target stops when what came before is written."""
    passed: Passed | None = None
    columns: Columns = field(default_factory=Columns)
    quarantine: Quarantine | None = None
    load: Load | None = None
    """The load that fills the target, until it has passed its end and takes another name."""
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.name = str(self.route.name)
        self.pace = 0.5 + zlib.crc32(self.name.encode()) % 1024 / 2048

    def opening(self, reply_to: Address) -> msg.OpenTarget:
        """The request to have the target's state read."""
        return msg.OpenTarget(self.route.name, reply_to, self.recorded)

    def add(self, chunk: Chunk) -> None:
        """Take a share at the end of its lane. Under a new assignment the marks are read again; for
        a release they have just been."""
        if chunk.epoch not in (msg.OF_SPILL, self.marked.get(chunk.source)):
            self.marked[chunk.source] = chunk.epoch
            self.reopen = True
        self.queue.add(chunk)

    @property
    def held_bytes(self) -> int:
        """Raw messages in memory: those that wait, and those that the disk did not take.

        What is being staged does not count: the answer comes before the next message.
        """
        refused = self.life.closing if self.life.restage_at is not None else None
        closing = 0 if refused is None else refused.size
        return self.queue.size + closing + (self.quarantine.waiting_bytes if self.quarantine else 0)

    @property
    def staged_bytes(self) -> int:
        """Staged files that wait behind the write."""
        return sum(file.size for file in self.staged_files)

    def drop_all(self) -> list[str]:
        """Drop all but the write in flight. Returns the staged files that are to be removed."""
        gone = [file.path for file in self.staged_files]
        self.queue.clear()
        self.staged_files.clear()
        self.through.clear()
        self.epochs.clear()
        self.pending_letter = self.passed = None
        return gone

    def forget_files(self, files: Collection[StagedFile]) -> None:
        """They are in the batch that is closed, and wait no longer."""
        self.staged_files = [file for file in self.staged_files if file not in files]

    def due_at(self, age_s: float) -> float | None:
        """When the oldest waiting message makes a batch due, None when none waits."""
        since = self.queue.since
        return None if since is None else since + age_s * self.pace

    @property
    def is_filled(self) -> bool:
        """Whether a load fills it, and what comes for it is kept: that is no quarantine."""
        return self.load is not None and self.load.filling and self.load.broken is None

    @property
    def empty(self) -> bool:
        """Whether nothing is held: no message, no file, no write, nothing to be spilled."""
        return self.settled and (self.quarantine is None or self.quarantine.idle)

    @property
    def at_rest(self) -> bool:
        """Whether there is nothing to do for it until something happens to it."""
        ready = self.life.phase in (Phase.READY, Phase.STOPPED)
        return ready and self.settled and self.quarantine is None and not self.reopen

    @property
    def settled(self) -> bool:
        """Whether nothing is on its way to the target."""
        life = self.life
        idle = life.closing is None and life.write is None and self.pending_letter is None
        return idle and not self.queue.chunks and not self.staged_files and not self.through

    def note_asked(self, now: float) -> None:
        """Note since when its sink is asked."""
        if self.life.write is None and self.life.phase is not Phase.OPENING:
            self.asked_at = None
        elif self.asked_at is None:
            self.asked_at = now

    def hwm(self, source: TopicPartition) -> int:
        """The lane's high-water mark as the target shows it."""
        return self.state.hwms.get(source, NO_OFFSET)

    def cover(
        self, through: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> None:
        """The next write covers this as well: a file, a barrier, or messages without a row."""
        self.through.update(through)
        self.epochs.update(epochs)

    def spans(self, through: dict[TopicPartition, int]) -> dict[TopicPartition, Span]:
        """The lanes of a batch, each from what the target shows."""
        return {
            source: Span(self.hwm(source), max(last, self.hwm(source)))
            for source, last in through.items()
        }

    def waits_of(self, source: TopicPartition, epoch: int) -> bool:
        """Whether messages of a lane wait under that assignment: all that wait are of one."""
        closing = self.life.closing
        parts = () if closing is None else closing.parts
        read = {c.epoch for c in self.queue.chunks if c.source == source}
        read |= {part.epoch for part in parts if part.lane.source == source}
        holders = (self, closing) if closing is not None else (self,)
        read |= {each.epochs[source] for each in holders if source in each.epochs}
        dead = self.pending_letter is not None and self.pending_letter[:2] == (source, epoch)
        return dead or epoch in read

    def forget(self, sources: frozenset[TopicPartition]) -> tuple[str, ...]:
        """Drop the lanes that were revoked; returns the paths of staged files to remove.

        A write in flight goes on: its marks fence it, its acknowledgement is stale. A batch that
        could not be staged yet goes on with the lanes that stay.
        """
        if self.pending_letter is not None and self.pending_letter.source in sources:
            self.pending_letter = None
        self.queue.forget(sources)
        if self.life.closing is not None:
            self.life.narrow(self.life.closing.without(sources))
        gone = tuple(file.path for file in self.staged_files if file.source in sources)
        self.staged_files = [file for file in self.staged_files if file.source not in sources]
        for source in sources:
            self.through.pop(source, None)
            self.epochs.pop(source, None)
        return gone

    def figures(self, now: float) -> TargetFigures:
        """The target's figures."""
        tally = self.tally
        spilling = None if self.is_filled or not self.quarantine else self.quarantine
        answered = self.asked_at is None or self.life.phase is not Phase.OPENING
        held = None if spilling is None else spilling.figures(now, answered)
        away = spilling is not None and spilling.away
        return TargetFigures(
            target=self.name,
            phase="loading" if self.is_filled else "away" if away else self.life.phase.value,
            buffered_messages=self.queue.messages,
            buffered_bytes=self.queue.size,
            waiting_s=None if self.queue.since is None else now - self.queue.since,
            staged_files=len(self.staged_files),
            staged_bytes=self.staged_bytes,
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
            quarantine=None if away else held,
            away=held if away else None,
            ddl_not_understood=tally.ddl_not_understood,
            rows_may_differ=self.state.rows_may_differ,
            writes=tally.writes,
            write_seconds=tally.write_seconds,
        )

    def _write_figures(self, now: float) -> WriteFigures | None:
        write, retry_at = self.life.write, self.life.retry_at
        if write is None:
            return None
        since = self.tally.write_since
        return WriteFigures(
            rows=write.batch.rows,
            attempt=max(self.life.attempts, 1),
            age_s=0.0 if since is None else now - since,
            retry_in_s=None if retry_at is None else max(0.0, retry_at - now),
        )

    def remaining(self) -> str | None:
        """One line that names what is held, None when nothing is."""
        if self.empty:
            return None
        parts = [f"{self.queue.messages} messages waiting"] if self.queue.chunks else []
        if self.quarantine is not None and not self.quarantine.idle:
            parts.append(f"{self.quarantine.waiting_bytes} bytes not spilled yet")
        if self.pending_letter is not None:
            parts.append(f"offset {self.pending_letter.offset} waits for the dead-letter store")
        life = self.life
        if self.staged_files or life.closing:
            parts.append(f"{len(self.staged_files) + (life.closing is not None)} staged")
        if life.write is not None:
            batch: StagedBatch = life.write.batch
            parts.append(f"a write of {batch.rows} rows in flight (attempt {life.attempts})")
        return f"{self.name}: {', '.join(parts)}"
