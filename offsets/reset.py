"""Plans a reset of positions: what it would do, and what it would lose. Pure.

Reading again needs two things at once: the frontier goes back, and so do the marks of the targets,
or they drop what is read again. Skipping is the same the other way round. The plan says both, the
new snapshot holds both, and the marks are moved in the targets before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from offsets.moved import moved_state
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import MarkMoves, Snapshot, TargetMark
from settings.counted import counted
from settings.shell import quoted


class ResetTo(Enum):
    """Where positions are put. FRONTIER: where they are, so that the group follows the file."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSET = "offset"
    FRONTIER = "frontier"


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """``at``: what an offset, or a timestamp, came to; a partition without has nothing at or after
    that time, which is the end. ``target``: that one alone, None means all."""

    to: ResetTo
    sources: tuple[TopicPartition, ...]
    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True, slots=True)
class ResetSurroundings:
    """What the broker and the configuration say. ``changelogs``: the pipeline has targets that
    list what happened; ``compacted`` are topics that lose messages which others replaced, or may
    do so, with what is known of each."""

    logs: Mapping[TopicPartition, Watermarks]
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    compacted: Mapping[str, str] = field(default_factory=dict)
    changelogs: bool = False


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """A frontier, from and to. ``before`` is None where nothing is recorded, ``group`` the commit
    that the group has."""

    source: TopicPartition
    before: int | None
    after: int
    group: int | None


