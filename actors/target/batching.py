"""Closes a batch: drops what the target has, puts the rest together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.contract.effects import LaneMessages
from actors.contract.messages import BadMessageAt, Staged
from actors.contract.one_lane import has_order, second_lane
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch
from actors.target.buffer import TargetBuffer
from actors.target.pending import Closing, ClosingPart, DeadRecord, PendingShare, StagedFile
from changes.formats.engine.lacking import common
from changes.model.model import Mode, TableName
from changes.routes.routing import TargetRoute
from offsets.counts import of_all
from offsets.fence import Span
from offsets.key_partitioning import RELOAD, KeyPartitioning
from offsets.position import TopicPartition
from settings.counted import counted
from settings.shell import quoted


class DataError(Exception):
    """The target can't go on with what the source sent: one line with the record's place.

    ``files``: what was staged before that was seen. ``quarantine``: it goes there, also where
    a refused target stops the pipeline.
    """

    def __init__(self, reason: str, *files: str, quarantine: bool = False) -> None:
        super().__init__(reason)
        self.files = files
        self.quarantine = quarantine


def close_rows(
    buffer: TargetBuffer,
    chunks: list[PendingShare],
    staged_files: tuple[StagedFile, ...],
    behind_write: TopicPartition | None,
) -> tuple[Closing, int]:
    """Put chunks together, a part for each lane, and count the replays that were dropped.

    Chunks of several lanes come in turns, and decoding a part costs as much as some hundred rows:
    a lane's are joined, lanes have no order. Replays (at or below the target's mark) go here,
    cheaply, before any decoding.
    """
    parts: list[ClosingPart] = []
    replayed = 0
    lanes: dict[TopicPartition, list[PendingShare]] = {}
    for chunk in chunks:
        lanes.setdefault(chunk.source, []).append(chunk)
    for source, waiting in lanes.items():
        hwm = buffer.hwm(source)
        fresh = [part for chunk in waiting if (part := chunk.above(hwm)) is not None]
        messages = Messages.joined([chunk.messages for chunk in fresh])
        replayed += sum(len(chunk.messages) for chunk in waiting) - len(messages)
        last = waiting[-1]
        lane = LaneMessages(source, messages, held=hwm)
        parts.append(ClosingPart(lane, last.epoch, last.messages.last))
    whole = behind_write is None
    closing = Closing(
        parts=tuple(parts),
        size=sum(chunk.messages.size for chunk in chunks),
        staged_files=staged_files,
        # A file covers its own messages; the batch also what came before it without a write.
        through=dict(buffer.through) if whole else {},
        epochs=dict(buffer.epochs) if whole else {},
        behind_write=behind_write,
        table=chunks[0].table if chunks else staged_files[0].table if staged_files else None,
    )
    return closing, replayed


def close_staged_files(buffer: TargetBuffer, staged_files: tuple[StagedFile, ...]) -> Closing:
    """A batch of the oldest files alone; what is younger waits for the next one."""
    through = {file.source: file.through for file in staged_files}
    epochs = {source: buffer.epochs[source] for source in through}
    return Closing((), 0, staged_files, through, epochs, None, table=staged_files[0].table)


def problem_of(closing: Closing, bad: BadMessageAt | None) -> str | None:
    """What is wrong with the message after the last good one, with its place."""
    if bad is None:
        return None
    lane = closing.parts[bad.lane_index].lane
    return f"{lane.source} offset {lane.messages.offsets[bad.index]}: {bad.reason}"


def accepted(staged: Staged, closing: Closing, buffer: TargetBuffer) -> Staged:
    """Add, to the error of a row without its key, that the key is configured: mostly a route's
    ``keys`` are meant for another of its tables. Raises DataError where the shape does not fit, or
    the order of a row's changes is lost."""
    if staged.refused is not None:
        raise DataError(f"{buffer.name}: {staged.refused}")
    if staged.not_by_key is not None:
        raise DataError(f"{buffer.name}: {staged.not_by_key}", quarantine=True)
    bad, keys = staged.bad, buffer.route.keys
    if bad is not None and bad.of_keys:
        files = () if staged.path is None else (staged.path,)
        raise DataError(f"{problem_of(closing, bad)}: {RELOAD}", *files, quarantine=True)
    if bad is None or not keys or "key column " not in bad.reason:
        return staged
    reason = f"{bad.reason}; the configuration's `keys` names {', '.join(keys)} as the key"
    return replace(staged, bad=replace(bad, reason=reason))


def after_bad(
    closing: Closing, bad: BadMessageAt, now: float, *, restarts_columns: bool = False
) -> list[PendingShare]:
    """The messages behind a bad one as they came: to be decoded again, they were not staged.

    ``restarts_columns``: the bad one is the first of them, and its columns replace those before.
    """
    chunks: list[PendingShare] = []
    for place, part in enumerate(closing.parts[bad.lane_index :]):
        begin = bad.index + (not restarts_columns) if place == 0 else 0
        closed = part.lane.messages
        # Of a later part all may have been replays: those the target has.
        if not closed.offsets[begin:]:
            continue
        messages = Messages.of(closed.offsets[begin:], closed.values[begin:])
        source, first = part.lane.source, restarts_columns and place == 0
        chunk = PendingShare(source, part.epoch, messages, False, now, first)
        chunks.append(replace(chunk, table=closing.table))
    return chunks


