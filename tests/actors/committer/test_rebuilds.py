"""The committer says when a table is rebuilt, and when it can't be whole any more."""

from __future__ import annotations

from dataclasses import replace

from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from changes.model.model import TargetName
from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered, Rebuild
from offsets.snapshot import PartitionState, Snapshot, SpillMark

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
T, NEW = "lake.s.t", "lake.s.t__rebuild_1"
SUPERVISOR = Address("p", "supervisor")


def committer(*, caught_up_at: int | None = None) -> CommitterLogic:
    """Both partitions are read from 0, and were at 10 when the rebuild was asked for."""
    recorded = Snapshot(
        "p",
        "g",
        partitions={source: PartitionState(0, None, reset=True) for source in (ONE, TWO)},
        rebuilds={T: Rebuild(NEW, {ONE: 9, TWO: 9})},
    )
    until = None if caught_up_at is None else {ONE: caught_up_at, TWO: caught_up_at}
    logic = CommitterLogic("p", recorded, 5.0, until)
    for number, source in enumerate((ONE, TWO), 1):
        logic.handle(msg.EpochStarted(number, source, 0, 20, 10), 0.0)
    return logic


def told(effects: list[object]) -> list[object]:
    return [e.message for e in effects if isinstance(e, fx.Tell) and e.to == SUPERVISOR]


def moved(logic: CommitterLogic, source: TopicPartition, offset: int) -> list[object]:
    epoch = 1 if source == ONE else 2
    return told(logic.handle(msg.Dispatched(epoch, source, offset, {}), 1.0))


def test_it_is_told_once_when_all_has_come_by() -> None:
    """Of all its partitions."""
    logic = committer()
    assert not moved(logic, ONE, 10)
    assert not moved(logic, TWO, 9)
    assert moved(logic, TWO, 10) == [msg.Rebuilt("p", T)]
    assert not moved(logic, TWO, 11)


def test_what_is_not_written_yet_holds_it_back() -> None:
    """The frontier stays below a message that is on its way."""
    logic = committer()
    moved(logic, TWO, 10)
    logic.handle(msg.Dispatched(1, ONE, 10, {NEW: (4, 9)}), 1.0)
    assert not moved(logic, ONE, 15)
    assert msg.Rebuilt("p", T) in told(logic.handle(written(9), 2.0))


def written(through: int) -> msg.Written:
    return msg.Written(TargetName.parse(NEW), {ONE: 1}, {ONE: through}, None)


def test_a_spill_of_the_new_table_holds_it_back() -> None:
    """Its messages count as done and are not in the table."""
    logic = committer()
    logic.handle(msg.SpillListed(NEW, SpillMark(1, {ONE: (3, 3)})), 1.0)
    assert not moved(logic, ONE, 10) + moved(logic, TWO, 10)
    assert told(logic.handle(msg.SpillListed(NEW, None), 2.0)) == [msg.Rebuilt("p", T)]


def test_it_comes_before_the_word_that_all_is_caught_up() -> None:
    """Else a run that ends there would end before the new table has its name."""
    logic = committer(caught_up_at=10)
    moved(logic, ONE, 10)
    assert moved(logic, TWO, 10) == [msg.Rebuilt("p", T), msg.CaughtUp("p")]


def test_what_another_member_read_is_missing() -> None:
    """The new table would have a hole; nothing may take it for whole."""
    logic = committer()
    moved(logic, ONE, 4)
    logic.handle(msg.Release((ONE,)), 1.0)
    logic.handle(msg.SaveFailed("disk full"), 1.0)
    (failed,) = told(logic.handle(msg.EpochStarted(3, ONE, 7, 20, 7), 2.0))
    assert isinstance(failed, msg.PipelineFailed)
    assert "t:0 is read from 7 on and was left at 4" in failed.reason
    assert f"binlogd tables rebuild {T} --cancel" in failed.reason


def test_reading_again_from_the_frontier_leaves_no_hole() -> None:
    """As after a write that was given up."""
    logic = committer()
    moved(logic, ONE, 4)
    assert not told(logic.handle(msg.EpochStarted(3, ONE, 4, 20, 4), 2.0))


def test_what_breaks_a_load_is_saved_at_once_and_never_complete() -> None:
    """A start must know before its messages count as done."""
    load = Load("load-1", {ONE: 0}, ends={ONE: 5})
    recorded = Snapshot(
        "p",
        "g",
        partitions={ONE: PartitionState(0)},
        rebuilds={T: Rebuild(NEW, {}, load=load)},
    )
    logic = CommitterLogic("p", recorded, 5.0, None)
    logic.handle(msg.EpochStarted(1, ONE, 0, 20, 10), 0.0)
    why = LoadHindered("a statement", {ONE: 3})
    (saved,) = [
        effect.snapshot
        for effect in logic.handle(msg.LoadBroken(NEW, why), 1.0)
        if isinstance(effect, fx.SaveSnapshot)
    ]
    assert saved.rebuilds[T].load == replace(load, broken=why)
    assert not moved(logic, ONE, 10)


def test_a_gap_in_any_partition_that_a_load_reads_is_told() -> None:
    """Though its old table held nothing of it."""
    load = Load("load-1", {ONE: 0, TWO: 0})
    recorded = Snapshot(
        "p",
        "g",
        partitions={source: PartitionState(0) for source in (ONE, TWO)},
        rebuilds={T: Rebuild(NEW, {}, load=load)},
    )
    logic = CommitterLogic("p", recorded, 5.0, None)
    (failed,) = told(logic.handle(msg.EpochStarted(1, TWO, 7, 20, 10), 0.0))
    assert isinstance(failed, msg.PipelineFailed)
