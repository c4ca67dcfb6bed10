"""Counts in a target's marks, and what the table of counts says of a lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from offsets.counts import (
    MOST_MINUTES,
    NO_MINUTE,
    CountRow,
    HeldCounts,
    LaneCounts,
    Minutes,
    RowCounts,
    counts_after,
    held,
)
from offsets.fence import Marks
from offsets.position import EntryStep, TopicPartition

A, B = TopicPartition("shop", 0), TopicPartition("shop", 1)
ONE = RowCounts(1)


@dataclass(frozen=True)
class Write:
    """What counts see of one."""

    batch_id: str
    counts: Mapping[TopicPartition, Minutes] | None
    folded: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)


def test_marks_keep_counts_as_text() -> None:
    """Beside all else that they say of a lane."""
    counts = {A: LaneCounts("w1", -1, 5, {7: RowCounts(1, 2, 3)}), B: LaneCounts("w2", 3, 3, {})}
    marks = Marks({A: 5, B: 3}, {A: "g"}, {B: EntryStep(4, 1)}, counts)
    assert Marks.parse(marks.text()) == marks
    assert Marks.parse('{"shop:0": 5, "shop:1": [3, "g"], "t:0": [1, "g", [2, 1, 0]]}').counts == {}


def test_writes_add_up_until_they_are_folded() -> None:
    """A fold that came too late for a write leaves the rest to the next run."""
    held_ = counts_after({}, Write("w1", {A: {7: ONE}}), {A: (-1, 5)})
    assert held_ == {A: LaneCounts("w1", -1, 5, {7: ONE})}
    first = held_[A]
    held_ = counts_after(held_, Write("w2", {A: {7: ONE, 8: ONE}}), {A: (5, 9)})
    assert held_ == {A: LaneCounts("w1", -1, 9, {7: RowCounts(2), 8: ONE})}
    third = Write("w3", {A: {8: RowCounts(0, 1)}}, {A: first})
    held_ = counts_after(held_, third, {A: (9, 12)})
    assert held_ == {A: LaneCounts("w3", 5, 12, {7: ONE, 8: RowCounts(1, 1)})}
    again = Write("w4", {}, {A: first})
    assert counts_after(held_, again, {A: (12, 13)})[A].minutes == held_[A].minutes


@pytest.mark.parametrize("moved", [(3, 9), (7, 9)])
def test_a_mark_that_somebody_moved_ends_a_run(moved: tuple[int, int]) -> None:
    """What is counted then is counted from there on."""
    held_ = {A: LaneCounts("w1", -1, 5, {7: ONE})}
    found = counts_after(held_, Write("w2", {A: {8: ONE}}), {A: moved})
    assert found == {A: LaneCounts("w2", moved[0], 9, {8: ONE})}


def test_changes_that_nobody_counts_end_a_run() -> None:
    """As of a daemon whose configuration has no counts; a write that moves no mark has none."""
    held_ = {A: LaneCounts("w1", -1, 5, {7: ONE}), B: LaneCounts("w1", -1, 2, {7: ONE})}
    assert counts_after(held_, Write("w2", None), {A: (5, 9)}) == {B: held_[B]}
    assert counts_after(held_, Write("w2", None), {A: (5, 5)}) == held_


def test_a_day_of_minutes_is_kept_apart() -> None:
    """The oldest are of no minute from then on, also where they were folded before."""
    old = dict.fromkeys(range(1, MOST_MINUTES + 1), ONE)
    first = LaneCounts("w1", -1, 5, old)
    late = {A: {MOST_MINUTES + 1: ONE}}
    (found,) = counts_after({A: first}, Write("w2", late), {A: (5, 6)}).values()
    assert len(found.minutes) == MOST_MINUTES
    assert found.minutes[NO_MINUTE] == RowCounts(2)
    (left,) = counts_after({A: found}, Write("w3", {}, {A: first}), {A: (6, 7)}).values()
    assert left.minutes == {MOST_MINUTES + 1: ONE}


def row(made: int, since: str, after: int, through: int, minute: int, count: int) -> CountRow:
    minutes = {minute: RowCounts(count)}
    return CountRow("lake.s.t", A, made, LaneCounts(since, after, through, minutes))


def test_a_run_that_was_written_twice_counts_as_far_as_the_next_one_begins() -> None:
    """The write that left it out of the marks had not seen the second time."""
    twice = [row(1, "w1", -1, 5, 7, 2), row(2, "w1", -1, 8, 7, 3), row(2, "w1", -1, 8, 8, 1)]
    assert said(held(twice)) == ({7: RowCounts(3), 8: ONE}, ((-1, 8),), set())
    later = [*twice, row(3, "w9", 5, 12, 8, 4)]
    assert said(held(later)) == ({7: RowCounts(2), 8: RowCounts(4)}, ((-1, 5), (5, 12)), set())


def test_what_was_read_again_counts_as_it_was_counted_last() -> None:
    """As behind ``offsets reset``. A run that is covered in part makes its minutes doubtful."""
    rows = [row(1, "w1", -1, 5, 7, 5), row(2, "w2", 5, 9, 8, 4)]
    part = held([*rows, row(3, "w3", -1, 7, 7, 6)])
    assert said(part) == ({7: RowCounts(6)}, ((-1, 7),), {8})
    whole = held([*rows, row(3, "w3", -1, 7, 7, 6), row(4, "w4", 7, 10, 8, 3)])
    assert said(whole) == ({7: RowCounts(6), 8: RowCounts(3)}, ((-1, 7), (7, 10)), set())


def test_what_a_reset_led_amid_is_read_from_where_it_began() -> None:
    """Nothing else makes it whole: the run that was counted anew begins behind some of it."""
    rows = [row(1, "w1", -1, 5, 7, 5), row(2, "w2", 5, 9, 8, 4), row(3, "w3", 7, 99, 8, 60)]
    assert (held(rows).doubtful, held(rows).whole_from) == ({8}, 6)
    again = held([*rows, row(4, "w4", 5, 99, 8, 62)])
    assert (said(again), again.whole_from) == (
        ({7: RowCounts(5), 8: RowCounts(62)}, ((-1, 5), (5, 99)), set()), None
    )  # fmt: skip


def said(found: HeldCounts) -> tuple[object, ...]:
    return found.minutes(), found.ranges, {*found.doubtful}


def test_offsets_that_nobody_counted_are_known() -> None:
    """A run is behind its first offset, and through its last one."""
    found = held([row(1, "w1", 1, 5, 7, 5), row(2, "w2", 8, 9, 8, 1)])
    assert [offset for offset in range(12) if found.has(offset)] == [2, 3, 4, 5, 9]
    assert found.minutes(0, 8) == {7: RowCounts(5)}
    assert found.minutes(5, 9) == {7: RowCounts(5), 8: ONE}
    assert found.minutes(6, 8) == {}
