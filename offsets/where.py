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
        return Whereabouts(
            Reached.DEAD_LETTER, f"its dead letter is {letter}", lacks=letter != "replayed"
        )
    if state is None:
        line = f"nothing is recorded of {source}: not read yet, or the group alone keeps positions"
        return Whereabouts(Reached.WAITING, line, lacks=True)
    if state.begin is not None and offset < state.begin:
        line = (
            f"reading began, or was put forward to, {state.begin}: what the target has of it came "
            "before that, or by a load, or is not there"
        )
        return Whereabouts(Reached.BEFORE_BEGIN, line, lacks=True)
    doubt = None if mark is None else mark.rows_may_differ
    differs = "" if doubt is None else f"; stored rows may differ from the source's: {doubt}"
    if offset <= hwm:
        line = f"its high-water mark is {hwm}{differs}"
        return Whereabouts(Reached.APPLIED, line, lacks=doubt is not None)
    if spill is not None and source in spill.lanes:
        first, last = spill.lanes[source]
        if first <= offset <= last:
            why = "its sink is away" if spill.away else "it is in quarantine"
            line = f"{why}: kept in its spill, from {first} to {last}"
            return Whereabouts(Reached.SPILLED, line, lacks=True)
    if offset < state.frontier:
        line = f"the committed position is above it, and nothing of it was to be written{differs}"
        return Whereabouts(Reached.PASSED_OVER, line, lacks=doubt is not None)
    line = f"the committed position is {state.frontier}, its high-water mark {_text(hwm)}"
    if state.reread is not None and offset < state.reread:
        line += "; read again since a reset, so the table may hold it all the same"
    return Whereabouts(Reached.WAITING, line, lacks=True)


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
