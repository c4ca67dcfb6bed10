"""What a target holds unwritten: how far each lane is decoded, ranges of which only staged rows are
left, and the place of a write."""

from __future__ import annotations

from actors.contract import messages as msg
from actors.target.buffer import TargetBuffer
from offsets.position import TopicPartition


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
    files, without rows, the target has them, or the last one is the bad record that waits for its
    store."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for held in (buffer.life.write, buffer.life.closing, buffer):
        if held is None:
            continue
        for source, last in held.through.items():
            here = (held.epochs[source], last)
            found[source] = max(here, found.get(source, here))
    closing = buffer.life.closing
    for source, epoch, last in () if closing is None else closing.replayed():
        found[source] = max((epoch, last), found.get(source, (epoch, last)))
    if buffer.pending_letter is not None:
        source, epoch, offset = buffer.pending_letter
        found[source] = max((epoch, offset), found.get(source, (epoch, offset)))
    return found


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