def record_at(closing: Closing, bad: BadMessageAt) -> DeadRecord:
    """The record that can't be applied."""
    part = closing.parts[bad.lane_index]
    return DeadRecord(part.lane.source, part.epoch, part.lane.messages.offsets[bad.index])


def rows_batch(
    batch_id: str,
    route: TargetRoute,
    staged: Staged,
    lanes: Mapping[TopicPartition, Span],
    table: TableName | None,
) -> StagedBatch:
    """The write of rows that are staged."""
    assert staged.schema is not None
    assert staged.mode is not None
    filtered = bool(route.shape.filter) and staged.mode is Mode.UPSERT and staged.has_rows
    filter_ = route.shape.row_filter if staged.positions is None else None
    return StagedBatch(
        batch_id=batch_id,
        target=route.name,
        mode=staged.mode,
        schema=staged.schema,
        lanes=lanes,
        path=staged.path,
        rows=staged.rows,
        changes=staged.changes,
        has_deletes=staged.has_deletes,
        partial=staged.partial,
        bounds=staged.bounds,
        positions=staged.positions,
        options=route.options,
        table=table,
        carried=staged.carried,
        whole=filtered and filter_ is None,
        filter=filter_ if filtered else None,
        key_partitioning=staged.key_partitioning,
        counts=staged.counts,
    )


def with_files(batch: StagedBatch, files: Sequence[StagedFile]) -> StagedBatch:
    """The write with what is known of the files whose rows are in it, too."""
    spread = None
    for each in (*(file.key_partitioning for file in files), batch.key_partitioning):
        spread = spread if each is None else each.behind(spread)
    return replace(
        batch,
        changes=batch.changes + sum(file.changes for file in files),
        carried=common((batch.carried, *(file.carried for file in files))),
        counts=of_all((*(file.counts for file in files), batch.counts or {})),
        key_partitioning=spread,
    )


def check_steps(buffer: TargetBuffer, closing: Closing, staged: Staged) -> None:
    """``check_step`` of all that a batch covers. Raises DataError."""
    files = () if staged.path is None else (staged.path,)
    for part in closing.parts:
        check_step(buffer, part.lane.source, part.through, *files)
    for source, last in closing.through.items():
        check_step(buffer, source, last, *files)


def check_step(buffer: TargetBuffer, source: TopicPartition, last: int, *files: str) -> None:
    """Refuse to go past a message of which the target holds a part. Raises DataError.

    Its entry groups come first, unless the target gets no more of it, or gets it as rows alone: by
    other routes than those by which it was begun.
    """
    step = buffer.state.steps.get(source)
    if step is not None and step.offset <= last:
        raise DataError(
            f"{source} offset {step.offset}: {buffer.name} holds the first "
            f"{counted(step.done, 'entry', 'entries')} of this message, and its routes were changed"
            " before the rest was written: let the former ones run until it is, or "
            f"`binlogd tables rebuild {quoted(buffer.name)}`",
            *files,
        )


def check_lanes(buffer: TargetBuffer, closing: Closing, staged: Staged) -> None:
    """Refuse rows of a second partition without an order (``actors.contract.one_lane``).

    Raises DataError.

    The lanes of a write under way count as the target's: its first one moves no mark before it is
    done. Those of other members the sink finds, when it publishes.
    """
    kept = staged.positions if buffer.state.schema is None else buffer.state.positions
    if has_order(staged.mode, staged.positions, kept):
        return
    write = buffer.life.write
    flying = () if write is None else write.batch.lanes
    known = {*buffer.state.hwms, *buffer.through, *flying}
    if staged.key_partitioning is not None:
        held = held_partitioning(buffer)
        why = staged.key_partitioning.problem_after(held, buffer.state.hwms)
        if why is not None:
            files = () if staged.path is None else (staged.path,)
            raise DataError(f"{buffer.name}: {why}", *files, quarantine=True)
        return
    for part in staged_parts(closing, staged.bad):
        source, messages = part.lane.source, part.lane.messages
        if messages:
            place = f"offset {messages.first}"
            why = second_lane(buffer.name, source, place, known, staged.positions)
            if why is not None:
                raise DataError(why, *(() if staged.path is None else (staged.path,)))
        known.add(source)


def staged_parts(closing: Closing, bad: BadMessageAt | None) -> Sequence[ClosingPart]:
    """The parts of which messages are staged: up to the bad one."""
    return closing.parts if bad is None else closing.parts[: bad.lane_index + (bad.index > 0)]


def held_partitioning(buffer: TargetBuffer) -> KeyPartitioning | None:
    """How keys are spread by the latest that is staged, is being written, or is in the target."""
    write = buffer.life.write
    flying = None if write is None else write.batch.key_partitioning
    waiting = [file.key_partitioning for file in buffer.staged_files]
    latest = (*reversed(waiting), flying, buffer.state.key_partitioning)
    return next((each for each in latest if each is not None), None)
