"""Between which places of the log a target is known to be, and the looks that go by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from actors.contract.writes import TargetState
from changes.model.model import Mode, TableName, TargetName
from changes.routes.routing import TargetRoute
from daemon.config.pipeline_parts import VerifySection
from daemon.operations.verify.between.lookout import BetweenLookout
from daemon.operations.verify.between.pairs import FilledTarget
from daemon.operations.verify.between.places import (
    CutPlaces,
    held,
    highest,
    lacking,
    lowest,
    sources_of,
)
from daemon.operations.verify.between.unstorable import Nulls
from daemon.operations.verify.columns import NotComparable
from daemon.operations.verify.in_flight import Ends
from databases.base.port import Key, Texts
from offsets.position import EntryStep, TopicPartition, job_lane
from offsets.snapshot import PartitionState, Snapshot, SpillMark

ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)
TARGET = TargetName("lake", "s", "t")


def recorded(frontier: int, spill: tuple[int, int] | None = None, **more: Any) -> Snapshot:
    spills = {} if spill is None else {str(TARGET): SpillMark(1, {ONE: spill})}
    return Snapshot("p", "g", partitions={ONE: PartitionState(frontier, **more)}, spills=spills)


@pytest.mark.parametrize(
    ("snapshot", "mark", "holds"),
    [
        (recorded(50), None, 50),
        (recorded(50), 20, 50),
        (recorded(50), 60, 61),
        (recorded(50, (30, 49)), 20, 30),
        (recorded(50, (30, 49)), 35, 36),
    ],
)
def test_what_a_target_holds_surely(snapshot: Snapshot, mark: int | None, holds: int) -> None:
    """What is spilled counts as done, and is not in it; its own marks may be further."""
    state = TargetState(hwms={} if mark is None else {ONE: mark})
    assert held(snapshot, str(TARGET), state, [ONE]) == {ONE: holds}


@pytest.mark.parametrize(
    ("snapshot", "state", "lacks"),
    [
        (recorded(50), TargetState(hwms={ONE: 20}), 21),
        (recorded(50), TargetState(), 0),
        (recorded(5, reread=90), TargetState(hwms={ONE: 20}), 90),
        (recorded(50), TargetState(hwms={ONE: 20}, steps={ONE: EntryStep(24, 3)}), 25),
    ],
)
def test_what_a_target_lacks_surely(snapshot: Snapshot, state: TargetState, lacks: int) -> None:
    """It may hold a part of a message above its mark, and more where its log is read again."""
    assert lacking(snapshot, state, [ONE]) == {ONE: lacks}


def test_places_of_two_targets() -> None:
    """A partition that one of them does not know begins at 0."""
    assert lowest({ONE: 5, TWO: 7}, {ONE: 6}) == {ONE: 5, TWO: 0}
    assert highest({ONE: 5, TWO: 7}, {ONE: 6}) == {ONE: 6, TWO: 7}


def of(pipeline: str) -> FilledTarget:
    route = TargetRoute(TARGET, Mode.UPSERT, None)
    return FilledTarget(pipeline, TARGET, TableName("s", "t"), route)


def test_both_must_read_what_fills_them() -> None:
    """Else no log says what has changed between the two. A job's own lane is no log."""
    state = TargetState(hwms={ONE: 4, job_lane("x"): 1})
    both = [(of("p"), recorded(5), state), (of("q"), recorded(5), TargetState())]
    assert sources_of(both) == (ONE,)
    unread = Snapshot("q", "g", partitions={TopicPartition("other", 0): PartitionState(5)})
    with pytest.raises(NotComparable, match="pipeline q does not read shop:0 here"):
        sources_of([both[0], (of("q"), unread, TargetState())])


class Rows:
    """``Side`` whose rows are given, one after another."""

    def __init__(self, *shown: Mapping[str, str]) -> None:
        self.shown = list(shown)

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        now = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        return {(key,): (key, text) for key, text in now.items() if (key,) in keys}


