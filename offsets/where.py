"""Where a message of the log is, for one target: applied, waiting, spilled... Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import Snapshot


class Reached(StrEnum):
    """How far a message has come on its way into a target."""

    APPLIED = "applied"
    WAITING = "waiting"
    SPILLED = "spilled"
    DEAD_LETTER = "dead letter"
    PASSED_OVER = "passed over"
    BEFORE_BEGIN = "before the begin"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """``line``: what it means, for people."""

    stage: Reached
    line: str


def whereabouts(
    recorded: Snapshot,
    source: TopicPartition,
    offset: int,
    target: str,
    letters: Mapping[str, str],
) -> Whereabouts:
    """Of the message at ``offset``, which is one for ``target``. ``letters``: of this message, by
    target, the state of its dead letter (open, replayed, discarded); of the empty name one that is
    for no single target.

    A record is seconds old: what is applied since then is still told to wait.
    """
    state = recorded.partitions.get(source)
    mark, spill = recorded.targets.get(target), recorded.spills.get(target)
    hwm = NO_OFFSET if mark is None else mark.hwms.get(source, NO_OFFSET)
    if mark is not None and mark.moves is not None:
        hwm = mark.moves.of({source: hwm})[source]
    if (letter := letters.get(target, letters.get(""))) is not None:
        return Whereabouts(Reached.DEAD_LETTER, f"its dead letter is {letter}")
    if state is None:
        return Whereabouts(Reached.WAITING, f"nothing is recorded of {source}: it was not read yet")
    if state.begin is not None and offset < state.begin:
        line = f"reading began at {state.begin}: what is in it of that came by a load, or is not"
        return Whereabouts(Reached.BEFORE_BEGIN, line)
    if offset <= hwm:
        return Whereabouts(Reached.APPLIED, f"its high-water mark is {hwm}")
    if spill is not None and source in spill.lanes:
        first, last = spill.lanes[source]
        if first <= offset <= last:
            why = "its sink is away" if spill.away else "it is in quarantine"
            return Whereabouts(Reached.SPILLED, f"{why}: kept in its spill, from {first} to {last}")
    if offset < state.frontier:
        line = "the committed position is above it, and nothing of it was to be written"
        return Whereabouts(Reached.PASSED_OVER, line)
    line = f"the committed position is {state.frontier}, its high-water mark {_text(hwm)}"
    if state.reread is not None and offset < state.reread:
        line += "; read again since a reset, so the table may hold it all the same"
    return Whereabouts(Reached.WAITING, line)


def targets_of(recorded: Snapshot, wanted: Iterable[str]) -> list[str]:
    """These, and what is filled instead of one of them."""
    found = []
    for target in wanted:
        found.append(target)
        if (rebuild := recorded.rebuilding.get(target)) is not None:
            found.append(rebuild.into)
    return found


def _text(hwm: int) -> str:
    return "none" if hwm == NO_OFFSET else str(hwm)
