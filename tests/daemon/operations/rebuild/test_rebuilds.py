"""How rebuilds end: the tables change names, then the spill goes, then it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from actors.contract.ports import SwapTooEarly
from actors.contract.raw_messages import SpillRecord
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import Column, Mode, TableSchema, TargetName
from daemon.operations.rebuild import rebuilds
from daemon.operations.rebuild.plan import new_table, put_aside
from daemon.operations.rebuild.rebuilds import RebuildNotEnded, Rebuilds
from daemon.state.spills.file import SpillFolder
from offsets.fence import Span
from offsets.position import TopicPartition
from offsets.rebuild import FOR_GOOD, Load, Rebuild, SwapRefused
from offsets.rebuild_steps import begun, begun_load, cancelled
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark

LANE = TopicPartition("shop", 0)
OLD = TargetName("lake", "s", "t")
NEW = new_table(OLD, "1")
T = str(OLD)
SCHEMA = TableSchema((Column("id", pa.int64()),), ("id",))


class Sink:
    """Exchanges nothing; says what was asked for, and what it is told to say."""

    def __init__(self, *answers: TargetState | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Swap | TargetName] = []
        self.there: set[TargetName] | None = None
        self.removal: Exception | None = None
        self.refusal: Exception | None = None
        self.written: list[StagedBatch] = []

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        if self.there is None:
            raise SinkUnavailable("away")
        if target not in self.there:
            return TargetState()
        return TargetState(SCHEMA, Mode.UPSERT, {LANE: 2}, "v")

    def write(self, batch: StagedBatch) -> TargetState:
        if self.refusal is not None:
            raise self.refusal
        self.written.append(batch)
        return TargetState(version="w", rows_may_differ="it lacks some")

    def swap(self, swap: Swap) -> TargetState:
        self.asked.append(swap)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def remove(self, target: TargetName) -> None:
        self.asked.append(target)
        if self.removal is not None:
            raise self.removal


class World:
    """A state directory with a spill of the old table, and a sink."""

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.sink = sink
        self.folder = folder
        self.saved: list[Snapshot] = []
        self.reached = True
        records = [SpillRecord(LANE, 3, False, b"x")]
        self.spills().of(OLD).append(OLD, "refused", records)

    def spills(self) -> SpillFolder:
        return SpillFolder(self.folder, "p")

    def spilled(self) -> list[str]:
        return [str(found.target) for found in self.spills().found({})]

    def settle(self, snapshot: Snapshot) -> Snapshot:
        settled = Rebuilds(self._sinks, self.spills(), self.saved.append, self._shown)
        return settled.settle(snapshot)

    def _shown(self, target: TargetName) -> str | None:
        return "" if self.reached else None

    def _sinks(self) -> Mapping[str, Sink]:
        return {"lake": self.sink}


def filling(frontier: int = 10, keep_old: bool = False) -> Snapshot:
    """A rebuild of what was done below 10, read again up to the frontier."""
    recorded = Snapshot(
        "p",
        "g",
        partitions={LANE: PartitionState(10, 10)},
        targets={T: TargetMark("v", {LANE: 2})},
        spills={T: SpillMark(9, {LANE: (3, 3)})},
    )
    started = begun(recorded, T, str(NEW), {LANE: 0}, keep_old)
    return replace(started, partitions={LANE: PartitionState(frontier, None, True)})


STATE = TargetState(hwms={LANE: 9}, version="w")


def test_a_table_that_no_route_leads_to_does_not_get_its_new_one(tmp_path: Path) -> None:
    """What was read again since was dropped: it would take the name with a hole in it. That stops
    nothing: its job gives it up."""
    world = World(tmp_path, Sink())
    world.reached = False
    snapshot = world.settle(filling())
    why = snapshot.rebuilds[T].refused
    assert why is not None
    assert (why.for_good, "no route leads to it" in why.reason) == (True, True)
    assert (world.sink.asked, world.saved) == ([], [snapshot])
    world.settle(cancelled(snapshot, T))
    assert world.sink.asked == [NEW]


def test_a_table_that_is_not_whole_is_left_alone(tmp_path: Path) -> None:
    """The pipeline goes on filling it."""
    world = World(tmp_path, Sink())
    snapshot = filling(frontier=9)
    assert world.settle(snapshot) is snapshot
    assert (world.sink.asked, world.saved) == ([], [])


def test_a_whole_table_takes_the_name_and_the_spill_goes(tmp_path: Path) -> None:
    """What the spill held is in it."""
    world = World(tmp_path, Sink(STATE))
    done = world.settle(filling(keep_old=True))
    assert world.sink.asked == [Swap(OLD, NEW, put_aside(OLD, NEW), {LANE: 10}, keep_old=True)]
    assert done.targets[T] == TargetMark("w", {LANE: 9})
    assert (done.rebuilds, done.spills, world.spilled()) == ({}, {}, [])
    assert world.saved == [done]


def test_an_old_table_that_is_ahead_is_waited_for(tmp_path: Path) -> None:
    """It goes on filling, until that is in the new one too; the spill stays."""
    world = World(tmp_path, Sink(SwapTooEarly({LANE: 14})))
    later = world.settle(filling())
    assert later.rebuilds[T] == Rebuild(str(NEW), {LANE: 14})
    assert (world.saved, world.spilled()) == ([later], [T])


def test_what_was_given_up_is_removed(tmp_path: Path) -> None:
    """The old table's spill is still needed."""
    world = World(tmp_path, Sink())
    done = world.settle(cancelled(filling(), T))
    assert world.sink.asked == [NEW]
    assert (done.rebuilds, world.spilled()) == ({}, [T])
    assert done.partitions[LANE].frontier == 10