class Moving:
    """``Places`` that are further at each question. ``why``: it does not follow any more."""

    def __init__(self, *holds: int, lacks: int = 0, why: str | None = None) -> None:
        self.at, self.end, self.why = list(holds), lacks, why

    def holds(self) -> Ends:
        return {ONE: self.at.pop(0) if len(self.at) > 1 else self.at[0]}

    def lacks(self) -> Ends:
        return {ONE: max(self.at[0], self.end)}

    def why_behind(self) -> str | None:
        return self.why


class Log:
    """``LogChanges``: by key the offset of its change. ``asked``: between which places."""

    def __init__(self, **changes: int) -> None:
        self.changes, self.asked = changes, list[tuple[int, int]]()

    def among(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        self.asked.append((begins[ONE], ends[ONE]))
        at = {key: self.changes.get(key[0], -1) for key in keys}
        return [key for key, offset in at.items() if begins[ONE] <= offset < ends[ONE]]


class Idle:
    """``Control``: nobody asks anything of the job, and no wait takes time."""

    asked = ""

    def wait(self, seconds: float) -> bool:
        return False


def lookout(first: Any, second: Any, places: tuple[Any, Any], log: Log) -> BetweenLookout:
    settings = VerifySection(wait_s=0.05)
    nulls = Nulls((None, None), (None, None))
    control: Any = Idle()
    return BetweenLookout(
        control, (first, second), places, ("lake.s.t", "pg.s.t"), log,  # type: ignore[arg-type]
        nulls, settings, lambda line: None,
    )  # fmt: skip


def test_a_row_that_nobody_changed_between_the_two_is_told_at_once() -> None:
    """Though the one stands a hundred messages behind, and gets no further."""
    log = Log(b=150)
    places = Moving(100, lacks=100, why="it is paused"), Moving(200, lacks=200)
    seen = lookout(Rows({"a": "1", "b": "1"}), Rows({"a": "2", "b": "2"}), places, log).looked(
        [("a",), ("b",)]
    )
    assert [found.key for found in seen.differing] == [("a",)]
    assert log.asked == [(100, 200)]
    assert list(seen.undecided) == [("b",)]
    assert "lake.s.t does not follow: it is paused" in seen.undecided["b",]


def test_a_row_on_its_way_is_looked_at_again_once_both_have_it() -> None:
    places = Moving(100, 150, 200, lacks=100), Moving(200, lacks=200)
    seen = lookout(Rows({"a": "1"}, {"a": "2"}), Rows({"a": "2"}), places, Log(a=150)).looked(
        [("a",)]
    )
    assert (seen.differing, seen.undecided) == ([], {})


def test_equal_rows_that_changed_between_the_two_are_looked_at_once_both_have_the_change() -> None:
    """The first side has lost it."""
    places = Moving(200, lacks=200), Moving(100, 150, 200, lacks=100)
    seen = lookout(Rows({"a": "1"}), Rows({"a": "2"}), places, Log(a=150))
    assert [found.key for found in seen.looked_when_held([("a",)]).differing] == [("a",)]


def test_a_side_that_comes_no_further_is_named_with_the_place() -> None:
    places = Moving(100, lacks=100), Moving(200, lacks=200)
    seen = lookout(Rows({"a": "1"}), Rows({"a": "2"}), places, Log(a=150)).looked([("a",)])
    assert (
        "waits until lake.s.t has what the other has: shop:0: not within" in (seen.undecided["a",])
    )


def test_at_a_cut_a_row_that_changed_since_is_counted_at_one_look() -> None:
    log = Log(a=150)
    places = CutPlaces({ONE: 100}), Moving(200, lacks=200)
    seen = lookout(Rows({"a": "1", "b": "1"}), Rows({"a": "2", "b": "2"}), places, log)
    found = seen.looked_at_cut([("a",), ("b",)], {ONE: 100})
    assert found.moved == [("a",)]
    assert [each.key for each in found.differing] == [("b",)]
