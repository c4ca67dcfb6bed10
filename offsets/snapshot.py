"""Snapshot: what a pipeline must remember between two runs. ``snapshot_text`` has its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.rebuild import Rebuild

# Moves of a target's marks by an operator: what a reset leaves to be done in the sink.


@dataclass(frozen=True, slots=True)
class MarkMoves:
    """``lower``: a lane's mark is this at most, so what lies above it is applied again. ``lift``:
    it is this at least, so what lies below it is skipped.

    In this form, not as new marks, repeating it changes nothing, and what was published between
    plan and move stays right. A lane that the target does not have gets none: a keyed target
    would then look as if it held another partition's rows.
    """

    lower: Mapping[TopicPartition, int] = field(default_factory=dict)
    lift: Mapping[TopicPartition, int] = field(default_factory=dict)

    def of(self, marks: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The marks as they are to be."""
        lowered = {s: min(mark, self.lower.get(s, mark)) for s, mark in marks.items()}
        return {s: max(mark, self.lift.get(s, mark)) for s, mark in lowered.items()}


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Where one partition stands.

    ``frontier``: every message below it is done. ``confirmed``: the last frontier that the broker
    confirmed, None before the first one. ``log``: the epoch of the log below it.
    ``reset``: an operator put the frontier here, and until the broker has confirmed one the group's
    commit is what it was before: it says nothing. ``running``: the producer's numbers there.
    ``adopted``: the group's commit at which a daemon without a record began. A table that is new
    there may lack what is below, whenever its first change comes. ``reread``: an operator put the
    frontier back when the log ended here, so until it is here tables may hold more than it says;
    None: none did, or it is past. ``begin``: where the group began to read, or was put forward to;
    what lies below was not read. None: not recorded, as by older versions. ``withdraws``: the
    lowest place from which an operator had the log read again, for as long as no row withdraws the
    cuts that have more; None: none is needed.
    """

    frontier: int
    confirmed: int | None = None
    log: LogEpoch | None = None
    reset: bool = False
    running: Running | None = None
    adopted: int | None = None
    reread: int | None = None
    begin: int | None = None
    withdraws: int | None = None


@dataclass(frozen=True, slots=True)
class TargetMark:
    """What a target last published: the sink's own name of that state, and its marks.

    ``moves``: what a reset did to the marks, recorded with the new frontiers and still to be done
    in the target, before anything is read. ``rows_may_differ`` repeats what the target says of its
    stored rows (``offsets.snapshot``), so that it is known before the target is opened.
    """

    version: str | None
    hwms: Mapping[TopicPartition, int]
    moves: MarkMoves | None = None
    rows_may_differ: str | None = None


@dataclass(frozen=True, slots=True)
class SpillMark:
    """What a target's spill holds: its bytes, and each lane's first and last offset.

    Those messages count as done: the spill is the only place where they are. ``away``: the target
    is not in quarantine, its sink does not answer.
    """

    bytes: int
    lanes: Mapping[TopicPartition, tuple[int, int]]
    away: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a pipeline must remember between two runs.

    ``forced`` is the configuration's force text that was carried out last: it works once.
    ``formats``: by topic the format that was detected from its messages (``format = "auto"``).
    """

    pipeline: str
    group: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    targets: Mapping[str, TargetMark] = field(default_factory=dict)
    forced: str | None = None
    spills: Mapping[str, SpillMark] = field(default_factory=dict)
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def rebuilding(self) -> Mapping[str, Rebuild]:
        """The rebuilds that go on. Of one that was given up a table may be left to be removed."""
        return {target: each for target, each in self.rebuilds.items() if not each.cancelled}


# Mark of a target whose stored rows may differ from the source's: what happened, as a text.

MOST = 6
"""Events that a mark names. What comes after them is in the log: the table is as doubtful as it
can be."""

CHARACTERS = 200
"""Of one event: enough for a table, a column, two types and an offset."""

_BETWEEN = "; "
_MORE = "and more since, which the log names"


def noted(mark: str | None, events: Iterable[str]) -> str | None:
    """The mark after these events; None where nothing ever happened."""
    held = [] if mark is None else mark.split(_BETWEEN)
    for event in map(_short, events):
        if event in held or _MORE in held:
            continue
        held.append(event if len(held) < MOST else _MORE)
    return _BETWEEN.join(held) or None


UNWRITTEN = "not on the table yet: "
"""Begins an event that was noted while nothing was written: the target's next write says it."""


def unwritten(mark: str | None) -> str | None:
    """What a recorded mark holds that the target is still to say; None: nothing."""
    held = [] if mark is None else mark.split(_BETWEEN)
    left = [each.removeprefix(UNWRITTEN) for each in held if each.startswith(UNWRITTEN)]
    return "; ".join(left) or None


def names(mark: str | None, event: str) -> bool:
    """Whether the mark names an event, or may: it has no room for all."""
    held = [] if mark is None else mark.split(_BETWEEN)
    return _short(event) in held or _MORE in held


def _short(event: str) -> str:
    """One line of a bounded length, without what separates events."""
    line = " ".join(event.split()).replace(_BETWEEN, ", ")
    return line if len(line) <= CHARACTERS else f"{line[: CHARACTERS - 1]}…"
