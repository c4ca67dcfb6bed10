"""Detects that a target was rolled back or replaced since it was last looked at.

What a target is known to have published (by the last run's file, then by this run's own writes) is
compared with what it shows whenever it is opened: at its first data, after each assignment, and
when it is released from quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.writes import TargetState
from actors.processor.buffer import TargetBuffer
from offsets.position import NO_OFFSET, TopicPartition
from offsets.rollback import gaps, ways_out
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


def remarks(buffer: TargetBuffer, found: TargetState) -> list[object]:
    """Warnings: nothing is missing, but the target's history was replaced; or its rows may differ,
    which was not reported here because of a crash, or because another member wrote it."""
    out: list[object] = []
    recorded, mark = buffer.recorded, found.rows_may_differ
    if mark is not None and (recorded is None or recorded.rows_may_differ != mark):
        out.append(fx.Log("warning", "rows_may_differ", {"target": buffer.name, "what": mark}))
    if found.diverged and recorded is not None:
        fields = {"target": buffer.name, "recorded": recorded.version, "now": found.version}
        out.append(fx.Log("warning", "history_replaced", fields))
    return out
