"""When a table is complete up to a place of its log; the simulation holds it against the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from offsets.cuts import Cut
from offsets.gate import cut_lacks, why_shut
from offsets.position import TopicPartition
from offsets.rebuild import Rebuild
from offsets.snapshot import MarkMoves, PartitionState, Snapshot, SpillMark, TargetMark

S, OTHER = TopicPartition("shop", 0), TopicPartition("shop", 1)
T = "lake.s.t"
MARK = TargetMark("7", {S: 20})
STATE = PartitionState(50, 48, begin=10)


def recorded(
    mark: TargetMark | None = MARK, state: PartitionState | None = STATE, **more: Any
) -> Snapshot:
    return Snapshot(
        "p", "g", partitions={} if state is None else {S: state},
        targets={} if mark is None else {T: mark}, **more,
    )  # fmt: skip


def test_what_is_below_the_committed_position_is_there() -> None:
    """Also where the table's own last change is long ago, or another table holds the position."""
    assert why_shut(recorded(), T, {S: 50}, []) is None
    assert why_shut(recorded(replace(MARK, hwms={S: 59})), T, {S: 60}, []) is None


@pytest.mark.parametrize(
    ("end", "more", "why"),
    [
        (51, {}, "position of shop:0 is 50, 51 is needed"),
        (60, {"mark": replace(MARK, hwms={S: 58})}, "60 is needed"),
        # A reset that is still to be done in the table counts already.
        (60, {"mark": replace(MARK, hwms={S: 70}, moves=MarkMoves(lower={S: 5}))}, "60 is needed"),
        (50, {"state": None}, "nothing of shop:0 is read yet"),
        (10, {}, "shop:0 is read from offset 10 on"),
        (50, {"mark": None}, "nothing was ever written to it"),
        (50, {"mark": replace(MARK, rows_may_differ="a type changed")}, "a type changed"),
        (50, {"spills": {T: SpillMark(9, {S: (49, 70)})}}, "it is in quarantine"),
        (50, {"spills": {T: SpillMark(9, {S: (49, 70)}, away=True)}}, "its sink is away"),
        (50, {"mark": None, "spills": {T: SpillMark(9, {S: (49, 70)})}}, "in quarantine"),
        (50, {"rebuilds": {T: Rebuild(f"{T}_new", {S: 3}, 0)}}, "it is being rebuilt"),
    ],
)  # fmt: skip
def test_a_table_that_may_lack_something_is_shut_by_name(
    end: int, more: dict[str, Any], why: str
) -> None:
    found = why_shut(recorded(**more), T, {S: end}, [])
    assert found is not None
    assert why in found


def test_what_is_beyond_the_moment_shuts_nothing() -> None:
    """A spill, and a letter, behind all that is asked for; another table's rebuild."""
    spills = {T: SpillMark(9, {S: (50, 70)})}
    assert why_shut(recorded(spills=spills), T, {S: 50}, [(S, 50)]) is None
    other = {"lake.s.u": Rebuild("lake.s.u_new", {S: 3}, 0)}
    assert why_shut(recorded(rebuilds=other), T, {S: 50}, []) is None


def test_an_open_letter_shuts_it() -> None:
    found = why_shut(recorded(), T, {S: 50}, [(S, 49), (S, 12), (S, 50)])
    assert found == "a dead letter is open: shop:0:12, and 1 more"


def test_each_partition_counts() -> None:
    assert why_shut(recorded(), T, {S: 50, OTHER: 1}, []) == "nothing of shop:1 is read yet"


def test_a_table_without_a_change_may_be_empty_where_that_is_said() -> None:
    assert why_shut(recorded(None), T, {S: 50}, [], may_be_empty=True) is None


def cut(at: int, **versions: str) -> Cut:
    named = {f"lake.s.{name}": version for name, version in versions.items()}
    return Cut(9, "p", "transaction", {S: at}, None, None, named, {"lake.s.left": "it was paused"})


def test_a_cut_has_it_where_it_was_made_behind_the_moment_or_nothing_changed_since() -> None:
    known = recorded()
    assert cut_lacks(cut(50, t="3"), known, [T], {S: 50}) is None
    assert cut_lacks(cut(40, t="7"), known, [T], {S: 50}) is None
    assert cut_lacks(cut(40, t="6"), known, [T], {S: 50}) == "cut 9 was made before"
    assert cut_lacks(cut(50), known, [T], {S: 50}) == f"cut 9 knows no {T}"
    assert cut_lacks(cut(50), recorded(None), [T], {S: 50}) is None
    assert cut_lacks(cut(50, t="3"), known, [T, "lake.s.left"], {S: 50}) == (
        "cut 9 is without lake.s.left: it was paused"
    )