def test_a_sink_that_is_away_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few times; then nothing is recorded, and the next start goes on."""
    monkeypatch.setattr(rebuilds, "FIRST_WAIT_S", 0.0)
    away = SinkUnavailable("away")
    assert not World(tmp_path / "a", Sink(away, away, STATE)).settle(filling()).rebuilds
    world = World(tmp_path / "b", Sink(*[away] * rebuilds.AT_START))
    with pytest.raises(RebuildNotEnded, match=r"the rebuild of lake\.s\.t can't be ended: away"):
        world.settle(filling())
    assert (world.saved, world.spilled()) == ([], [T])


def test_a_refusal_stops_its_rebuild_alone(tmp_path: Path) -> None:
    """It is recorded with its reason, and no start tries it again: the job gives it up."""
    world = World(tmp_path, Sink(TargetRefused("can't rename")))
    done = world.settle(filling())
    assert done.rebuilds[T].refused == SwapRefused("can't rename")
    assert (world.saved, world.spilled()) == ([done], [T])
    assert world.settle(done) is done
    assert len(world.sink.asked) == 1


def test_a_sink_that_answers_is_not_waited_for(tmp_path: Path) -> None:
    """As where somebody has a lock: the pipeline goes on, and each start is an attempt."""
    away = SinkUnavailable("somebody has a lock")
    world = World(tmp_path, Sink(*[away] * FOR_GOOD))
    world.sink.there = {OLD, NEW}
    done = filling()
    for attempt in range(1, FOR_GOOD + 1):
        done = world.settle(done)
        assert done.rebuilds[T].refused == SwapRefused("somebody has a lock", attempt)
        assert not done.rebuilds[T].refused.for_good or attempt == FOR_GOOD
    assert world.settle(done) is done
    assert len(world.sink.asked) == FOR_GOOD


@pytest.mark.parametrize("there", [set(), {NEW}, {OLD}])
def test_where_the_names_are_not_known_nothing_goes_on(
    there: set[TargetName], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchange may have been made: what is written to the new table's name would be lost."""
    monkeypatch.setattr(rebuilds, "FIRST_WAIT_S", 0.0)
    world = World(tmp_path, Sink(*[SinkUnavailable("away")] * rebuilds.AT_START))
    world.sink.there = there
    with pytest.raises(RebuildNotEnded, match=r"the rebuild of lake\.s\.t can't be ended: away"):
        world.settle(filling())


def test_what_can_not_be_removed_is_left_by_name(tmp_path: Path) -> None:
    """Refused: it is told, and all goes on. Away: the next start does it, and its spill is gone."""
    world = World(tmp_path, Sink())
    world.sink.removal = TargetRefused("DROP is denied")
    with capture_logs() as said:
        done = world.settle(cancelled(filling(), T))
    assert not done.rebuilds
    assert {"event": "table_left", "table": str(NEW)}.items() <= said[0].items()
    world.sink.removal = SinkUnavailable("away")
    spilled = replace(cancelled(filling(), T), spills={str(NEW): SpillMark(9, {LANE: (3, 3)})})
    later = world.settle(spilled)
    assert later.rebuilds[T].cancelled
    assert (later.spills, later.rebuilding) == ({}, {})
    world.sink.removal = None
    assert not world.settle(later).rebuilds


def test_what_was_left_is_removed_by_the_next_rebuild(tmp_path: Path) -> None:
    """One that was given up is in the way of nothing."""
    given_up = cancelled(filling(), T)
    again = begun(given_up, T, str(OLD._replace(table="t__rebuild_2")), {LANE: 0}, False)
    assert again.rebuilds[T].leftover == (str(NEW),)
    world = World(tmp_path, Sink())
    assert world.settle(again).rebuilds[T].leftover == ()
    assert world.sink.asked == [NEW]


def load_of_lost_messages() -> Snapshot:
    """A load since 3 was given up at 30, when the log began at 20."""
    recorded = Snapshot(
        "p", "g", partitions={LANE: PartitionState(3, 3)}, targets={T: TargetMark("v", {LANE: 2})}
    )
    started = begun_load(recorded, T, str(NEW), Load("load-1", {LANE: 3}))
    later = replace(started, partitions={LANE: PartitionState(30, 30)})
    return cancelled(later, T, {LANE: 20})


@pytest.mark.parametrize("refusal", [None, TargetRefused("read only")])
def test_a_table_says_what_the_log_has_lost_meanwhile(
    tmp_path: Path, refusal: Exception | None
) -> None:
    """It is given up after the log lost some of what the old table did not get. Where the table
    can't say so, the log does."""
    world = World(tmp_path, Sink())
    world.sink.there, world.sink.refusal = {OLD, NEW}, refusal
    with capture_logs() as said:
        done = world.settle(load_of_lost_messages())
    assert (done.rebuilds, done.partitions[LANE].frontier) == ({}, 20)
    assert said[0]["event"] == "changes_lost"
    assert said[0]["lost"] == "shop:0 below 20"
    lanes = [batch.lanes for batch in world.sink.written]
    assert lanes == ([{LANE: Span(2, 19)}] if refusal is None else [])
    assert done.targets[T].rows_may_differ == ("it lacks some" if refusal is None else None)


def test_where_it_can_not_be_said_nothing_goes_on(tmp_path: Path) -> None:
    """Once more was read, its marks would hide it."""
    with pytest.raises(RebuildNotEnded):
        World(tmp_path, Sink()).settle(load_of_lost_messages())