@dataclass(frozen=True, slots=True)
class MarkMove:
    """A target's mark, from and to. ``before`` is None where it is not recorded."""

    target: str
    source: TopicPartition
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """``losses`` is what would be lost, ``refusals`` why it can't be at all: one line each."""

    snapshot: Snapshot
    partitions: tuple[PartitionMove, ...] = ()
    marks: tuple[MarkMove, ...] = ()
    losses: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether nothing would change."""
        still = all(m.before == m.after and m.group in (None, m.after) for m in self.partitions)
        return still and not self.marks


def plan_reset(recorded: Snapshot, around: ResetSurroundings, request: ResetRequest) -> ResetPlan:
    """Plan a reset of what is recorded."""
    refusals = [*_in_the_way(recorded, request)]
    losses = [*_unknown(recorded, request)]
    partitions: list[PartitionMove] = []
    marks: list[MarkMove] = []
    if not refusals:
        for source in request.sources:
            part = _Partition(recorded, around, request, source)
            refusals += part.refusals()
            if part.refused:
                continue
            partitions.append(part.move())
            moved = [*part.marks()]
            losses += part.losses(moved)
            marks += moved
    if refusals:
        return ResetPlan(recorded, losses=tuple(losses), refusals=tuple(refusals))
    plan = ResetPlan(recorded, tuple(partitions), tuple(marks), tuple(losses))
    if plan.nothing:
        return plan
    snapshot = _moved(recorded, around.logs, partitions, marks)
    if request.target is None:
        snapshot = replace(snapshot, formats=_formats_left(recorded, partitions))
    return replace(plan, snapshot=snapshot)


def _in_the_way(recorded: Snapshot, request: ResetRequest) -> Iterator[str]:
    pending = sorted(name for name, mark in recorded.targets.items() if mark.moves is not None)
    if pending:
        yield (
            f"an earlier reset of {', '.join(pending)} is recorded and not carried out yet: start "
            "the daemon, which does it first of all"
        )
    for name in sorted(recorded.rebuilding):
        way = f"`binlogd tables rebuild {quoted(name)} --cancel`"
        yield f"{name} is being rebuilt: wait until it is, or give it up ({way})"
    for name, spill in sorted(recorded.spills.items()):
        held = sorted(str(s) for s in spill.lanes if s in request.sources)
        if held and request.target in (None, name):
            how = "is away, and keeps" if spill.away else "is in quarantine with"
            way = "wait for its sink" if spill.away else "release it first (`binlogd tables retry`)"
            yield (
                f"{name} {how} messages of {', '.join(held)}: {way}, or where no route wants it "
                f"any more give it up (`binlogd tables discard {quoted(name)}`); or reset others "
                "one by one with --table"
            )


def _unknown(recorded: Snapshot, request: ResetRequest) -> Iterator[str]:
    if request.target is not None and request.target not in recorded.targets:
        known = ", ".join(sorted(recorded.targets)) or "none"
        yield (
            f"{request.target} is not recorded ({known}): if the table exists, its marks are "
            "lowered and what it holds is applied again"
        )


class _Partition:
    """The plan for one partition."""

    def __init__(
        self,
        recorded: Snapshot,
        around: ResetSurroundings,
        request: ResetRequest,
        source: TopicPartition,
    ) -> None:
        state = recorded.partitions.get(source)
        self._recorded = recorded
        self._around = around
        self._request = request
        self._source = source
        self._log = around.logs[source]
        self._group = around.committed.get(source)
        self._before = self._group if state is None else state.frontier
        self._at = self._position()

    @property
    def refused(self) -> bool:
        """Whether there is no such position."""
        return self._at is None or not self._log.low <= self._at <= self._log.high

    def refusals(self) -> Iterator[str]:
        """Why it can't be done, even with force."""
        if self._at is None:
            yield f"{self._source}: nothing is recorded, so there is no frontier to stay at"
        elif self.refused:
            log = self._log
            yield (
                f"{self._source}: {self._at} is outside the log, which holds {log.low}..{log.high}"
            )
        elif self._forward and self._request.target is not None and not self._held():
            yield (
                f"{self._source}: {self._request.target} has no mark there that could be lifted: "
                "exclude the table, or move the whole partition"
            )

    def _position(self) -> int | None:
        match self._request.to:
            case ResetTo.EARLIEST:
                return self._log.low
            case ResetTo.LATEST:
                return self._log.high
            case ResetTo.FRONTIER:
                return self._before
            case ResetTo.TIMESTAMP | ResetTo.OFFSET:
                return self._request.at.get(self._source, self._log.high)

    @property
    def _forward(self) -> bool:
        assert self._at is not None
        return self._before is not None and self._at > self._before

    @property
    def _to(self) -> int:
        """The new frontier. Skipping for one target moves its mark alone."""
        assert self._at is not None
        if self._request.target is None or self._before is None:
            return self._at
        return min(self._at, self._before)

    def move(self) -> PartitionMove:
        """The move of the frontier."""
        return PartitionMove(self._source, self._before, self._to, self._group)

    def marks(self) -> Iterator[MarkMove]:
        """The moves of the marks: those above are lowered, or those below lifted."""
        assert self._at is not None
        to, one = self._at - 1, self._request.target
        if self._request.to is ResetTo.FRONTIER and one is None:
            return  # nothing is read again; a target that is ahead stays so
        if one is not None and one not in self._recorded.targets:
            yield MarkMove(one, self._source, None, to)
        for name, mark in self._held().items():
            if mark < to if self._forward else mark > to:
                yield MarkMove(name, self._source, mark, to)

    def losses(self, marks: Iterable[MarkMove]) -> Iterator[str]:
        """What would be lost."""
        assert self._at is not None
        source, log, before = self._source, self._log, self._before
        if self._forward:
            gone = f", of which the log has none below {log.low}" if log.low > (before or 0) else ""
            who = "" if self._request.target is None else f" for {self._request.target}"
            skipped = counted(self._at - (before or 0), "offset")
            yield (
                f"{source}: {before} -> {self._at} goes forward: what is not applied yet of "
                f"{skipped} is skipped{who}{gone}"
            )
            return
        for move in marks:
            if move.before is not None and move.before >= log.high:
                yield (
                    f"{source}: {move.target} holds changes up to {move.before}, but the log ends "
                    f"at {log.high}: what was cut off can't be applied again"
                )
        if marks and source.topic in self._around.compacted and self._around.changelogs:
            yield (
                f"{source}: the topic {self._around.compacted[source.topic]}: messages that later "
                "ones replaced are gone, and a changelog loses its rows of them"
            )

    def _held(self) -> dict[str, int]:
        """The marks that the request's targets have of this partition."""
        return {
            name: mark.hwms[self._source]
            for name, mark in sorted(self._recorded.targets.items())
            if self._source in mark.hwms and self._request.target in (None, name)
        }


def _formats_left(recorded: Snapshot, moves: Iterable[PartitionMove]) -> Mapping[str, str]:
    """The topics' formats; that of a topic that is read from another place is detected again."""
    moved = {move.source.topic for move in moves if move.before != move.after}
    return {topic: name for topic, name in recorded.formats.items() if topic not in moved}


def _moved(
    recorded: Snapshot,
    logs: Mapping[TopicPartition, Watermarks],
    partitions: Iterable[PartitionMove],
    marks: Iterable[MarkMove],
) -> Snapshot:
    """The snapshot with the new frontiers, and with the marks' moves still to be done."""
    states = {
        m.source: moved_state(recorded, m.source, m.after, logs[m.source].high) for m in partitions
    }
    moves: dict[str, MarkMoves] = {}
    for mark in marks:
        mine = moves.get(mark.target, MarkMoves())
        to = {mark.source: mark.after}
        if mark.before is not None and mark.after > mark.before:
            moves[mark.target] = replace(mine, lift={**mine.lift, **to})
        else:
            moves[mark.target] = replace(mine, lower={**mine.lower, **to})
    targets = {
        name: replace(recorded.targets.get(name, TargetMark(None, {})), moves=mine)
        for name, mine in moves.items()
    }
    return replace(
        recorded,
        partitions={**recorded.partitions, **states},
        targets={**recorded.targets, **targets},
    )
