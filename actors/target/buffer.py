"""One target's changes on their way: raw messages, staged files, the write in flight.

Nobody else assigns its fields: what happens to a target is a method here, and what it leads to is
decided around it (``rule``, ``batches``, ``quarantine``).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import Tally
from actors.contract.writes import TargetState
from actors.target.columns import Columns
from actors.target.pending import DeadRecord, PendingShare, Queue, StagedFile
from actors.target.quarantine_state import Quarantine
from actors.target.rollback import PublishHistory
from actors.target.target_state import Life, Phase
from changes.routes.routing import TargetRoute
from offsets.counts import LaneCounts
from offsets.fence import Span
from offsets.position import NO_OFFSET, EntryStep, TopicPartition
from offsets.rebuild import Load


class Passed(NamedTuple):
    """How many entries (``done``) of the message at the front need no write, those that the target
    shows included. It is true only as long as the target shows ``shown``."""

    source: TopicPartition
    epoch: int
    offset: int
    shown: EntryStep
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
    history: PublishHistory = field(default_factory=PublishHistory)
    write_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first message of each lane in the last write that was handed over."""
    pending_letter: DeadRecord | None = None
    """The next message can't be applied and is being stored: nothing is closed before it is."""
    asked_at: float | None = None
    """Since when a request to the sink for this target has no answer."""
    doomed: str | None = None
    """What is wrong with the next message: the target stops when what came before is written."""
    bad_at: tuple[TopicPartition, int] | None = None
    """The record that can't be applied, where the target stops for one."""
    elsewhere_since: float | None = None
    """Since when what is being staged has a record that is not in its key's partition."""
    passed: Passed | None = None
    columns: Columns = field(default_factory=Columns)
    quarantine: Quarantine | None = None
    load: Load | None = None
    """The load that fills the target, until it has passed its end and takes another name."""
    folded: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)
    """Of the counts that the marks carry, those that the table of counts has."""
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.name = str(self.route.name)
        self.pace = 0.5 + zlib.crc32(self.name.encode()) % 1024 / 2048

    # --- its life

    def keep(self, quarantine: Quarantine) -> None:
        """It begins in quarantine: with a spill of an earlier run, or while a load fills it."""
        self.life, self.quarantine = Life(quarantined=True), quarantine

    def look(self, reply_to: Address) -> msg.OpenTarget:
        """Its state is to be read before anything more is written."""
        self.life.look()
        self.reopen = False
        return self.opening(reply_to)

    def opened(self, state: TargetState) -> None:
        """This is what it shows now. What was known of columns may be another member's.

        That one may have added some. A decoder gets the target's columns at its start, so a new one
        begins, once files that the former one has staged are written.
        """
        self.columns.look_again(changed=self.state.schema != state.schema)
        self.state, self.passed = state, None
        self._renew_decoder()

    def _renew_decoder(self) -> None:
        if self.columns.outdated and not self.staged_files and not self.life.closing:
            self.columns.change()

    def wrote(self, written: msg.Written) -> None:
        """A write of ours is published: from now on nothing below its marks may be missing.

        Its own lanes' marks alone are taken. A member that lost a partition unnoticed, and wrote
        its lane from the new owner's mark, would fence that owner.
        """
        state, write = written.state, self.life.write
        assert state is not None
        self.asked_at = None
        self.tally.wrote(written.changes, written.seconds)
        renamed = write is not None and write.batch.changes_name
        own = {source: state.hwms[source] for source in written.epochs}
        self.history.wrote(state, own, renamed=renamed)
        if write is not None:
            self.columns.published(write.batch.doubts)
            self.tally.stored(write.batch.rows)
            # The name has another table now, or none: its other marks are not the former ones.
            self.reopen |= renamed
        self.life.ended()
        self.life.calm()
        steps = {s: step for s, step in self.state.steps.items() if s not in written.epochs}
        steps |= {s: step for s, step in state.steps.items() if s in written.epochs}
        counts = {s: each for s, each in self.state.counts.items() if s not in written.epochs}
        counts |= {s: each for s, each in state.counts.items() if s in written.epochs}
        hwms = {**self.state.hwms, **own}
        self.state = replace(state, hwms=hwms, steps=steps, counts=counts)
        self._renew_decoder()

    def counts_folded(self, folded: Mapping[TopicPartition, LaneCounts]) -> None:
        """The table of counts has these: the next write leaves them out of the marks."""
        self.folded = folded

    def answered(self) -> None:
        """The sink has answered, and not that it is away."""
        self.asked_at = None

    def note_elsewhere(self, now: float) -> float:
        """What is being staged has a record that is not in its key's partition. Since when."""
        if self.elsewhere_since is None:
            self.elsewhere_since = now
        return self.elsewhere_since

    def quarantined(self, quarantine: Quarantine, *, whole: bool = False) -> list[str]:
        """Nothing more is written until it is released. ``whole``: the spill has all of it, also
        the message that can't be applied. Returns the staged files that are to be removed."""
        gone = self.drop_all()
        self.elsewhere_since = None
        waiting = self.life.waiting
        if waiting is not None and waiting.batch.path is not None:
            gone.append(waiting.batch.path)
        self.life.quarantine()
        self.quarantine, self.bad_at = quarantine, None
        if whole:
            self.doomed = None
        return gone

    def released(self) -> Quarantine:
        """Its spill is written and gone: what waited follows it."""
        quarantine, self.quarantine = self.quarantine, None
        assert quarantine is not None
        self.cover(quarantine.through, quarantine.epochs)
        for chunk in quarantine.waiting:
            self.add(chunk)
        self.tally.recovered()
        return quarantine

    def stop(self, reason: str, now: float) -> list[str]:
        """It takes nothing any more. Returns the files that are to be removed."""
        self.tally.failed(reason, now)
        gone, write = self.drop_all(), self.life.write
        if write is not None and write.batch.path is not None:
            gone.append(write.batch.path)
        self.life.stop()
        return gone

    # --- what comes for it

    def note_load(self, load: Load | None) -> None:
        """The load that fills it, with what has become of that."""
        self.load = load

    def doom(self, reason: str, at: DeadRecord | None) -> None:
        """The next message can't be applied: what came before it is written, and nothing behind."""
        self.pending_letter, self.doomed = None, reason
        if at is not None:
            self.found_bad(at)
        self.queue.clear()

    def found_bad(self, record: DeadRecord) -> None:
        """This record can't be applied, and the target stops for it, or goes into quarantine."""
        self.bad_at = record.source, record.offset

    def condemn(self, record: DeadRecord) -> None:
        """The next message is to be stored as a dead letter before anything more is closed."""
        self.pending_letter = record

    def letter_stored(self, record: DeadRecord) -> None:
        """The store has it: the mark moves past it. Not if its partition went away meanwhile: then
        it is read again, and stored again."""
        if self.pending_letter == record:
            self.pending_letter = None
            self.tally.stored_letter()
            self.cover({record.source: record.offset}, {record.source: record.epoch})

    # --- what is closed of it

    def staged(self, staged: msg.Staged, files: Collection[StagedFile] = ()) -> None:
        """What was closed is staged; ``files``, earlier ones, are in it and wait no longer."""
        self.life.staged()
        self.elsewhere_since = None
        self.staged_files = [file for file in self.staged_files if file not in files]
        self.tally.decoded(staged.changes, staged.nulled)

    def add_file(self, file: StagedFile) -> None:
        """A file waits behind the write in flight."""
        self.staged_files.append(file)

    def hand_over(
        self, write: msg.WriteBatch, firsts: Mapping[TopicPartition, int], now: float
    ) -> None:
        """A write is handed over. ``firsts``: its first message of each lane."""
        for source, last in write.through.items():
            if self.through.get(source, last + 1) <= last:  # no file waits behind this write
                self.through.pop(source)
                self.epochs.pop(source)
        self.life.submit(write)
        self.write_from = firsts
        self.tally.begins_write(now)

    def uncover(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """What the next write would cover beside rows, through and epochs: it does not any more."""
        through, epochs = dict(self.through), dict(self.epochs)
        self.through.clear()
        self.epochs.clear()
        return through, epochs

    def pass_entries(self, passed: Passed) -> None:
        """Entries of the message at the front need no write."""
        self.passed = passed

    # --- partitions

    def note_marked(self, source: TopicPartition, epoch: int) -> None:
        """Its marks are read, or about to be, since this assignment."""
        self.marked[source] = epoch

    def give_up(self, sources: frozenset[TopicPartition]) -> tuple[str, ...]:
        """Drop the write, and what waits of these lanes: they are read again, above marks that are
        read again. Returns the staged files that are to be removed."""
        self.life.ended()
        self.life.calm()
        self.reopen = True
        return self.forget(sources)

    # --- questions

    def opening(self, reply_to: Address) -> msg.OpenTarget:
        """The request to have the target's state read."""
        return msg.OpenTarget(self.route.name, reply_to, self.history.recorded)

    def add(self, chunk: PendingShare) -> None:
        """Take a share at the end of its lane. Under a new assignment the marks are read again; for
        a release they have just been."""
        if chunk.epoch not in (msg.OF_SPILL, self.marked.get(chunk.source)):
            self.note_marked(chunk.source, chunk.epoch)
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

    def waits_since(self) -> float:
        """The order in which targets get a free writer: the longest wait first."""
        return self.queue.since if self.queue.since is not None else float("-inf")

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
        """Note since when a request to its sink is open."""
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
