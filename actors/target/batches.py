"""Closes a target's batches, has them staged, hands them to writers; the processor says when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import StagedBatch
from actors.target.attempts import Via, offered
from actors.target.barrier import BarrierPlanner, notes_of
from actors.target.batching import (
    DataError,
    accepted,
    after_bad,
    check_lanes,
    check_step,
    check_steps,
    close_rows,
    close_staged_files,
    held_partitioning,
    problem_of,
    record_at,
    rows_batch,
    with_files,
)
from actors.target.buffer import TargetBuffer
from actors.target.column_changes import any_columns, note_column_changes, with_column_changes
from actors.target.entry_groups import EntryGroups
from actors.target.pending import Closing, PendingShare, StagedFile
from actors.target.settings import ProcessorSettings
from changes.formats.engine.format import Format
from changes.routes.routing import Router
from offsets.key_partitioning import Partitioned
from offsets.position import NO_OFFSET, TopicPartition


class Batches:
    """Makes one processor's batches. Deterministic: it answers with effects."""

    def __init__(
        self,
        me: Address,
        format_: Format,
        router: Router,
        settings: ProcessorSettings,
        run_id: str,
        gatherer: Callable[[TargetBuffer, StagedBatch], Via],
    ) -> None:
        """``run_id`` makes batch names unique over restarts. ``gatherer``: as of ``WriteBatch``."""
        letters, by = settings.dead_letters, settings.partitioner
        self._dead_letters = Address(me.pipeline, "dead-letters") if letters else None
        self._me, self._router, self._gatherer = me, router, gatherer
        self._committer = Address(me.pipeline, "committer")
        self._barriers = BarrierPlanner(format_, router, settings.ddl, by_key=by is not None)
        self._entry_groups = EntryGroups(format_, router, self._barriers, self)
        self._batch_bytes = settings.buffer_bytes
        """Bounds what is decoded at once, in raw messages or staged files."""
        self._run_id, self._number = run_id, 0
        self._group, self._counts = settings.group, settings.counts
        self._partitioned = None if by is None else Partitioned(by, {})

    def note_counts(self, counts: Mapping[str, int]) -> list[fx.TargetEffect]:
        """Take how many partitions topics have."""
        if self._partitioned is not None:
            self._partitioned = self._partitioned.counted(counts)
        return []

    def close(self, buffer: TargetBuffer, now: float) -> list[fx.TargetEffect]:
        """Close one batch (or one barrier) of a target that has no write in flight.

        Raises DataError.
        """
        if not buffer.queue.barrier_first:
            return self._rows(buffer, buffer.queue.take(self._batch_bytes), None)
        if buffer.through:
            return self._rows(buffer, [], None)
        if buffer.queue.chunks[0].ddl and self._entry_groups.wait_in(buffer.queue.chunks[0]):
            return self._entry_groups.close(buffer, now)
        if buffer.queue.chunks[0].ddl:
            return self._barrier(buffer, now)
        buffer.columns.change()
        (first,) = buffer.queue.take(1)
        buffer.queue.give_back(replace(first, restarts_columns=False))
        return self._rows(buffer, buffer.queue.take(self._batch_bytes), None)

    def _rows(
        self, buffer: TargetBuffer, chunks: list[PendingShare], behind_write: TopicPartition | None
    ) -> list[fx.TargetEffect]:
        """Have chunks decoded and staged: as the batch, or as a file behind the write."""
        staged_files = () if behind_write is not None else self._files_of_one_write(buffer)
        others = bool(chunks and staged_files) and chunks[0].table != staged_files[0].table
        if (len(staged_files) < len(buffer.staged_files) or others) and behind_write is None:
            for chunk in reversed(chunks):
                buffer.queue.give_back(chunk)
            return self.start_staging(buffer, close_staged_files(buffer, staged_files))
        closing, replayed = close_rows(buffer, chunks, staged_files, behind_write)
        out: list[fx.TargetEffect] = []
        buffer.tally.replayed(replayed)
        if replayed:
            fields = {"target": buffer.name, "messages": replayed}
            out.append(fx.Log("info", "replay_dropped", fields))
        if staged_files or any(part.lane.messages for part in closing.parts):
            return out + self.start_staging(buffer, closing)
        return out + self._covered(buffer, closing)

    def start_staging(self, buffer: TargetBuffer, closing: Closing) -> list[fx.TargetEffect]:
        """Have what is closed staged as the batch."""
        buffer.life.stage(closing)
        return [self.stage(buffer)]

    def _covered(self, buffer: TargetBuffer, closing: Closing) -> list[fx.TargetEffect]:
        """It holds no row: then it is done, unless it waits behind the write."""
        closing.cover(None)
        buffer.cover(closing.through, closing.epochs)
        return self.nothing_to_write(buffer) if closing.behind_write is None else []

    def _barrier(self, buffer: TargetBuffer, now: float) -> list[fx.TargetEffect]:
        chunk = buffer.queue.take(1)[0]
        buffer.cover({chunk.source: chunk.messages.last}, {chunk.source: chunk.epoch})
        try:
            check_step(buffer, chunk.source, chunk.messages.last)
            barrier = self._barriers.plan(buffer, chunk, self.next_id())
        except DataError:
            buffer.uncover()  # nothing came before it in this write: it waits again
            buffer.queue.give_back(chunk)
            raise
        out = notes_of(buffer, barrier)
        if barrier.batch is None:
            return out + self.nothing_to_write(buffer)
        firsts = {chunk.source: chunk.messages.first}
        through, epochs = dict(buffer.through), dict(buffer.epochs)
        return out + self.submit(buffer, barrier.batch, epochs, through, firsts, now)

    def nothing_to_write(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """Replays and messages without effect are done as soon as what came before them is.

        What an earlier run has written may not be recorded yet: so the target's state goes along.
        """
        through, epochs = buffer.uncover()
        known = buffer.state.schema is not None or bool(buffer.state.hwms)
        state = buffer.state if known else None
        done = msg.Written(buffer.route.name, epochs, through, state)
        return [fx.Tell(self._committer, done)] if done.through else []

    def _files_of_one_write(self, buffer: TargetBuffer) -> tuple[StagedFile, ...]:
        """The oldest files, as many as may be read back at once: after a long outage there may
        be gigabytes of them."""
        taken: list[StagedFile] = []
        size = 0
        for file in buffer.staged_files:
            size += file.size
            if taken and (size > self._batch_bytes or file.table != taken[0].table):
                break
            taken.append(file)
        return tuple(taken)

    def stage(self, buffer: TargetBuffer) -> fx.Stage:
        """Ask for what is closed to be staged, for the first time or again."""
        closing = buffer.life.closing
        assert closing is not None
        paths, columns = tuple(file.path for file in closing.staged_files), buffer.columns
        lanes = tuple(part.lane for part in closing.parts)
        stored = columns.reminder(buffer.state.schema)
        more = columns.generation, stored, not columns.types, any_columns(buffer, closing.table)
        partitioned = self._partitioned
        if partitioned is not None:
            partitioned = partitioned.beside(held_partitioning(buffer))
        return fx.Stage(buffer.route, paths, lanes, *more, partitioned, self._counts is not None)

    def stage_behind(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """Decode and stage what waits behind the write, a file for each lane, up to a barrier."""
        chunks = buffer.queue.take_lane()
        return self._rows(buffer, chunks, chunks[0].source) if chunks else []

    def staged(self, buffer: TargetBuffer, staged: msg.Staged, now: float) -> list[fx.TargetEffect]:
        """The file is there: it goes to a writer, or waits behind the write. Raises DataError."""
        closing = buffer.life.closing
        assert closing is not None
        staged = accepted(staged, closing, buffer)
        if staged.declared_types is not None:
            buffer.columns.learn(staged.declared_types)
        changed = self._columns(buffer, closing, staged)
        if closing.entry_group is not None:
            return changed + self._entry_groups.staged(buffer, staged, now)
        # A refusal leaves the batch's messages at hand. A file waits behind a write, maybe the one
        # that ends such a message.
        if closing.behind_write is None:
            check_steps(buffer, closing, staged)
        check_lanes(buffer, closing, staged)
        buffer.staged(staged, closing.staged_files)
        problem = problem_of(closing, staged.bad)
        closing.cover(staged.bad)
        out = changed
        if staged.bad is not None and self._restarts(buffer, closing, staged.bad):
            out += self._restart_columns(buffer, closing, staged.bad, now)
        elif staged.bad is not None and self._dead_letters is not None:
            out += self._condemn(buffer, closing, staged.bad, now)
        elif staged.bad is not None and problem is not None:
            buffer.doom(problem, record_at(closing, staged.bad))
        if closing.behind_write is not None:
            return out + self._file_staged(buffer, closing, staged)
        return out + self._batch_staged(buffer, closing, staged, now)

    def _columns(
        self, buffer: TargetBuffer, closing: Closing, staged: msg.Staged
    ) -> list[fx.TargetEffect]:
        """Take the changes of columns that the rows show."""
        parts = closing.parts
        last = f" {parts[-1].lane.source} offset {parts[-1].through}" if parts else ""
        shared = partial(self._router.shared, buffer.route.name)
        place, behind = f"up to{last}", closing.behind_write is not None
        files = closing.staged_files
        return note_column_changes(
            buffer, staged, place, shared=shared, behind_write=behind, files=files
        )

    def _restarts(self, buffer: TargetBuffer, closing: Closing, bad: msg.BadMessageAt) -> bool:
        """Whether a message is only of other columns than those before it. Where nothing was known
        before it, it is a bad one."""
        return bad.of_table and not buffer.columns.begins_with(record_at(closing, bad))

    def _restart_columns(
        self, buffer: TargetBuffer, closing: Closing, bad: msg.BadMessageAt, now: float
    ) -> list[fx.TargetEffect]:
        """Have what came before it written, and it and the rest decoded as if it were the first:
        the sink then decides what becomes of the stored columns, and names those it refuses."""
        for chunk in reversed(after_bad(closing, bad, now, restarts_columns=True)):
            buffer.queue.give_back(chunk)
        buffer.columns.restart(record_at(closing, bad))
        fields = {"target": buffer.name, "what": problem_of(closing, bad)}
        return [fx.Log("warning", "columns_differ", fields)]

    def _condemn(
        self, buffer: TargetBuffer, closing: Closing, bad: msg.BadMessageAt, now: float
    ) -> list[fx.TargetEffect]:
        """Have the bad record stored; what follows it waits, undecoded, at the front."""
        assert self._dead_letters is not None
        for chunk in reversed(after_bad(closing, bad, now)):
            buffer.queue.give_back(chunk)
        record = record_at(closing, bad)
        buffer.condemn(record)
        value = closing.parts[bad.lane_index].lane.messages.values[bad.index]
        letter = msg.DeadLetter(*record, value, bad.reason, buffer.route.name, self._me)
        return [fx.Tell(self._dead_letters, letter)]

    def _file_staged(
        self, buffer: TargetBuffer, closing: Closing, staged: msg.Staged
    ) -> list[fx.TargetEffect]:
        buffer.cover(closing.through, closing.epochs)
        if staged.path is not None:
            ((source, through),) = closing.through.items()
            first = closing.firsts()[source]
            more = staged.changes, staged.size, through, first, closing.table, staged.carried
            spread = staged.key_partitioning
            buffer.add_file(StagedFile(source, staged.path, *more, spread, staged.counts))
        return []

    def _batch_staged(
        self, buffer: TargetBuffer, closing: Closing, staged: msg.Staged, now: float
    ) -> list[fx.TargetEffect]:
        if staged.path is None:
            buffer.cover(closing.through, closing.epochs)
            return self.nothing_to_write(buffer)
        lanes = buffer.spans(closing.through)
        batch = rows_batch(self.next_id(), buffer.route, staged, lanes, closing.table)
        batch = with_files(batch, closing.staged_files)
        # A bad record at the front of a lane was given back: the write has nothing of it.
        through = closing.through
        firsts = {s: at for s, at in closing.firsts().items() if at <= through.get(s, NO_OFFSET)}
        return self.submit(buffer, batch, closing.epochs, through, firsts, now)

    def submit(
        self,
        buffer: TargetBuffer,
        batch: StagedBatch,
        epochs: Mapping[TopicPartition, int],
        through: Mapping[TopicPartition, int],
        firsts: Mapping[TopicPartition, int],
        now: float,
    ) -> list[fx.TargetEffect]:
        """Hand a batch to the writers. ``through``: what may be acknowledged when it is written;
        ``firsts``: its first message of each lane."""
        batch = replace(batch, group=self._group, shape=buffer.route.shape.fingerprint)
        counts = None if self._counts is None else batch.counts or {}
        batch = replace(batch, counts=counts, folded=buffer.folded)
        if batch.path is not None:
            batch = with_column_changes(buffer, batch, self._router)
        via, said = self._gatherer(buffer, batch)
        write = msg.WriteBatch(batch, epochs, through, self._me, self._committer, via)
        buffer.hand_over(write, firsts, now)
        return [*said, offered(write)]

    def next_id(self) -> str:
        """A name for a batch, unique over restarts."""
        self._number += 1
        return f"{self._run_id}-{self._me.pipeline}-{self._me.number}-{self._number}"
