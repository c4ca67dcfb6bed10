"""What closes next, under which version, and who is still told: for any order of what happens."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from offsets import gate_record
from offsets.gate_record import (
    SUCCESS,
    GateFinding,
    GateRecord,
    NotClosed,
    begin_of,
    check_closed,
    closed,
    complete_through,
    due,
    iso,
    new_record,
    only_by,
    pending,
    reopened,
    taken,
    watched,
)

MINUTE = 60_000
WAYS = (SUCCESS, "topic", "webhook")
FOUND = GateFinding(("lake.s.t",), {"shop:0": 9})


def after(*begins: int, ways: tuple[str, ...] = ()) -> GateRecord:
    """A gate of minutes that has closed these, from the first one on."""
    record = new_record("g", MINUTE, begins[0])
    for begin in begins:
        record = closed(record, begin, 7 * MINUTE, FOUND, ways)
    return record


@given(strategies.integers(0, 2**42), strategies.sampled_from([60, 900, 3600, 86_400, 604_800]))
def test_a_moment_is_in_its_partition(moment_ms: int, every_s: int) -> None:
    """Bounds are multiples of the length since 1970."""
    begin = begin_of(moment_ms, every_s * 1000)
    assert begin % (every_s * 1000) == 0
    assert begin <= moment_ms < begin + every_s * 1000


@given(strategies.integers(0, 10**6), strategies.integers(0, 10**6))
def test_nothing_is_due_before_it_has_ended_here(now_ms: int, margin_ms: int) -> None:
    """However far the source's clock is."""
    record = new_record("g", MINUTE, 0)
    assert due(record, now_ms, margin_ms) == ([0] if now_ms >= MINUTE + margin_ms else [])


def test_a_table_is_complete_through_what_is_closed_of_it() -> None:
    """Up to the first partition that is open, and of tables that were looked at."""
    assert complete_through(new_record("g", MINUTE, MINUTE), "lake.s.t") is None
    record = after(MINUTE, 2 * MINUTE, 3 * MINUTE)
    assert complete_through(record, "lake.s.t") == 4 * MINUTE
    assert complete_through(record, "lake.s.later") is None
    record = reopened(record, 2 * MINUTE, 0, ["lake.s.t"], ())
    assert complete_through(record, "lake.s.t") == 2 * MINUTE
    assert complete_through(closed(record, 2 * MINUTE, 0, FOUND, ()), "lake.s.t") == 4 * MINUTE
    assert complete_through(reopened(record, MINUTE, 0, ["lake.s.t"], ()), "lake.s.t") is None


class Gate(RuleBasedStateMachine):
    """A gate, its receivers, and a simple model: the versions of each partition."""

    def __init__(self) -> None:
        super().__init__()
        self.record, self.now = new_record("g", MINUTE, 0), 0
        self.versions: Counter[int] = Counter()
        self.open: set[int] = set()
        self.got: dict[str, list[str]] = {way: [] for way in WAYS}
        self.said: list[str] = []

    @rule(minutes=strategies.integers(1, 5))
    def time_passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE

    @precondition(lambda self: due(self.record, self.now, 0))
    @rule(data=strategies.data())
    def one_closes(self, data: strategies.DataObject) -> None:
        begin = data.draw(strategies.sampled_from(due(self.record, self.now, 0)))
        self.record = closed(self.record, begin, self.now, FOUND, WAYS)
        self.versions[begin] += 1
        self.open.discard(begin)
        self.said.append(f"g:{iso(begin)}:{self.versions[begin]}")

    @rule(minute=strategies.integers(-1, 12))
    def one_is_reopened(self, minute: int) -> None:
        begin = minute * MINUTE
        if begin in self.open or not self.versions[begin]:
            before = self.record
            if begin in self.open:
                self.record = reopened(self.record, begin, self.now, ["lake.s.t"], WAYS)
            else:
                with pytest.raises(NotClosed):
                    reopened(self.record, begin, self.now, ["lake.s.t"], WAYS)
            assert self.record == before
            return
        self.record = reopened(self.record, begin, self.now, ["lake.s.t"], WAYS)
        self.open.add(begin)
        self.said.append(f"g:{iso(begin)}:{self.versions[begin]}:reopened")

    @rule(
        way=strategies.sampled_from(WAYS),
        most=strategies.integers(1, 3),
        lost=strategies.booleans(),
    )
    def some_are_told(self, way: str, most: int, lost: bool) -> None:
        """``lost``: killed before it is recorded that they were taken."""
        ids = [each.id for each in pending(self.record, way)[:most]]
        self.got[way] += ids
        if not lost:
            self.record = taken(self.record, way, ids)

    @invariant()
    def the_sequence_has_no_gap(self) -> None:
        done = sorted(self.versions)
        assert [begin for begin in done if self.versions[begin]] == [
            *range(0, self.record.next_ms, MINUTE)
        ]
        assert {each.begin_ms for each in self.record.closed if each.is_open} == self.open

    @invariant()
    def each_way_gets_all_in_order(self) -> None:
        """Each at least once; of the marks, the last word about each partition."""
        for way in WAYS[1:]:
            waits = [each.id for each in pending(self.record, way)]
            assert list(dict.fromkeys(self.got[way] + waits)) == self.said
        last = {}
        for each in self.got[SUCCESS] + [each.id for each in pending(self.record, SUCCESS)]:
            last["Z".join(each.split("Z")[:1])] = each
        wanted = {"Z".join(each.split("Z")[:1]): each for each in self.said}
        assert last == wanted


