"""A processor's part of finding out that a target was rolled back while nobody looked.

What a target is known to have published (by the last run's file, then by this run's own writes) is
held against what it shows whenever it is opened: at its first data, after each assignment, and
when it is released from quarantine.
"""

from __future__ import annotations

from actors import effects as fx
from actors import messages as msg
from actors.buffer import TargetBuffer
from actors.ports import TargetState
from offsets.position import TopicPartition
from offsets.rollback import gaps, ways_out
from offsets.snapshot import TargetMark


def fed(buffer: TargetBuffer, source: TopicPartition, epoch: int, start: int) -> None:
    """Note where the reading of a partition began that feeds the target."""
    if buffer.fed.get(source, (-1, 0))[0] != epoch:
        buffer.fed[source] = (epoch, start)


def published(buffer: TargetBuffer, written: msg.Written, renamed: bool) -> None:
    """Note what a write of ours published: from now on nothing below may be missing.

    Another table has the name once it was ``renamed``: what the former one held counts no more.
    Amid a message no version is told: marks that were put back from there would lack the step.
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
    if buffer.recorded is None:
        return None
    starts = {source: start for source, (_, start) in buffer.fed.items()}
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


def remarks(buffer: TargetBuffer, found: TargetState) -> list[object]:
    """What is no harm and worth a warning: nothing is missing, but the history is another's; or
    its rows may differ, which a crash, or another member, did not come to say here."""
    out: list[object] = []
    recorded, mark = buffer.recorded, found.rows_may_differ
    if mark is not None and (recorded is None or recorded.rows_may_differ != mark):
        out.append(fx.Log("warning", "rows_may_differ", {"target": buffer.name, "what": mark}))
    if found.parted and recorded is not None:
        fields = {"target": buffer.name, "recorded": recorded.version, "now": found.version}
        out.append(fx.Log("warning", "history_replaced", fields))
    return out
