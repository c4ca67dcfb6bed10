"""Keys in flight: no row that is on its way is told as different, and no row that is different is
missed, whatever changes between any two questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.operations.verify.in_flight import Ends, NotPassed, looked
from databases.base.port import Key, Texts
from offsets.position import TopicPartition

LANE = TopicPartition("shop", 0)


@dataclass
class World:
    """A source, its log, and a target that lags. Before each answer some of them move on.

    ``lost``: keys whose changes never get into the log. ``delay``: commits that are in the log and
    not visible yet.
    """

    random: Random
    keys: list[Key]
    rates: Mapping[Key, float]
    values: int = 2
    lost: frozenset[Key] = frozenset()
    frozen: bool = False
    rows: dict[Key, Texts] = field(default_factory=dict)
    stored: dict[Key, Texts] = field(default_factory=dict)
    log: list[tuple[int, Key, Texts | None]] = field(default_factory=list)
    applied: int = 0
    now: int = 0
    rests: int = 0

    def move(self) -> None:
        """Some changes, and some progress of the target."""
        for _ in range(self.random.randrange(6)):
            self.now += 1
            for key in self.keys:
                if self.random.random() < self.rates.get(key, 0.0):
                    self.change(key, self.random.randrange(self.values + 1))
        self.apply(self.random.randrange(4))

    def change(self, key: Key, value: int) -> None:
        """A row gets a value, or goes where that is 0."""
        row: Texts | None = (*key, str(value)) if value else None
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row
        if key not in self.lost:
            self.log.append((self.now, key, row))

    def apply(self, number: int) -> None:
        """The target takes so many messages."""
        for _, key, row in self.log[self.applied : self.applied + number]:
            if key == ("beat",):
                continue
            if row is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = row
        self.applied = min(len(self.log), self.applied + number)

    # --- looks.Lookout

    def source(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        self.move()
        return {key: self.rows[key] for key in keys if key in self.rows}

    def target(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        self.move()
        return {key: self.stored[key] for key in keys if key in self.stored}

    def begins(self) -> Ends:
        self.move()
        return {LANE: len(self.log)}

    def rest(self) -> None:
        self.rests += 1
        self.move()

    def passed(self, begins: Ends) -> Ends:
        moment = self.now
        for _ in range(1000):
            self.move()
            self.now += 1
            self.log.append((self.now, ("beat",), None))
            for offset in range(begins[LANE], len(self.log)):
                if self.log[offset][0] > moment:
                    return {LANE: offset}
        raise AssertionError("the log stands")

    def held(self, ends: Ends) -> None:
        if self.frozen:
            raise NotPassed("it is in quarantine")
        while self.applied < ends[LANE]:
            self.move()
            self.apply(1)

    def changed(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        self.move()
        return {key for _, key, _ in self.log[begins[LANE] : ends[LANE]]} & set(keys)


def world(seed: int, busy: float, **members: object) -> World:
    keys = [(str(n),) for n in range(8)]
    random = Random(seed)
    rates = {key: busy if n % 2 else 0.0 for n, key in enumerate(keys)}
    made = World(random, keys, rates, **members)  # type: ignore[arg-type]
    for key in keys:
        made.change(key, 1)
    made.apply(len(made.log))
    return made


@given(st.integers(0, 1_000_000), st.sampled_from((0.05, 0.3, 0.9)))
def test_no_row_is_told_as_different_that_is_on_its_way(seed: int, busy: float) -> None:
    """Rows that change, go and come back between any two questions, also to the value that they
    had: a look before and one after would not tell."""
    now = world(seed, busy)
    for _ in range(5):
        now.move()
    assert looked(now.keys, now).differing == []


@given(st.integers(0, 1_000_000), st.sampled_from((0.05, 0.9)))
def test_what_differs_is_found_beside_rows_that_change(seed: int, busy: float) -> None:
    """A calm row is decided at the first look: missing, extra, or another value."""
    now = world(seed, busy)
    missing, extra, stale = ("0",), ("2",), ("4",)
    del now.stored[missing]
    del now.rows[extra]
    now.stored[stale] = ("4", "9")
    seen = looked(now.keys, now)
    assert {found.key for found in seen.differing} == {missing, extra, stale}
    shown = {found.key: (found.source, found.target) for found in seen.differing}
    assert shown[missing] == (("0", "1"), None)
    assert shown[extra] == (None, ("2", "1"))
    assert shown[stale] == (("4", "1"), ("4", "9"))


def test_a_row_that_changes_all_the_time_is_told_as_undecided() -> None:
    """Unlike at each look, and a change of it in the log each time."""
    now = world(3, 1.0, values=40)
    seen = looked([("1",), ("3",)], now)
    assert not seen.differing
    assert set(seen.undecided.values()) <= {"it changes all the time"}
    assert now.rests <= 4


def test_what_was_on_its_way_is_looked_at_again_without_a_rest() -> None:
    """It is there by then: a margin's wait would decide nothing more."""

    class Late(World):
        """A row changes once, between the first look and the target's."""

        def held(self, ends: Ends) -> None:
            if len(self.log) < 10:
                self.change(("1",), 2)
            super().held(ends)
            self.apply(len(self.log))

    now = Late(Random(1), [("1",)], {})
    now.change(("1",), 1)
    seen = looked(now.keys, now)
    assert (seen.differing, seen.undecided, now.rests) == ([], {}, 0)


def test_a_row_whose_changes_are_lost_differs_once_it_is_calm() -> None:
    """What never gets into the log is not on its way."""
    now = world(1, 0.0, lost=frozenset([("1",)]))
    now.change(("1",), 2)
    (found,) = looked(now.keys, now).differing
    assert found.key == ("1",)


def test_a_target_that_does_not_follow_leaves_its_rows_undecided() -> None:
    """With the reason."""
    now = world(1, 0.0, frozen=True)
    del now.stored[("0",)]
    seen = looked([("0",)], now)
    assert seen.undecided == {("0",): "it is in quarantine"}
    assert not seen.differing


def test_nothing_is_asked_for_no_keys() -> None:
    """Nor after all are decided."""
    now = world(1, 0.0)
    assert looked([], now).differing == []
    assert now.rests == 0


@pytest.mark.parametrize("kind", ["visible late"])
def test_a_commit_that_is_in_the_log_before_a_read_sees_it(kind: str) -> None:
    """The stretch of the log begins a margin earlier: the row is in flight, not different."""

    class Late(World):
        def begins(self) -> Ends:
            return {LANE: max(0, len(self.log) - 3)}

    now = Late(Random(1), [("1",)], {})
    now.change(("1",), 1)
    now.apply(1)
    # The commit is in the log, and applied; the source still shows the row of before.
    now.log.append((now.now, ("1",), ("1", "2")))
    now.apply(1)
    seen = looked([("1",)], now, looks=1)
    assert not seen.differing
    assert seen.undecided
