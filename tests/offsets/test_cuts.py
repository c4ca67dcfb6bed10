"""Cuts: their numbers, their tags, and which of a table's tags the kept cuts need."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets.cuts import (
    DAY_S,
    HOUR_S,
    WITHDRAWN,
    Boundary,
    Cut,
    KeepCuts,
    kept,
    needed,
    next_number,
    number_of,
    tag_of,
    why_withdrawn,
    withdrawn_by,
)
from offsets.position import TopicPartition

KEEP = KeepCuts(recent_s=HOUR_S, hourly_days=7)
NOON = 20_000 * DAY_S + 12 * HOUR_S

KEEPS = st.builds(
    KeepCuts,
    recent_s=st.one_of(st.integers(0, 3 * HOUR_S), st.floats(0, 3 * HOUR_S)),
    hourly_days=st.integers(0, 2),
)
TIMES = st.one_of(
    st.integers(NOON - 3 * DAY_S, NOON),
    st.builds(lambda h, s: NOON - h * HOUR_S + s, st.integers(0, 60), st.integers(-2, 2)),
)
CUTS = st.sets(TIMES, min_size=1, max_size=40)


def kept_cuts(cuts: set[int], now: int, keep: KeepCuts) -> set[int]:
    """Said plainly: each second, and each full hour, looked at by itself."""
    found = {max(cuts)} | {cut for cut in cuts if cut > now - keep.recent_s}
    for hour in range(0, now + 1, HOUR_S)[-keep.hourly_days * 24 - 2 :]:
        if hour > now - keep.hourly_days * DAY_S and (before := [c for c in cuts if c < hour]):
            found.add(max(before))
    return found


def tags_of(cuts: set[int], tags: list[int]) -> set[int]:
    """Each cut's tag in a table: the newest one that is not newer than the cut."""
    places = (bisect_right(tags, cut) - 1 for cut in cuts)
    return {tags[place] for place in places if place >= 0}


@pytest.mark.parametrize(
    ("last", "now", "number"), [(None, 7.9, 7), (5, 7.9, 7), (7, 7.9, 8), (100, 7.9, 101)]
)
def test_numbers_are_seconds_and_grow(last: int | None, now: float, number: int) -> None:
    """Also where two come in one second, and where the clock was set back."""
    assert next_number(last, now) == number


def test_a_tag_says_its_number() -> None:
    assert (tag_of(NOON), number_of(tag_of(NOON))) == (f"cut-{NOON}", NOON)


@pytest.mark.parametrize(
    "tag",
    ["cut-", "cut-x", "cut-07", "cut--7", "cut-7 ", "cut-7\n", "cut-\u0667", "v7", f"cut-{9**999}"],
)  # fmt: skip
def test_somebody_elses_tag_has_none(tag: str) -> None:
    assert number_of(tag) is None


@given(CUTS, TIMES, KEEPS)
def test_a_cut_is_kept_as_the_plain_rule_says(cuts: set[int], now: int, keep: KeepCuts) -> None:
    now = max(now, max(cuts))
    assert {cut for cut in cuts if kept(cut, cuts, now, keep)} == kept_cuts(cuts, now, keep)


@given(CUTS, st.sets(st.integers(0, 39)), TIMES, KEEPS)
def test_a_kept_cut_has_its_tag(cuts: set[int], own: set[int], now: int, keep: KeepCuts) -> None:
    """Whatever cuts were made beside the table's own, and when."""
    ordered = sorted(cuts)
    tags = [cut for place, cut in enumerate(ordered) if place in own]
    now = max(now, ordered[-1])
    assert tags_of(kept_cuts(cuts, now, keep), tags) <= needed(tags, now, keep)


@given(st.sets(st.integers(NOON - 3 * HOUR_S, NOON), max_size=12), KEEPS)
def test_no_tag_stays_that_none_may_need(own: set[int], keep: KeepCuts) -> None:
    """With a cut in each second a tag is needed by one of them, or is one of the newest two."""
    cuts, tags = set(range(NOON - 3 * HOUR_S, NOON + 1)), sorted(own)
    expected = tags_of(kept_cuts(cuts, NOON, keep), tags) | set(tags[-2:])
    assert needed(tags, NOON, keep) == expected


@given(CUTS, CUTS, TIMES, KEEPS)
def test_what_is_not_needed_never_is_later(
    tags: set[int], more: set[int], now: int, keep: KeepCuts
) -> None:
    """So that a tag may be removed as soon as it is not needed."""
    now = max(now, max(tags))
    later = {now + number - NOON + 3 * DAY_S for number in more}
    after = needed(tags | later, max(later), keep)
    assert after & tags <= needed(tags, now, keep)


def test_a_crash_before_the_row_leaves_the_last_visible_cut() -> None:
    """Its tag is the newest but one, however old; the one before goes."""
    old = [NOON - 30 * DAY_S, NOON - 20 * DAY_S, NOON]
    assert needed(old, NOON, KEEP) == set(old[1:])


P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLACES = st.dictionaries(st.sampled_from([P0, P1]), st.integers(0, 5), min_size=1)


def row(number: int, positions: dict[TopicPartition, int], boundary: Boundary = "time") -> Cut:
    return Cut(number, "p", boundary, positions, None, None, {}, {})


@given(st.lists(PLACES, max_size=8), PLACES)
def test_a_cut_is_withdrawn_by_what_came_after_it_and_goes_below(
    rows: list[dict[TopicPartition, int]], positions: dict[TopicPartition, int]
) -> None:
    """In any of its partitions; what was withdrawn before it was made says nothing of it."""
    withdrawals = [row(number, at, WITHDRAWN) for number, at in enumerate(rows)]
    middle = len(rows) // 2
    found = withdrawn_by(row(middle, positions), withdrawals[::-1])
    after = [
        each.number
        for each in withdrawals[middle + 1 :]
        for source, at in each.positions.items()
        if source in positions and positions[source] > at
    ]
    assert (None if found is None else found.number) == min(after, default=None)


def test_why_it_is_withdrawn() -> None:
    by = row(1_800_000_060, {P1: 3, P0: 4}, WITHDRAWN)
    assert why_withdrawn(row(7, {P0: 5}), by) == (
        "cut 7 is withdrawn since 2027-01-15T08:01:00+00:00: an offsets reset had t:0 from offset "
        "4 on, t:1 from offset 3 on read again"
    )
