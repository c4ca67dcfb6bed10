"""Detects that a target was rolled back or replaced since it was last looked at.

What a target is known to have published (by the last run's file, then by this run's own writes) is
compared with what it shows whenever it is opened: at its first data, after each assignment, and
when it is released from quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.target.buffer import TargetBuffer
from actors.target.pending import Chunk, Closing
from offsets.position import NO_OFFSET, TopicPartition
from offsets.recovery import gaps, ways_out
from offsets.snapshot import TargetMark


def fed(buffer: TargetBuffer, batch: msg.RecordBatch) -> None:
    """Note where the reading of a partition began that feeds the target."""
    source = batch.source
    if buffer.fed.get(source, (-1, 0))[0] == batch.epoch:
        return
    buffer.fed[source] = (batch.epoch, batch.start)
    if batch.unrecorded:
        buffer.unrecorded.add(source)
    else:
        buffer.unrecorded.discard(source)


def published(buffer: TargetBuffer, written: msg.Written, renamed: bool) -> None:
    """Note what a write of ours published: from now on nothing below may be missing.

    Another table has the name once it was ``renamed``: what the former one held counts no more.
    Inside a message no version is recorded: marks that were restored from it would lack the step.
    """
    assert written.state is not None
    own = {source: written.state.hwms[source] for source in written.epochs}
    before = {} if renamed or buffer.recorded is None else buffer.recorded.hwms
    version = None if written.state.steps else written.state.version
    differs = written.state.rows_may_differ
    buffer.recorded = TargetMark(version, {**before, **own}, rows_may_differ=differs)
    for source, hwm in own.items():
        epoch, start = buffer.fed.get(source, (-1, 0))
        # Below the mark nothing comes again under this assignment.
        buffer.fed[source] = (epoch, max(start, hwm + 1))


def gap_in(buffer: TargetBuffer, found: TargetState, pipeline: str) -> str | None:
    """Why the target can't be written on from here, None where all is well."""
    starts = {source: start for source, (_, start) in buffer.fed.items()}
    if (skipped := _skipped(buffer, found, starts, pipeline)) is not None:
        return skipped
    if buffer.recorded is None:
        return None
    if buffer.quarantine is not None:  # a release begins with what is spilled
        starts |= {source: first for source, (first, _) in buffer.quarantine.spill.lanes.items()}
    missing = gaps(buffer.recorded.hwms, found.hwms, starts)
    if not missing:
        return None
    what = "the table is gone" if found.schema is None else "it was rolled back or made anew"
    return (
        f"{buffer.name}: {what}: {'; '.join(map(str, missing))}: changes in between would be "
        f"missing for ever. {ways_out(pipeline, buffer.name, missing[0])}"
    )


def _skipped(
    buffer: TargetBuffer,
    found: TargetState,
    starts: Mapping[TopicPartition, int],
    pipeline: str,
) -> str | None:
    """Why a target has a hole below where reading begins: every record of positions was lost (or
    the group is another), and the configured start is beyond what the target holds."""
    known = {} if buffer.recorded is None else buffer.recorded.hwms
    for source in sorted(buffer.unrecorded - known.keys()):
        hwm = found.hwms.get(source, NO_OFFSET)
        if hwm > NO_OFFSET and hwm + 1 < starts[source]:
            return (
                f"{buffer.name}: holds {source} through {hwm}, no position is recorded, and "
                f"reading begins at {starts[source]}, as configured: changes in between would be "
                f"missing for ever. `binlogd offsets reset --pipeline {pipeline} --topic "
                f"{source.topic} --partition {source.partition} --to earliest` reads what the log "
                "still has, and targets drop what they hold; where they are right as they are, "
                "force the start"
            )
    return None


def remarks(buffer: TargetBuffer, found: TargetState) -> list[fx.TargetEffect]:
    """Warnings: nothing is missing, but the target's history was replaced; or its rows may differ,
    which was not reported here because of a crash, or because another member wrote it."""
    out: list[fx.TargetEffect] = []
    recorded, mark = buffer.recorded, found.rows_may_differ
    if mark is not None and (recorded is None or recorded.rows_may_differ != mark):
        out.append(fx.Log("warning", "rows_may_differ", {"target": buffer.name, "what": mark}))
    if found.diverged and recorded is not None:
        fields = {"target": buffer.name, "recorded": recorded.version, "now": found.version}
        out.append(fx.Log("warning", "history_replaced", fields))
    return out


# Finds what a target holds unwritten: messages at hand, and ranges to be read again.


def into_quarantine(buffer: TargetBuffer) -> list[str]:
    """Drop all but a write in flight. Returns the files that are to be removed."""
    gone = buffer.drop_all()
    waiting = buffer.life.waiting
    if waiting is not None and waiting.batch.path is not None:
        gone.append(waiting.batch.path)
    buffer.life.quarantine()
    return gone


def no_more_at_hand(buffer: TargetBuffer) -> list[tuple[TopicPartition, int, int, int]]:
    """Of each lane the unwritten range of which only staged rows are left: source, epoch, first,
    last. A bad record that waits for its store is among it: it is not stored yet."""
    found: dict[TopicPartition, tuple[int, int, int]] = {}
    write = buffer.life.write
    if write is not None:
        for source, first in buffer.write_from.items():
            found[source] = (write.epochs[source], first, write.through[source])
    for file in buffer.staged_files:
        # A lane that was taken away has no file, but maybe a write of its earlier epoch.
        epoch, first = buffer.epochs[file.source], file.first
        before = found.get(file.source)
        if before is not None and before[0] == epoch:
            first = before[1]
        found[file.source] = (epoch, first, file.through)
    if buffer.pending_letter is not None:
        source, epoch, offset = buffer.pending_letter
        before = found.get(source)
        first = before[1] if before is not None and before[0] == epoch else offset
        found[source] = (epoch, first, offset)
    return [(source, *unwritten) for source, unwritten in found.items()]


def covered(buffer: TargetBuffer) -> dict[TopicPartition, tuple[int, int]]:
    """The epoch of each lane and how far it is decoded: those messages are in the write, in
    files, without rows, or the last one is the bad record that waits for its store."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for held in (buffer.life.write, buffer.life.closing, buffer):
        if held is None:
            continue
        for source, last in held.through.items():
            here = (held.epochs[source], last)
            found[source] = max(here, found.get(source, here))
    if buffer.pending_letter is not None:
        source, epoch, offset = buffer.pending_letter
        found[source] = max((epoch, offset), found.get(source, (epoch, offset)))
    return found


def chunks_of(closing: Closing | None, now: float) -> list[Chunk]:
    """A closed batch's messages as they came. That of an entry group waits whole at the front."""
    if closing is None or closing.entry_group is not None:
        return []
    return [
        Chunk(
            part.lane.source,
            part.epoch,
            Messages.of(part.lane.messages.offsets, part.lane.messages.values),
            False,
            now,
            table=closing.table,
        )
        for part in closing.parts
        if part.lane.messages
    ]


def file_of(write: msg.WriteBatch | None) -> str | None:
    """The file of a write, if it has one."""
    return None if write is None else write.batch.path


def place_of(buffer: TargetBuffer) -> str:
    """Which messages a refused write was made of."""
    write = buffer.life.write
    if write is None:
        return ""
    batch = write.batch
    if batch.step is not None:
        (source,) = batch.lanes
        return f" ({source} offset {batch.step.offset}, up to its entry {batch.step.done})"
    spans = ", ".join(
        f"{source} offsets {span.after + 1}..{span.through}" for source, span in batch.lanes.items()
    )
    return f" ({spans})"
