"""When the tables of a pipeline stand at a cut's boundary, and who is left out."""

from __future__ import annotations

from typing import Any

import pytest

from actors.committer.cutting import ALL, OTHERS, CutWatch
from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.writes import TargetState
from actors.runtime.mailbox import Tick
from changes.model.model import TargetName
from offsets.position import TopicPartition
from offsets.rebuild import Load, Rebuild
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
A, B, C = (f"lake.d.{name}" for name in "abc")
ASKED = msg.CutAsked({P0: 1}, {P0: 10}, "transaction", 7, "x")


def committer(**recorded: Any) -> CommitterLogic:
    """Messages 5 to 9 are on their way to two targets."""
    left = {P0: PartitionState(5)}
    here = Snapshot("p", "g", partitions=left, **recorded)
    logic = CommitterLogic("p", here, 1.0, None, cut=CutWatch("p", 3.0))
    logic.handle(msg.EpochStarted(1, P0, 5, 99, None), 0.0)
    logic.handle(msg.Dispatched(1, P0, 10, {A: (5, 9), B: (6, 6)}), 0.0)
    return logic


def written(target: str, through: int, version: str) -> msg.Written:
    state = TargetState(hwms={P0: through}, version=version)
    return msg.Written(TargetName.parse(target), {P0: 1}, {P0: through}, state)


def cut(out: list[Any]) -> list[Any]:
    told = [effect.message for effect in out if isinstance(effect, fx.Tell)]
    return [each for each in told if isinstance(each, msg.CutReached | msg.CutOver)]


def test_a_cut_is_reached_when_all_is_written_below_it() -> None:
    """With the versions of all targets, also of those that had no change."""
    logic = committer(targets={C: TargetMark("30", {P0: 2})})
    assert cut(logic.handle(ASKED, 1.0)) == []
    assert cut(logic.handle(written(B, 6, "21"), 1.1)) == []
    versions = {A: "12", B: "21", C: "30"}
    assert cut(logic.handle(written(A, 9, "12"), 1.2)) == [
        msg.CutReached(ASKED, versions, {}),
        msg.CutOver(ASKED),
    ]
    assert cut(logic.handle(Tick(), 9.0)) == []


def test_a_target_that_takes_long_is_left_out_by_name() -> None:
    """The others' cut is made, and reading goes on."""
    logic = committer()
    logic.handle(written(B, 6, "21"), 0.5)
    logic.handle(ASKED, 1.0)
    assert cut(logic.handle(Tick(), 3.9)) == []
    reached, over = cut(logic.handle(Tick(), 4.0))
    assert (reached.versions, over) == ({B: "21"}, msg.CutOver(ASKED))
    assert reached.left_out == {A: "not written within 3 s"}


def test_spills_and_what_is_beyond_are_left_out() -> None:
    """What was dropped is not named. A table may hold more than the frontier says: an earlier run
    wrote it, and was killed."""
    gone = TargetMark(None, {P0: 2})
    marks = {C: TargetMark("30", {P0: 12}), "lake.d.e": gone}
    logic = committer(targets=marks, spills={"lake.d.s": SpillMark(9, {P0: (1, 2)})})
    logic.handle(ASKED, 1.0)
    logic.handle(written(B, 6, "21"), 1.1)
    reached, _ = cut(logic.handle(written(A, 9, "12"), 1.2))
    assert reached.versions == {A: "12", B: "21"}
    assert reached.left_out == {
        C: "it is beyond the boundary since an earlier run",
        "lake.d.s": "its messages are in its spill",
    }


def test_a_table_whose_rows_may_differ_is_left_out() -> None:
    """It may lack messages that were given up, or hold what a statement changed at the source."""
    marks = {C: TargetMark("30", {P0: 2}, rows_may_differ="7 messages were discarded")}
    logic = committer(targets=marks)
    logic.handle(ASKED, 1.0)
    logic.handle(written(B, 6, "21"), 1.1)
    reached, _ = cut(logic.handle(written(A, 9, "12"), 1.2))
    assert reached.versions == {A: "12", B: "21"}
    why = "stored rows may differ from the source's: 7 messages were discarded"
    assert reached.left_out == {C: why}


