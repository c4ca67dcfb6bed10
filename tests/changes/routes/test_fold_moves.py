"""Rows that move to another key while columns are missing find these, or say where they are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP
from changes.routes.fold import concat_changes, fold

ABSENT = object()
FROM_ID = FROM_PREFIX + "id"
Row = tuple[Any, ...]


def changes(*events: Row) -> pa.Table:
    """Events are (U, id, a, b), (D, id) or (M, old id, new id, a, b), a move."""
    rows: list[Row] = []
    for event in events:
        if event[0] == "D":
            rows.append(("D", event[1], None, None, None, None))
        elif event[0] == "M":
            rows.append(("D", event[1], None, None, None, None))
            rows.append(("U", *event[2:], len(rows) - 1, event[1]))
        else:
            rows.append((*event, None, None))
    names = (OP, "id", "a", "b", FROM, FROM_ID)
    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        kind = pa.string() if name == OP else pa.int64()
        columns[name] = pa.array([None if v is ABSENT else v for v in values], kind)
        if name in "ab":
            columns[HAS_PREFIX + name] = pa.array([v is not ABSENT for v in values], pa.bool_())
    return pa.table(columns)


def applied(stored: dict[Any, dict[str, Any]], table: pa.Table) -> dict[Any, dict[str, Any]]:
    """What a target holds after the rows were applied one by one, moves by the row they name."""
    states = [copy.deepcopy(stored)]
    for row in table.to_pylist():
        state = copy.deepcopy(states[-1])
        if row[OP] == "D":
            state.pop(row["id"], None)
        else:
            moved = row.get(FROM) is not None
            origin = states[row[FROM]].get(row[FROM_ID]) if moved else state.get(row["id"])
            target = dict(origin or {"a": None, "b": None})
            given_ = {n: row[n] for n in ("a", "b") if n in row and row.get(HAS_PREFIX + n, True)}
            state[row["id"]] = target | given_
        states.append(state)
    return states[-1]


def written(stored: dict[Any, dict[str, Any]], table: pa.Table) -> dict[Any, dict[str, Any]]:
    """What a target holds after a folded table was written at once: it reads the state before."""
    result = copy.deepcopy(stored)
    for row in table.to_pylist():
        result.pop(row["id"], None)
    for row in table.to_pylist():
        if row[OP] == "U":
            assert row.get(FROM) in (0, None)
            origin = row["id"] if row.get(FROM) is None else row[FROM_ID]
            target = dict(stored.get(origin) or {"a": None, "b": None})
            given_ = {n: row[n] for n in ("a", "b") if n in row and row.get(HAS_PREFIX + n, True)}
            result[row["id"]] = target | given_
    return result


def only(table: pa.Table, key: int) -> dict[str, Any]:
    (row,) = [row for row in table.to_pylist() if row["id"] == key]
    return row


def test_the_batch_tells() -> None:
    """What the old key's rows in the batch carried goes along; the rest is to be had there."""
    row = only(fold(changes(("U", 1, 5, ABSENT), ("M", 1, 2, ABSENT, ABSENT)), ["id"]), 2)
    assert (row["a"], row[HAS_PREFIX + "b"], row[FROM], row[FROM_ID]) == (5, False, 0, 1)


def test_the_new_key_s_earlier_row_has_no_part() -> None:
    """A row that moves to a key takes nothing from the row which that key had before."""
    events = [("U", 2, 7, 7), ("D", 2), ("M", 1, 2, ABSENT, 3)]
    row = only(fold(changes(*events), ["id"]), 2)
    assert (row[HAS_PREFIX + "a"], row["b"], row[FROM_ID]) == (False, 3, 1)


def test_a_chain_names_the_first_key() -> None:
    """A row that moved twice is to be had where it stood before the batch."""
    events = [("M", 1, 2, ABSENT, ABSENT), ("M", 2, 3, 9, ABSENT)]
    table = fold(changes(*events), ["id"])
    assert (only(table, 3)["a"], only(table, 3)[FROM_ID]) == (9, 1)
    assert [only(table, key)[OP] for key in (1, 2)] == ["D", "D"]


def test_there_and_back() -> None:
    """A row that moved away and back is an ordinary partial row."""
    table = fold(changes(("M", 1, 2, ABSENT, ABSENT), ("M", 2, 1, ABSENT, 4)), ["id"])
    assert FROM not in table.column_names
    row = only(table, 1)
    assert (row[OP], row[HAS_PREFIX + "a"], row["b"]) == ("U", False, 4)


def test_a_deleted_row_that_moves_is_known_to_be_null() -> None:
    """After the end of a key nothing of it remains to be had."""
    table = fold(changes(("D", 1), ("M", 1, 2, ABSENT, 4)), ["id"])
    assert FROM not in table.column_names
    assert (only(table, 2)["a"], HAS_PREFIX + "a" in table.column_names) == (None, False)


def test_keys_that_swap_across_pieces() -> None:
    """Folded pieces speak of what was stored before each of them, in whatever order they list."""
    swap = [("M", 1, 9, ABSENT, ABSENT), ("M", 2, 1, ABSENT, ABSENT), ("M", 9, 2, ABSENT, ABSENT)]
    piece = fold(changes(*swap), ["id"])
    twice = fold(concat_changes([piece, piece]), ["id"])
    stored = {1: {"a": 10, "b": 11}, 2: {"a": 20, "b": 21}}
    assert written(stored, piece) == {1: stored[2], 2: stored[1]}
    assert written(stored, twice) == stored


IDS = st.sampled_from([1, 2, 3, None])
VALUES = st.sampled_from([0, 1, None, ABSENT])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("U"), IDS, VALUES, VALUES),
        st.tuples(st.just("D"), IDS),
        st.tuples(st.just("M"), IDS, IDS, VALUES, VALUES).filter(lambda e: e[1] != e[2]),
    ),
    max_size=10,
)
STORED = st.dictionaries(
    IDS, st.fixed_dictionaries({"a": st.integers(5, 99), "b": st.integers(100, 199)})
)


@settings(max_examples=300)
@given(EVENTS, STORED)
def test_fold_is_the_same_as_one_by_one(events: Sequence[Row], stored: Any) -> None:
    """Whatever the target held, the net changes lead to the same rows, one row per key."""
    table = changes(*events)
    folded = fold(table, ["id"])
    assert written(stored, folded) == applied(stored, table)
    assert len(set(folded["id"].to_pylist())) == folded.num_rows
    again = fold(folded, ["id"])
    assert written(stored, again) == written(stored, folded)


@settings(max_examples=300)
@given(EVENTS, EVENTS, STORED)
def test_fold_in_parts(first: Sequence[Row], second: Sequence[Row], stored: Any) -> None:
    """Pieces folded on their own, then together, lead to what all events lead to."""
    a, b = changes(*first), changes(*second)
    expected = applied(applied(stored, a), b)
    folded = concat_changes([fold(a, ["id"]), fold(b, ["id"])])
    assert written(stored, fold(folded, ["id"])) == expected
    assert written(stored, fold(concat_changes([fold(a, ["id"]), b]), ["id"])) == expected
    assert written(stored, fold(concat_changes([a, b]), ["id"])) == expected
