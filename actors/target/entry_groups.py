"""Writes a message with statements beside rows of one target: a write for each entry group.

The message waits at the front until its last entry group is handed over. Until then the target's
mark is just below it, and each write leaves a step there: so many entries of this message are in.
What is left follows from mark and step alone, also after a crash, a revoke or a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.effects import LaneMessages
from actors.contract.multi_entry import EntryGroup, entry_groups
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch
from actors.target.barrier import BarrierPlanner, notes_of
from actors.target.batching import DataError, check_lanes, problem_of, record_at, rows_batch
from actors.target.buffer import Passed, TargetBuffer
from actors.target.pending import Closing, ClosingPart, DeadRecord, PendingShare
from changes.formats.engine.format import Format, MultiEntry
from changes.model.model import Mode, TableSchema
from changes.routes.routing import Router
from offsets.fence import Span
from offsets.position import EntryStep, TopicPartition


class Writes(Protocol):
    """What carries out the write of an entry group (``actors.target.batches``)."""

    def next_id(self) -> str:
        """A name for a batch."""
        ...

    def start_staging(self, buffer: TargetBuffer, closing: Closing) -> list[fx.TargetEffect]:
        """Have rows staged."""
        ...

    def submit(
        self,
        buffer: TargetBuffer,
        batch: StagedBatch,
        epochs: Mapping[TopicPartition, int],
        through: Mapping[TopicPartition, int],
        firsts: Mapping[TopicPartition, int],
        now: float,
    ) -> list[fx.TargetEffect]:
        """Hand a batch to the writers."""
        ...

    def nothing_to_write(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """What is covered is done."""
        ...


class EntryGroups:
    """Writes one processor's messages of entry groups. Deterministic: it answers with effects."""

    def __init__(
        self, format_: Format, router: Router, barriers: BarrierPlanner, writes: Writes
    ) -> None:
        self._format = format_
        self._router = router
        self._barriers = barriers
        self._writes = writes

    def wait_in(self, chunk: PendingShare) -> bool:
        """Whether a barrier is a message that has to be taken apart: it has several entries."""
        return (
            isinstance(self._format, MultiEntry)
            and len(self._format.entries(chunk.messages.values[0])) > 1
        )

    def close(self, buffer: TargetBuffer, now: float) -> list[fx.TargetEffect]:
        """Begin with the next entry group of the message at the front. Raises DataError."""
        chunk = buffer.queue.chunks[0]
        if chunk.above(buffer.hwm(chunk.source)) is None:
            return self._end(buffer, chunk, now)
        out: list[fx.TargetEffect] = []
        for group in self._left(buffer, chunk):
            if not group.ddl:
                return out + self._stage(buffer, chunk, group)
            part = replace(chunk, messages=replace(chunk.messages, values=[group.value]))
            barrier = self._barriers.plan(buffer, part, self._writes.next_id())
            out += notes_of(buffer, barrier)
            if barrier.batch is not None:
                return out + self._submit(buffer, barrier.batch, group, 0, now)
            _pass(buffer, chunk, group)
        return out + self._end(buffer, chunk, now)

    def staged(self, buffer: TargetBuffer, staged: msg.Staged, now: float) -> list[fx.TargetEffect]:
        """An entry group's rows are staged. Raises DataError.

        A bad record raises too: a statement may stand behind it, and leaving rows out must not lead
        to it.
        """
        closing = buffer.life.closing
        assert closing is not None
        assert closing.entry_group is not None
        problem = problem_of(closing, staged.bad)
        if staged.bad is not None and staged.bad.of_table and staged.path is None:
            record = record_at(closing, staged.bad)
            if not buffer.columns.begins_with(record):
                return _restart_columns(buffer, record, problem)
        if staged.bad is not None and problem is not None:
            files = () if staged.path is None else (staged.path,)
            buffer.found_bad(record_at(closing, staged.bad))
            raise DataError(problem, *files)
        check_lanes(buffer, closing, staged)
        buffer.staged(staged)
        if staged.path is None:
            _pass(buffer, buffer.queue.chunks[0], closing.entry_group)
            return []
        table = closing.table
        batch = rows_batch(self._writes.next_id(), buffer.route, staged, {}, table)
        rows = staged.rows if staged.mode is Mode.APPEND else 0
        return self._submit(buffer, batch, closing.entry_group, rows, now)

    def _left(self, buffer: TargetBuffer, chunk: PendingShare) -> list[EntryGroup]:
        """What the target does not hold, and what has not turned out to do nothing."""
        shown = _shown(buffer, chunk)
        passed = buffer.passed
        done = shown.done
        if passed is not None and passed[:-1] == (*_place(chunk), shown):
            done = passed.done
        all_ = entry_groups(self._format, self._router, buffer.route, chunk.messages.values[0])
        return [group for group in all_ if group.done > done]

    def _stage(
        self, buffer: TargetBuffer, chunk: PendingShare, group: EntryGroup
    ) -> list[fx.TargetEffect]:
        source, epoch, offset = _place(chunk)
        rows = _shown(buffer, chunk).rows
        messages = Messages.of([offset], [group.value])
        part = ClosingPart(LaneMessages(source, messages, rows, buffer.hwm(source)), epoch, offset)
        closing = Closing((part,), 0, (), {}, {}, None, group, group.table)
        return self._writes.start_staging(buffer, closing)

    def _submit(
        self, buffer: TargetBuffer, batch: StagedBatch, group: EntryGroup, rows: int, now: float
    ) -> list[fx.TargetEffect]:
        """One entry group's write; the message is acknowledged with the last one.

        The mark goes up to it at once. All below is in: a statement there that had nothing to do
        when it came may have, once the table is there, and must not come behind this message's.
        """
        chunk = buffer.queue.chunks[0]
        source, epoch, offset = _place(chunk)
        shown, hwm = _shown(buffer, chunk), buffer.hwm(source)
        through: dict[TopicPartition, int] = {}
        if group.last:
            buffer.queue.take(1)
            through = {source: offset}
        batch = replace(
            batch,
            lanes={source: Span(hwm, offset if group.last else offset - 1)},
            step=EntryStep(offset, group.done, shown.rows + rows),
            begun=shown.done,
        )
        return self._writes.submit(buffer, batch, {source: epoch}, through, through, now)

    def _end(self, buffer: TargetBuffer, chunk: PendingShare, now: float) -> list[fx.TargetEffect]:
        """Nothing is left to be done of the message: the mark moves past it, if a part is in."""
        source, epoch, offset = _place(chunk)
        shown = _shown(buffer, chunk)
        if not shown.done or buffer.hwm(source) >= offset:
            buffer.queue.take(1)
            buffer.cover({source: offset}, {source: epoch})
            return self._writes.nothing_to_write(buffer)
        state = buffer.state
        batch = StagedBatch(
            self._writes.next_id(),
            buffer.route.name,
            state.mode or buffer.route.mode,
            state.schema or TableSchema((), ()),
            {},
        )
        return self._submit(buffer, batch, EntryGroup(b"", True, shown.done, True), 0, now)


def _restart_columns(
    buffer: TargetBuffer, record: DeadRecord, what: str | None
) -> list[fx.TargetEffect]:
    """The rows have other columns than those before: they are decoded as if the first."""
    buffer.life.staged()
    buffer.columns.restart(record)
    buffer.columns.change()
    return [fx.Log("warning", "columns_differ", {"target": buffer.name, "what": what})]


def _place(chunk: PendingShare) -> tuple[TopicPartition, int, int]:
    return chunk.source, chunk.epoch, chunk.messages.first


def _shown(buffer: TargetBuffer, chunk: PendingShare) -> EntryStep:
    """What the target shows of the message."""
    offset = chunk.messages.first
    step = buffer.state.steps.get(chunk.source)
    return step if step is not None and step.offset == offset else EntryStep(offset, 0)


def _pass(buffer: TargetBuffer, chunk: PendingShare, group: EntryGroup) -> None:
    """An entry group does nothing: no write records that."""
    buffer.pass_entries(Passed(*_place(chunk), _shown(buffer, chunk), group.done))
