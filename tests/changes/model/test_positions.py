"""Source positions: text in the source's order, and net changes of several lanes by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import FROM, FROM_PREFIX, OP, POSITION
from changes.model.positions import position_text, with_ends
from changes.routes.fold import concat_changes, fold

numbers = st.integers(0, 2**64 - 1)


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.tuples(*[numbers] * n)] * 2)))
def test_texts_sort_like_the_numbers(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Whatever the number of digits: binlog files beyond 999999, LSNs of 64 bits."""
    one, other = pair
    assert (position_text(*one) < position_text(*other)) == (one < other)
    assert (position_text(*one) == position_text(*other)) == (one == other)


def test_a_number_that_is_no_position_is_refused() -> None:
    """Below 0 there is no order of digits."""
    with pytest.raises(ValueError, match="-1 is no part of a position"):
        position_text(-1)


@dataclass(frozen=True)
class Change:
    """One change of the source: a key, what became of it, and when."""

    at: int
    op: str
    key: int
    value: int | None


def table_of(changes: Sequence[Change]) -> pa.Table:
    ops = pa.array([change.op for change in changes], pa.string())
    texts = pa.array([position_text(change.at) for change in changes], pa.string())
    return pa.table(
        {
            OP: ops,
            "id": pa.array([change.key for change in changes], pa.int64()),
            "v": pa.array([change.value for change in changes], pa.int64()),
            POSITION: with_ends(texts, ops),
        }
    )


@dataclass
class Sink:
    """The rule of a target with positions, as plain as can be."""

    rows: dict[int, tuple[str, int | None]]
    tombstones: dict[int, str]

    def write(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            key, position = row["id"], row[POSITION]
            newest = max(self.rows.get(key, ("", None))[0], self.tombstones.get(key, ""))
            if position < newest:
                continue
            if row[OP] == "D":
                self.rows.pop(key, None)
                self.tombstones[key] = position
            else:
                self.rows[key] = (position, row["v"])

    def values(self) -> dict[int, int | None]:
        return {key: value for key, (_, value) in self.rows.items()}


def test_an_update_older_than_a_delete_does_not_bring_the_row_back() -> None:
    """Lane 2 lags: its insert comes after lane 1's delete of the key."""
    sink = Sink({}, {})
    sink.write(fold(table_of([Change(5, "D", 1, None)]), ["id"]))
    sink.write(fold(table_of([Change(3, "U", 1, 7)]), ["id"]))
    assert sink.values() == {}


def test_the_highest_position_wins_within_a_batch() -> None:
    """Not the last row."""
    folded = fold(table_of([Change(12, "U", 1, 12), Change(9, "U", 1, 9)]), ["id"])
    assert folded["v"].to_pylist() == [12]


def test_a_row_stays_where_both_halves_of_swapped_keys_meet() -> None:
    """1 -> 2 and 2 -> 1 in one transaction: each key ends once and begins once, at one position."""
    first = [Change(5, "D", 1, None), Change(5, "U", 2, 10)]
    second = [Change(5, "D", 2, None), Change(5, "U", 1, 20)]
    folded = fold(table_of([*first, *second]), ["id"])
    assert dict(zip(folded["id"].to_pylist(), folded["v"].to_pylist(), strict=True)) == {
        1: 20,
        2: 10,
    }


def test_where_a_whole_row_came_from_is_dropped() -> None:
    """The old row may be newer or older than the move; a whole row needs nothing of it."""
    table = table_of([Change(5, "D", 1, None), Change(5, "U", 2, 10)])
    table = table.append_column(FROM, pa.array([None, 0], pa.int64()))
    table = table.append_column(FROM_PREFIX + "id", pa.array([None, 1], pa.int64()))
    assert fold(table, ["id"]).column_names == [OP, "id", "v", POSITION]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Change], list[list[Change]]]:
    """A history and its changes as batches: split over lanes, interleaved, with replays.

    A lane of its own is in order; a change may be in two lanes (re-sent into another one).
    """
    history = [
        Change(at, *draw(st.tuples(st.sampled_from("UUD"), st.integers(0, 9), st.just(at))))
        for at in range(1, draw(st.integers(1, 40)) + 1)
    ]
    lanes: list[list[Change]] = [[], [], []]
    for change in history:
        for lane in draw(st.sets(st.integers(0, 2), min_size=1, max_size=2)):
            lanes[lane].append(change)
    places = [0, 0, 0]
    batches: list[list[Change]] = []
    while any(places[lane] < len(lanes[lane]) for lane in range(3)):
        batch: list[Change] = []
        for lane in draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)):
            start = places[lane] - draw(st.integers(0, min(2, places[lane])))
            end = min(places[lane] + draw(st.integers(1, 12)), len(lanes[lane]))
            batch += lanes[lane][start:end]
            places[lane] = max(places[lane], end)
        if batch:
            batches.append(batch)
    return history, batches


@settings(max_examples=400)
@given(deliveries(), st.integers(1, 3))
def test_lanes_in_any_order_end_as_the_source_has_it(
    delivery: tuple[list[Change], list[list[Change]]], pieces: int
) -> None:
    """Split over three lanes, delivered in any order with replays, folded whole or in pieces.

    Each of the ten keys of an example is a history of its own: thousands in all.
    """
    history, batches = delivery
    truth: dict[int, int | None] = {}
    for change in history:
        if change.op == "D":
            truth.pop(change.key, None)
        else:
            truth[change.key] = change.value
    sink = Sink({}, {})
    for batch in batches:
        cut = max(1, len(batch) // pieces)
        parts = [fold(table_of(batch[at : at + cut]), ["id"]) for at in range(0, len(batch), cut)]
        sink.write(fold(concat_changes(parts), ["id"]))
    assert sink.values() == truth