TestGate = Gate.TestCase


def test_what_is_no_partition_is_not_reopened() -> None:
    record = after(MINUTE, 2 * MINUTE)
    for begin, why in (
        (MINUTE + 1, "no partition begins at 1970-01-01T00:01:00.001Z: one does at 1970"),
        (3 * MINUTE, "has not closed yet: the next one is 1970-01-01T00:03:00Z"),
        (0, "never closed: the first one is 1970-01-01T00:01:00Z"),
    ):
        with pytest.raises(NotClosed, match=why):
            check_closed(record, begin)


def test_a_reopened_one_says_what_it_had() -> None:
    record = after(0, ways=("topic",))
    record = reopened(record, 0, 9 * MINUTE, ["lake.s.t"], ("topic",))
    first, second = record.notices
    assert (first.document["type"], second.document["type"]) == ("closed", "reopened")
    assert second.id == f"{first.id}:reopened"
    assert second.document["version"] == 1
    assert due(record, 0, 0) == [0]


def test_old_partitions_are_forgotten_one_by_one_but_no_version_comes_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate_record, "KEPT", 3)
    record = after(*(n * MINUTE for n in range(3)))
    record = closed(reopened(record, 0, 1, ["t"], ()), 0, 1, FOUND, ())
    record = reopened(record, MINUTE, 1, ["t"], ())
    for n in range(3, 9):
        record = closed(record, n * MINUTE, 1, FOUND, ())
    assert [each.begin_ms // MINUTE for each in record.closed] == [1, 6, 7, 8]
    again = closed(reopened(record, 0, 1, ["t"], ("topic",)), 0, 1, FOUND, ("topic",))
    assert [each.id for each in again.notices] == [
        "g:1970-01-01T00:00:00Z:2:reopened", "g:1970-01-01T00:00:00Z:3",
    ]  # fmt: skip


def test_ways_that_are_gone_wait_for_nobody() -> None:
    record = after(0, MINUTE, ways=("topic", "webhook"))
    left = only_by(taken(record, "topic", [record.notices[0].id]), ("topic",))
    assert [each.id for each in left.notices] == [record.notices[1].id]
    assert only_by(record, ()).notices == ()


def test_late_changes_are_looked_for_where_counts_were_and_not_for_ever() -> None:
    record = new_record("g", MINUTE, 0)
    for n, made in enumerate(({"c": 5}, None, {"c": 0}, {"c": 5})):
        record = closed(record, n * MINUTE, n * MINUTE, GateFinding(("t",), made=made), ())
    record = reopened(record, 3 * MINUTE, 0, ["t"], ())
    assert [each.begin_ms for each in watched(record, 5 * MINUTE, 5 * MINUTE)] == [0, 2 * MINUTE]
    assert [each.begin_ms for each in watched(record, 6 * MINUTE, 5 * MINUTE)] == [2 * MINUTE]
