"""From a pass of sums to the keys that differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.aside import Aside
from changes.sql.spark.checksums import CELLS, Grid, Interval
from daemon.operations.verify import compare, groups
from databases.base.port import Key, Texts
from tests.daemon.operations.verify.memory import MemorySide


def found(source: MemorySide, target: MemorySide, intervals: list[Interval]) -> list[Key]:
    """All keys that seem to differ, as the job finds them."""
    digits = compare.digits_of(intervals, len(source.table))
    aside = Aside(lambda: source.sums(intervals, digits))
    first = compare.first_pass(aside, target, intervals, digits)
    left, keys = list(first.left), list[Key]()
    while left:
        left, more = compare.advanced(source, target, left)
        keys += more
    return sorted(keys)


def cut_at(bounds: Iterable[int]) -> list[Interval]:
    bounds = sorted(bounds)
    if not bounds:
        return [Interval()]
    return groups.intervals_of(Grid.between(bounds[0], bounds[-1]), bounds)


def rows(number: int) -> dict[Key, Texts]:
    return {(str(n),): (str(n), f"row {n}") for n in range(number)}


def test_equal_tables_have_no_key_read() -> None:
    """Sums alone are asked for."""
    source, target = MemorySide(rows(1000)), MemorySide(rows(1000))
    assert found(source, target, cut_at(range(100, 1000, 100))) == []
    assert source.hashes_read == target.hashes_read == 0


def test_a_difference_costs_only_its_group() -> None:
    """Of ten intervals one differs, and of that a few groups' hashes are read."""
    source, target = MemorySide(rows(20_000)), MemorySide(rows(20_000))
    target.table[("777",)] = ("777", "Row 777")
    intervals = cut_at(range(2000, 20_000, 2000))
    assert found(source, target, intervals) == [("777",)]
    assert source.hashes_read < 200


def test_few_keys_of_many_groups_are_looked_at_together() -> None:
    """Each look waits for the log and for the target."""
    source, target = MemorySide(rows(40_000)), MemorySide(rows(40_000))
    changed = [(str(n),) for n in range(0, 40_000, 100)]
    target.table |= {key: (*key, "other") for key in changed}
    left = [groups.Differing(Interval(), 3, tuple(f"{n:03x}" for n in range(4096)), 40_000)]
    pieces = [piece for part in left for piece in groups.cut(part)]
    assert len(pieces) == 4
    rest, keys = compare.advanced(source, target, pieces)
    assert (rest, sorted(keys)) == ([], sorted(changed))


def test_keys_without_an_order_are_parted_by_their_hashes() -> None:
    """One interval holds the whole table."""
    source, target = MemorySide(rows(20_000)), MemorySide(rows(20_000))
    del target.table[("777",)]
    target.table[("extra",)] = ("extra", None)
    assert found(source, target, [Interval()]) == [("777",), ("extra",)]
    assert source.hashes_read < 20_000


@given(
    st.dictionaries(st.integers(-300, 300), st.sampled_from("abc"), max_size=200),
    st.dictionaries(st.integers(-300, 300), st.sampled_from("abc"), max_size=200),
    st.lists(st.integers(-300, 300), max_size=20),
)
def test_all_keys_that_differ_are_found_and_no_other(
    here: dict[int, str], there: dict[int, str], bounds: list[int]
) -> None:
    """Whatever the intervals are."""

    def side(table: dict[int, str]) -> MemorySide:
        return MemorySide({(str(n),): (str(n), text) for n, text in table.items()})

    unlike = sorted((str(n),) for n in here.keys() | there.keys() if here.get(n) != there.get(n))
    assert found(side(here), side(there), cut_at(bounds)) == unlike
    assert found(side(here), side(there), [Interval()]) == unlike


LONG = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(LONG, min_size=1, max_size=3000), LONG)
def test_intervals_hold_every_number_once(bounds: list[int], number: int) -> None:
    """They are few enough for one query, the first and the last are open, and their bounds are
    edges of cells: what is in a cell is in one interval."""
    grid = Grid.between(min(bounds), max(bounds))
    intervals = groups.intervals_of(grid, bounds)
    assert len(intervals) <= CELLS + 2
    assert intervals[0].low is None
    assert intervals[-1].high is None
    assert all(one.high == two.low for one, two in itertools.pairwise(intervals))
    edges = [interval.high for interval in intervals[:-1]]
    assert edges == sorted(edges)
    assert all(edge < 1 << 63 for edge in edges)
    assert all(grid.edge(grid.cell(edge)) == edge for edge in edges)
    cell = grid.cell(number)
    assert cell == 0 or number > grid.edge(cell - 1)
    assert cell > CELLS or number <= grid.edge(cell)
    assert not 0 < cell <= CELLS or number - grid.low - 1 < 1 << 63


def test_bounds_close_together_are_kept_as_they_are() -> None:
    """A table of few numbers has cells of one number."""
    assert cut_at([10, 20, 2000]) == [
        Interval(None, 10), Interval(10, 20), Interval(20, 2000), Interval(2000, None)
    ]  # fmt: skip


def test_a_sample_is_a_part_of_the_intervals() -> None:
    """At least one of them, in order, and the same for the same job."""
    intervals = cut_at(range(100))
    some = groups.sampled(intervals, 0.1, "verify-1")
    assert some == groups.sampled(intervals, 0.1, "verify-1")
    assert some == [interval for interval in intervals if interval in some]
    assert len(some) == 10
    assert len(groups.sampled(intervals, 0.0001, "x")) == 1
