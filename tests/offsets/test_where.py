"""What the record says of a message; the simulation holds it against the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from offsets.position import TopicPartition
from offsets.rebuild import Rebuild
from offsets.snapshot import MarkMoves, PartitionState, Snapshot, SpillMark, TargetMark
from offsets.where import Reached, targets_of, whereabouts

S = TopicPartition("shop", 0)
T = "lake.s.t"
STATE = PartitionState(50, 48, begin=10)
LOST = "not on the table yet: its spill was given up"


def told(
    offset: int, mark: TargetMark | None = None, letters: dict[str, str] | None = None, **more: Any
) -> tuple[Reached, bool, str]:
    state, spill = more.pop("state", STATE), more.pop("spill", None)
    recorded = Snapshot(
        "p", "g", partitions={} if state is None else {S: state},
        targets={} if mark is None else {T: mark}, spills={} if spill is None else {T: spill},
    )  # fmt: skip
    found = whereabouts(recorded, S, offset, T, letters or {})
    return found.stage, found.lacks, found.line


@pytest.mark.parametrize(
    ("offset", "more", "stage", "lacks", "line"),
    [
        (20, {"mark": TargetMark("1", {S: 20})}, Reached.APPLIED, False, "mark is 20"),
        (21, {"mark": TargetMark("1", {S: 20})}, Reached.PASSED_OVER, False, "nothing of it"),
        (60, {"mark": TargetMark("1", {S: 20})}, Reached.WAITING, True, "position is 50"),
        (60, {}, Reached.WAITING, True, "high-water mark none"),
        (20, {"state": None}, Reached.WAITING, True, "nothing is recorded"),
        (9, {"mark": TargetMark("1", {S: 20})}, Reached.BEFORE_BEGIN, True, "forward to, 10"),
        # A reset that is still to be done in the table counts already.
        (20, {"mark": TargetMark("1", {S: 20}, MarkMoves(lower={S: 5})),
              "state": PartitionState(6, reset=True, reread=70, begin=0)},
         Reached.WAITING, True, "since a reset"),
        # What was given up is behind the mark, or below the position, and not in the table.
        (20, {"mark": TargetMark("1", {S: 20}, rows_may_differ=LOST)},
         Reached.APPLIED, True, "may differ from the source's: not on the table yet"),
        (21, {"mark": TargetMark("1", {S: 20}, rows_may_differ=LOST)},
         Reached.PASSED_OVER, True, "its spill was given up"),
        (30, {"spill": SpillMark(9, {S: (25, 40)})}, Reached.SPILLED, True, "in quarantine"),
        (30, {"spill": SpillMark(9, {S: (25, 40)}, away=True)}, Reached.SPILLED, True, "is away"),
        # Nothing was ever written there: whether its route was there then is not known.
        (24, {"spill": SpillMark(9, {S: (25, 40)})}, Reached.PASSED_OVER, True, "route may be"),
        (24, {}, Reached.PASSED_OVER, True, "route may be younger"),
        (30, {"mark": TargetMark("1", {S: 40}), "letters": {T: "open"}},
         Reached.DEAD_LETTER, True, "is open"),
        (30, {"letters": {"": "discarded"}}, Reached.DEAD_LETTER, True, "is discarded"),
        (30, {"letters": {T: "replayed"}}, Reached.DEAD_LETTER, False, "is replayed"),
        (30, {"letters": {T: "replayed"}, "mark": TargetMark("1", {S: 40}, rows_may_differ=LOST)},
         Reached.DEAD_LETTER, True, "given up"),
    ],
)  # fmt: skip
def test_where_a_message_is(
    offset: int, more: dict[str, Any], stage: Reached, lacks: bool, line: str
) -> None:
    """Never applied, nor well, where the target may lack it."""
    found = told(offset, **more)
    assert found[:2] == (stage, lacks)
    assert line in found[2]


def test_a_table_that_is_filled_instead_is_named_too() -> None:
    recorded = Snapshot("p", "g", rebuilds={T: Rebuild("lake.s.t__rebuild_1", {})})
    assert targets_of(recorded, [T, "lake.s.u"]) == [T, "lake.s.t__rebuild_1", "lake.s.u"]
    given_up = replace(recorded, rebuilds={T: Rebuild("lake.s.t__rebuild_1", {}, cancelled=True)})
    assert targets_of(given_up, [T]) == [T]
