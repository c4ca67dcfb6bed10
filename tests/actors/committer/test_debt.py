"""Who makes the frontier wait is named: in time, once, and never wrongly."""

from __future__ import annotations

from typing import Any

from actors.committer.debt import DebtBounds, FrontierDebt, HeldFrontier
from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.runtime.mailbox import Tick
from changes.model.model import TargetName
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot

P0 = TopicPartition("t", 0)
BOUNDS = DebtBounds(messages=1000, seconds=60.0)


def events(out: list[object]) -> list[tuple[str, dict[str, Any]]]:
    return [(log.event, dict(log.fields)) for log in out if isinstance(log, fx.Log)]


def named(out: list[object]) -> list[tuple[str, str]]:
    return [(event, fields.get("target", "")) for event, fields in events(out)]


def test_a_debt_of_many_messages_is_named_at_once() -> None:
    """However short the time: the log may not keep them for long."""
    debt = FrontierDebt(BOUNDS)
    assert debt.look([HeldFrontier(P0, "slow", 5, 1004)], 0.0) == []
    ((event, fields),) = events(debt.look([HeldFrontier(P0, "slow", 5, 1005)], 1.0))
    assert event == "frontier_held"
    assert fields == {
        "source": "t:0", "target": "slow", "offset": 5, "messages": 1000, "seconds": 1.0,
    }  # fmt: skip


def test_a_frontier_that_stands_still_is_named_though_little_came() -> None:
    """A quiet source does not hide a write that hangs."""
    debt = FrontierDebt(BOUNDS)
    assert debt.look([HeldFrontier(P0, "slow", 5, 6)], 0.0) == []
    assert debt.look([HeldFrontier(P0, "slow", 5, 7)], 59.0) == []
    assert named(debt.look([HeldFrontier(P0, "slow", 5, 8)], 60.0)) == [("frontier_held", "slow")]


def test_a_frontier_that_moves_is_no_debt() -> None:
    """Each look finds another message at the frontier: the target is at work."""
    debt = FrontierDebt(BOUNDS)
    for second in range(0, 600, 30):
        assert debt.look([HeldFrontier(P0, "busy", second, second + 10)], float(second)) == []


def test_a_culprit_is_named_once_while_the_debt_lasts() -> None:
    """Not at every look, and not again when another held the frontier in between."""
    debt = FrontierDebt(BOUNDS)
    told = [
        named(debt.look([HeldFrontier(P0, who, frontier, 5000)], float(frontier)))
        for frontier, who in enumerate(["a", "a", "b", "a", "b"])
    ]
    assert told == [[("frontier_held", "a")], [], [("frontier_held", "b")], [], []]


def test_the_end_of_a_debt_is_told_and_a_new_one_is_named_again() -> None:
    """Also where the partition holds nothing any more, or was taken away."""
    debt = FrontierDebt(BOUNDS)
    debt.look([HeldFrontier(P0, "a", 0, 5000)], 0.0)
    assert events(debt.look([], 1.0)) == [
        ("frontier_free", {"source": "t:0", "were_held_by": ["a"]})
    ]
    assert debt.look([], 2.0) == []
    assert named(debt.look([HeldFrontier(P0, "a", 0, 5000)], 3.0)) == [("frontier_held", "a")]


def test_the_committer_names_the_target_at_the_frontier() -> None:
    """Of several that are pending the lowest is the culprit; what it holds up is counted."""
    logic = CommitterLogic("p", Snapshot("p", "g"), 5.0, None, debt=DebtBounds(100, 60.0))
    logic.handle(msg.EpochStarted(1, P0, 0, 0, None), 0.0)
    lanes = {"lake.d.slow": (10, 20), "lake.d.fast": (0, 199)}
    logic.handle(msg.Dispatched(1, P0, 200, lanes), 0.0)
    fast = TargetName("lake", "d", "fast")
    logic.handle(msg.Written(fast, {P0: 1}, {P0: 199}, None), 1.0)
    held = [entry for entry in events(logic.handle(Tick(), 5.0)) if entry[0] == "frontier_held"]
    ((_, fields),) = held
    assert (fields["target"], fields["offset"], fields["messages"]) == ("lake.d.slow", 10, 190)
