"""Which places of the log a target is known to be between. Pure but for what it asks.

A target's marks, and the pipeline's record, say below which place it holds everything, and from
which on it holds nothing. Two targets are compared exactly by that, wherever each stands: a row
that differs is wrong where the log has no change of it in the whole stretch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from actors.contract.writes import TargetState
from daemon.operations.engine.port import Control
from daemon.operations.verify.between.pairs import FilledTarget
from daemon.operations.verify.columns import NotComparable
from daemon.operations.verify.in_flight import Ends
from daemon.operations.verify.in_flight_here import not_following
from offsets.position import NO_OFFSET, TopicPartition, is_job_lane, still_open
from offsets.snapshot import Snapshot


class Places(Protocol):
    """Where one target stands. One thread's."""

    def holds(self) -> Ends:
        """Below these places everything is in the target. Asked for before rows are read."""
        ...

    def lacks(self) -> Ends:
        """From these places on nothing is in it. Asked for after rows were read."""
        ...

    def why_behind(self) -> str | None:
        """Why it does not follow its log now; None: it does."""
        ...


def held(
    recorded: Snapshot, target: str, state: TargetState, sources: Iterable[TopicPartition]
) -> Ends:
    """By the target's marks, and by what the pipeline has recorded as done: what is spilled counts
    as done there, and is not in the target."""
    spill = recorded.spills.get(target)
    found = {}
    for source in sources:
        done = recorded.partitions[source].frontier
        if spill is not None and source in spill.lanes:
            done = min(done, spill.lanes[source][0])
        found[source] = max(done, state.hwms.get(source, NO_OFFSET) + 1)
    return found


def lacking(recorded: Snapshot, state: TargetState, sources: Iterable[TopicPartition]) -> Ends:
    """By the target's marks. A target whose log is read again may hold more than they say, and one
    may hold a part of the message above them."""
    steps = still_open(state.steps, state.hwms)
    found = {}
    for source in sources:
        end = state.hwms.get(source, NO_OFFSET) + 1
        if source in steps:
            end = max(end, steps[source].offset + 1)
        found[source] = max(end, recorded.partitions[source].reread or 0)
    return found


def sources_of(
    filled: Collection[tuple[FilledTarget, Snapshot, TargetState]],
) -> tuple[TopicPartition, ...]:
    """The partitions that may hold the table. Raises NotComparable where a side does not read one
    of them."""
    topics = {lane.topic for _, _, state in filled for lane in state.hwms if not is_job_lane(lane)}
    found = {
        source
        for _, recorded, state in filled
        for source in (*recorded.partitions, *state.hwms)
        if (not topics or source.topic in topics) and not is_job_lane(source)
    }
    for one, recorded, _ in filled:
        if unread := sorted(found - recorded.partitions.keys()):
            raise NotComparable(
                f"{one.target}: pipeline {one.pipeline} does not read {unread[0]} here: only two"
                " targets of one log can be compared"
            )
    return tuple(sorted(found))


class LivePlaces:
    """``Places`` of a target that goes on."""

    def __init__(
        self, control: Control, one: FilledTarget, sources: Iterable[TopicPartition]
    ) -> None:
        self._control = control
        self._one = one
        self._sources = tuple(sources)

    def holds(self) -> Ends:
        """See ``Places``. The record first: the marks are later, and never go back."""
        recorded = self._control.snapshot(self._one.pipeline)
        state = self._state(recorded)
        return held(recorded, str(self._one.target), state, self._sources)

    def lacks(self) -> Ends:
        """See ``Places``. The record first: a reset is recorded before the marks are lowered."""
        recorded = self._control.snapshot(self._one.pipeline)
        return lacking(recorded, self._state(recorded), self._sources)

    def why_behind(self) -> str | None:
        """See ``Places``."""
        recorded = self._control.snapshot(self._one.pipeline)
        return not_following(recorded, str(self._one.target))

    def _state(self, recorded: Snapshot) -> TargetState:
        """Where the sink has lost its marks, they are those that are recorded, or it refuses."""
        target = self._one.target
        sink = self._control.sinks()[target.sink]
        return sink.open(target, recorded.targets.get(str(target)))


class CutPlaces:
    """``Places`` of a target as it is in a cut."""

    def __init__(self, places: Ends) -> None:
        self._places = places

    def holds(self) -> Ends:
        """See ``Places``."""
        return self._places

    def lacks(self) -> Ends:
        """See ``Places``."""
        return self._places

    def why_behind(self) -> str | None:
        """See ``Places``."""
        return None


def lowest(one: Ends, other: Ends) -> dict[TopicPartition, int]:
    """The earlier of two places in each partition. What a side does not know begins at 0."""
    return {source: min(one.get(source, 0), other.get(source, 0)) for source in {*one, *other}}


def highest(one: Ends, other: Ends) -> dict[TopicPartition, int]:
    """The later of two places in each partition."""
    return {source: max(one.get(source, 0), other.get(source, 0)) for source in {*one, *other}}


def short_of(ends: Ends, holds: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """The partitions of which a target does not hold all below these places."""
    return [source for source, end in sorted(ends.items()) if holds.get(source, end) < end]
