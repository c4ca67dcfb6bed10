"""Finds what a target holds unwritten: messages at hand, and ranges to be read again.

Staged rows are not messages: a spill takes the messages at hand and names the rest by offsets.
"""

from __future__ import annotations

from actors.contract import messages as msg
from actors.contract.raw_messages import Messages
from actors.processor.buffer import TargetBuffer
from actors.processor.waiting import Chunk, Closing
from offsets.position import TopicPartition


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