@pytest.mark.parametrize(
    ("load", "why"), [(None, "it is being rebuilt"), (Load("load-1", {}), "it is being loaded")]
)
def test_a_table_that_is_being_replaced_is_left_out(load: Load | None, why: str) -> None:
    """Also where it is not there yet. What the source changes goes into the new one alone."""
    new = "lake.d.c__rebuild_1"
    rebuild = Rebuild(new, {P0: 4}, load=load)
    marks = {name: TargetMark("30", {P0: 2}) for name in (C, new)}
    for known in (marks, {}):
        logic = committer(targets=known, rebuilds={C: rebuild})
        logic.handle(ASKED, 1.0)
        logic.handle(written(B, 6, "21"), 1.1)
        reached, _ = cut(logic.handle(written(A, 9, "12"), 1.2))
        assert reached.versions == {A: "12", B: "21"}
        assert reached.left_out == {C: why}


def test_what_another_member_may_have_written_is_left_out_until_it_is_seen() -> None:
    """Here nothing is recorded of what it did; and of a machine that is lost, nothing at all."""
    marks = {name: TargetMark("30", {P0: 2}) for name in (A, C)}
    logic = CommitterLogic("p", Snapshot("p", "g", targets=marks), 1.0, None)
    logic.handle(msg.EpochStarted(1, P0, 5, 99, None, adopted=5), 0.0)
    logic.handle(msg.Dispatched(1, P0, 10, {A: (5, 9)}), 0.0)
    logic.handle(ASKED, 1.0)
    reached, _ = cut(logic.handle(written(A, 9, "31"), 1.2))
    assert reached.versions == {A: "31"}
    assert reached.left_out == {
        C: "another member has read meanwhile, and it got no change since",
        OTHERS: "they got no change since offset 5, where no record was left",
    }


def test_a_partition_that_comes_anew_ends_the_wait() -> None:
    """The fetcher has dropped what it held; of another partition's nothing is known here."""
    logic = committer()
    logic.handle(ASKED, 1.0)
    logic.handle(msg.EpochStarted(2, TopicPartition("t", 1), 0, 9, None), 1.1)
    assert len(cut(logic.handle(Tick(), 4.0))) == 2
    logic = committer()
    logic.handle(ASKED, 1.0)
    logic.handle(msg.EpochStarted(2, P0, 5, 9, None), 1.1)
    assert cut(logic.handle(Tick(), 9.0)) == []
    assert cut(logic.handle(ASKED, 9.0)) == []  # of the assignment before
    assert cut(logic.handle(Tick(), 19.0)) == []


def test_that_cuts_are_to_be_withdrawn_is_remembered_until_they_are() -> None:
    """However far the log has been read again by then; another reset may have come meanwhile."""
    left = {P0: PartitionState(5, reread=6, withdraws=5), P1: PartitionState(9, withdraws=3)}
    logic = CommitterLogic("p", Snapshot("p", "g", partitions=left), 1.0, None)
    logic.handle(msg.EpochStarted(1, P0, 5, 99, None), 0.0)
    logic.handle(msg.Dispatched(1, P0, 10, {}), 0.0)

    def remembered() -> dict[TopicPartition, int | None]:
        return {each: state.withdraws for each, state in logic.snapshot().partitions.items()}

    assert remembered() == {P0: 5, P1: 3}
    logic.handle(msg.CutsWithdrawn({P0: 5, P1: 4}), 1.0)
    assert remembered() == {P0: None, P1: 3}
    logic.handle(msg.CutsWithdrawn({P1: 3}), 1.0)
    assert remembered() == {P0: None, P1: None}


def test_no_cut_is_made_while_a_log_is_read_again() -> None:
    """A reset put the frontier back: until it is where it was, tables may hold what lies between,
    and their marks, which went back with it, do not tell."""
    left = {P0: PartitionState(5, reset=True, reread=11)}
    here = Snapshot("p", "g", partitions=left)
    logic = CommitterLogic("p", here, 1.0, None, cut=CutWatch("p", 3.0))
    logic.handle(msg.EpochStarted(1, P0, 5, 99, None), 0.0)
    logic.handle(msg.Dispatched(1, P0, 10, {A: (5, 9)}), 0.0)
    logic.handle(ASKED, 1.0)
    reached, _ = cut(logic.handle(written(A, 9, "12"), 1.2))
    assert reached.versions == {}
    assert list(reached.left_out) == [ALL]
    assert "up to offset 11" in reached.left_out[ALL]
    assert logic.snapshot().partitions[P0].reread == 11
    logic.handle(msg.Dispatched(1, P0, 11, {A: (10, 10)}), 2.0)
    later = msg.CutAsked({P0: 1}, {P0: 11}, "transaction", 7, "y")
    logic.handle(later, 2.0)
    reached, _ = cut(logic.handle(written(A, 10, "13"), 2.2))
    assert (reached.versions, reached.left_out) == ({A: "13"}, {})
    assert logic.snapshot().partitions[P0].reread is None
