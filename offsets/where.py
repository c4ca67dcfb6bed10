"""Where a message of the log is, for one target: applied, waiting, spilled... Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import MarkMoves, Snapshot, SpillMark, TargetMark


class Reached(StrEnum):
    """How far a message has come on its way into a target."""

    APPLIED = "applied"
    WAITING = "waiting"
    SPILLED = "spilled"
    DEAD_LETTER = "dead letter"
    PASSED_OVER = "passed over"
    BEFORE_BEGIN = "before the begin"


BEGAN = (
    "reading began, or was put forward to, {}: what the target has of it came before that, or by a "
    "load, or is not there"
)
AGAIN = "; read again since a reset, so the table may hold it all the same"
PASSED = "the committed position is above it, and nothing of it was to be written"
NEVER = (
    "the committed position is above it, and it was not written: its route may be younger, or "
    "nothing of it was to be written"
)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """``line``: what it means, for people. ``lacks``: the target may not have the change."""

    stage: Reached
    line: str
    lacks: bool


def whereabouts(
    recorded: Snapshot,
    source: TopicPartition,
    offset: int,
    target: str,
    letters: Mapping[str, str],
) -> Whereabouts:
    """Of the message at ``offset``, which is one for ``target``. ``letters``: of this message, by
    target, the state of its dead letter (open, replayed, discarded); by the empty name one for no
    single target. A record is seconds old: what is applied since then is still told to wait.
    """
    mark = recorded.targets.get(target, TargetMark(None, {}))
    doubt, state = mark.rows_may_differ, recorded.partitions.get(source)
    differs = "" if doubt is None else f"; stored rows may differ from the source's: {doubt}"
    if (letter := letters.get(target, letters.get(""))) is not None:
        lacks = letter != "replayed" or doubt is not None
        return Whereabouts(Reached.DEAD_LETTER, f"its dead letter is {letter}{differs}", lacks)
    if state is None:
        line = f"nothing is recorded of {source}: not read yet, or the group alone keeps positions"
        return Whereabouts(Reached.WAITING, line, lacks=True)
    if state.begin is not None and offset < state.begin:
        return Whereabouts(Reached.BEFORE_BEGIN, BEGAN.format(state.begin), lacks=True)
    spill = recorded.spills.get(target, SpillMark(0, {}))
    hwm = (mark.moves or MarkMoves()).of(mark.hwms).get(source, NO_OFFSET)
    first, last = spill.lanes.get(source, (NO_OFFSET, NO_OFFSET))
    if offset <= hwm:
        line = f"its high-water mark is {hwm}{differs}"
        return Whereabouts(Reached.APPLIED, line, lacks=doubt is not None)
    if first <= offset <= last:
        why = "it is paused, or its sink is away" if spill.away else "it is in quarantine"
        line = f"{why}: kept in its spill, from {first} to {last}"
        return Whereabouts(Reached.SPILLED, line, lacks=True)
    if offset < state.frontier:
        never = doubt is not None or hwm == NO_OFFSET
        return Whereabouts(Reached.PASSED_OVER, (NEVER if never else PASSED) + differs, never)
    known = "none" if hwm == NO_OFFSET else hwm
    line = f"the committed position is {state.frontier}, its high-water mark {known}"
    line += AGAIN if offset < (state.reread or 0) else ""
    return Whereabouts(Reached.WAITING, line, lacks=True)


def targets_of(recorded: Snapshot, wanted: Iterable[str]) -> list[str]:
    """These, and what is filled instead of one of them."""
    found = []
    for target in wanted:
        found.append(target)
        if (rebuild := recorded.rebuilding.get(target)) is not None:
            found.append(rebuild.into)
    return found
