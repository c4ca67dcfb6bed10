"""Carrying out a recorded reset: tried again where it may help, refused where not."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from actors.contract.writes import StagedBatch, TargetState
from changes.model.errors import LostRace, TargetRefused
from changes.model.model import TargetName
from daemon.operations.reset.mark_moves import MarksNotMoved, has_moves, move_marks
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves, Snapshot, TargetMark

S = TopicPartition("shop", 0)
MOVES = MarkMoves(lower={S: 3})
TWO = Snapshot(
    "p", "g", {}, {},
    {"lake.s.a": TargetMark("1", {S: 9}, MOVES), "lake.s.b": TargetMark("2", {S: 9})},
)  # fmt: skip


class Sink:
    """Does what the test says, and keeps what it was asked."""

    def __init__(self, act: Callable[[int], TargetState]) -> None:
        self.act = act
        self.asked: list[tuple[TargetName, MarkMoves]] = []

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        self.asked.append((target, moves))
        return self.act(len(self.asked))

    def open(self, target: TargetName) -> TargetState:
        raise AssertionError("nothing is opened")

    def write(self, batch: StagedBatch) -> TargetState:
        raise AssertionError("nothing is written")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited."""
    found: list[float] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            found.append(timeout)
            return False

    monkeypatch.setattr(threading, "Event", Event)
    return found


def test_targets_with_moves_are_moved_and_the_others_left() -> None:
    """The snapshot then says what the target shows."""
    sink = Sink(lambda _: TargetState(hwms={S: 3}, version="7"))
    done = move_marks(TWO, {"lake": sink})
    assert sink.asked == [(TargetName("lake", "s", "a"), MOVES)]
    assert done.targets == {
        "lake.s.a": TargetMark("7", {S: 3}),
        "lake.s.b": TWO.targets["lake.s.b"],
    }
    assert (has_moves(TWO), has_moves(done)) == (True, False)


def test_a_lost_race_is_run_again(waits: list[float]) -> None:
    """Somebody's maintenance published first."""

    def race(attempt: int) -> TargetState:
        if attempt < 3:
            raise LostRace("main moved")
        return TargetState()

    sink = Sink(race)
    assert not has_moves(move_marks(TWO, {"lake": sink}))
    assert waits == [0.5, 1.0]


def test_a_sink_that_stays_away_is_told(waits: list[float]) -> None:
    """After a while, and the record stays."""

    def away(attempt: int) -> TargetState:
        raise LostRace("the catalog takes no commit")

    with pytest.raises(MarksNotMoved, match="not carried out yet: the catalog takes no commit"):
        move_marks(TWO, {"lake": Sink(away)})
    assert sum(waits) < 20


def test_a_target_that_refuses_is_not_tried_again(waits: list[float]) -> None:
    """Nothing would come of it."""

    def refuse(attempt: int) -> TargetState:
        raise TargetRefused("lake.s.a: not ours")

    with pytest.raises(MarksNotMoved, match=r"can't be carried out: lake\.s\.a: not ours"):
        move_marks(TWO, {"lake": Sink(refuse)})
    assert waits == []


def test_a_sink_that_is_configured_no_more_is_named() -> None:
    """Reading on would drop what the reset wants applied."""
    with pytest.raises(MarksNotMoved, match=r"lake\.s\.a: a reset of it is recorded, and no sink"):
        move_marks(TWO, {})
