"""Net changes: the last event of a key wins, and what a row lacks comes from before it."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import HAS_PREFIX, OP, KeyBound
from changes.routes.fold import (
    concat_changes,
    fold,
    has_deletes,
    has_rows,
    key_bounds,
    partial_columns,
)

ABSENT = object()
A, B = HAS_PREFIX + "a", HAS_PREFIX + "b"


def changes(*rows: Sequence[Any], columns: Sequence[str] = ("id", "a", "b")) -> pa.Table:
    """Rows as (op, value, …); ABSENT where the row does not carry the column."""
    table: dict[str, Any] = {OP: pa.array([row[0] for row in rows], pa.string())}
    flags = {}
    for place, name in enumerate(columns, 1):
        values = [row[place] for row in rows]
        kind = pa.string() if name == "key" else pa.int64()
        table[name] = pa.array([None if v is ABSENT else v for v in values], kind)
        if ABSENT in values:
            flags[HAS_PREFIX + name] = pa.array([v is not ABSENT for v in values])
    return pa.table(table | flags)


def test_last_event_wins() -> None:
    """Of several changes of a key the last remains, in the order of these."""
    table = changes(("U", 1, 1, 1), ("U", 2, 2, 2), ("U", 1, 3, 3), ("D", 3, None, None))
    assert fold(table, ["id"]).to_pylist() == [
        {OP: "U", "id": 2, "a": 2, "b": 2},
        {OP: "U", "id": 1, "a": 3, "b": 3},
        {OP: "D", "id": 3, "a": None, "b": None},
    ]


def test_nothing_to_fold() -> None:
    """Distinct keys stay as they are; no row stays no row, without presence columns."""
    table = changes(("U", 1, 1, 1), ("D", 2, None, None))
    assert fold(table, ["id"]).equals(table)
    empty = changes(("U", 1, ABSENT, 1)).slice(0, 0)
    assert fold(empty, ["id"]).column_names == [OP, "id", "a", "b"]


def test_delete_after_insert_stays_a_delete() -> None:
    """A row that came and went in one batch may have been in the target before: it must go."""
    table = changes(("U", 1, 1, 1), ("D", 1, None, None))
    assert fold(table, ["id"])[OP].to_pylist() == ["D"]


def test_composite_keys_with_nulls() -> None:
    """All parts of a key count; a null equals a null and nothing else."""
    rows = [
        ("U", 1, None, 1),
        ("U", 1, 0, 2),
        ("U", None, 1, 3),
        ("U", 1, None, 4),
        ("U", None, 1, 5),
    ]
    table = changes(*rows, columns=("id", "key2", "v"))
    assert fold(table, ["id", "key2"])["v"].to_pylist() == [2, 4, 5]


def test_text_keys_keep_case() -> None:
    """Keys are compared as they stand."""
    table = changes(("U", "a", 1), ("U", "A", 2), ("U", "a ", 3), columns=("key", "v"))
    assert fold(table, ["key"]).num_rows == 3


def test_zero_has_one_sign() -> None:
    """0.0 and -0.0 are one key, as they are in Spark."""
    table = pa.table({OP: ["U", "U"], "k": [0.0, -0.0], "v": [1, 2]})
    assert fold(table, ["k"])["v"].to_pylist() == [2]


def test_pieces_of_text_keys() -> None:
    """A key column in several chunks is one column."""
    table = pa.concat_tables([changes(("U", "x", 1), columns=("key", "v"))] * 3)
    assert fold(table, ["key"]).num_rows == 1


def test_no_key_is_an_error() -> None:
    """A changelog has no net changes."""
    with pytest.raises(ValueError, match="key"):
        fold(changes(("U", 1, 1, 1)), [])


def test_absent_column_is_inherited() -> None:
    """A column that the last change lacks comes from the latest that had it; its flag goes."""
    table = changes(("U", 1, 5, 5), ("U", 1, ABSENT, 6), ("U", 1, ABSENT, ABSENT))
    assert fold(table, ["id"]).to_pylist() == [{OP: "U", "id": 1, "a": 5, "b": 6}]


def test_null_is_not_absent() -> None:
    """A column set to null is null, whatever it was before."""
    table = changes(("U", 1, 5, 5), ("U", 1, None, ABSENT))
    assert fold(table, ["id"]).to_pylist() == [{OP: "U", "id": 1, "a": None, "b": 5}]


def test_what_no_change_carried_stays_absent() -> None:
    """Then the stored value stays, told by the presence column."""
    table = changes(("U", 1, 5, 5), ("U", 2, ABSENT, 6), ("U", 2, ABSENT, 7))
    folded = fold(table, ["id"])
    assert folded.to_pylist() == [
        {OP: "U", "id": 1, "a": 5, "b": 5, A: True},
        {OP: "U", "id": 2, "a": None, "b": 7, A: False},
    ]


def test_delete_ends_inheritance() -> None:
    """After a delete nothing stored remains: what the next row lacks is null, known to be."""
    table = changes(("U", 1, 5, 5), ("D", 1, None, None), ("U", 1, ABSENT, 6))
    assert fold(table, ["id"]).to_pylist() == [{OP: "U", "id": 1, "a": None, "b": 6}]


def test_values_in_a_delete_are_not_inherited() -> None:
    """Even where a delete's row carries values of the row that it ends."""
    table = changes(("D", 1, 5, 5), ("U", 1, ABSENT, 6))
    assert fold(table, ["id"]).to_pylist() == [{OP: "U", "id": 1, "a": None, "b": 6}]


def test_concat_of_pieces_with_other_columns() -> None:
    """A column that a piece does not have was not carried by its updates."""
    first = changes(("U", 1, 1), ("D", 2, None), columns=("id", "a"))
    second = changes(("U", 3, 3, 3))
    table = concat_changes([first, second])
    assert table.column_names == [OP, "id", "a", "b", B]
    assert table[B].to_pylist() == [False, True, True]
    assert concat_changes([second, first])[B].to_pylist() == [True, False, True]


def test_concat_keeps_flags() -> None:
    """A piece without a presence column carried the column everywhere."""
    table = concat_changes([changes(("U", 1, 1, 1)), changes(("U", 2, ABSENT, 2))])
    assert table[A].to_pylist() == [True, False]


def test_concat_widens() -> None:
    """Types of the pieces are unified as the lake would."""
    narrow = pa.table({OP: ["U"], "id": pa.array([1], pa.int32())})
    wide = pa.table({OP: ["U"], "id": pa.array([2**40], pa.int64())})
    for pieces in ([narrow, wide], [wide, narrow]):
        assert concat_changes(pieces)["id"].type == pa.int64()


def test_concat_that_cannot_be() -> None:
    """No piece, or types that have nothing in common."""
    with pytest.raises(ValueError, match="no piece"):
        concat_changes([])
    with pytest.raises(ValueError, match="column v is int64 in one piece and string"):
        concat_changes([pa.table({OP: ["U"], "v": [1]}), pa.table({OP: ["U"], "v": ["x"]})])


def test_concat_of_changelogs() -> None:
    """A changelog has no presence columns: what a row lacks is null."""
    pieces = [pa.table({"_op": ["I"], "a": [1]}), pa.table({"_op": ["I"], "a": [1], "b": [2]})]
    assert concat_changes(pieces).to_pylist() == [
        {"_op": "I", "a": 1, "b": None},
        {"_op": "I", "a": 1, "b": 2},
    ]


def test_what_a_batch_holds() -> None:
    """Deletes and partial columns are found by their columns."""
    table = changes(("U", 1, ABSENT, 1), ("D", 2, None, None))
    assert has_deletes(table)
    assert not has_deletes(table.slice(0, 1))
    assert has_rows(table)
    deleted = table.filter(pc.equal(table[OP], "D"))
    assert not has_rows(deleted)
    assert not has_rows(table.slice(0, 0))
    assert partial_columns(table) == ("a",)
    assert partial_columns(changes(("U", 1, 1, 1))) == ()


def test_key_bounds() -> None:
    """Bounds are typed and cover the deletes."""
    table = changes(("D", -7, None), ("U", 5, 1), columns=("id", "a"))
    assert key_bounds(table, ["id"]) == (KeyBound("id", -7, 5),)
    assert key_bounds(table.slice(0, 0), ["id"]) == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["b", "a", "\u00e9"]), ("a", "\u00e9")),
        (pa.array([Decimal("1.50"), Decimal("-2.25")]), (Decimal("-2.25"), Decimal("1.50"))),
        (
            pa.array([datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)]),
            (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
        ),
        (
            pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us")),
            (datetime.datetime(2024, 1, 1),) * 2,
        ),
        (pa.array([1, None]), None),
        (pa.array([1.5, 2.5]), None),
        (pa.array([0], pa.timestamp("us", tz="UTC")), None),
    ],
)
def test_key_bounds_by_type(values: pa.Array, expected: tuple[object, object] | None) -> None:
    """No bounds for keys that hold nulls, for floats, and for points in time."""
    found = key_bounds(pa.table({"k": values}), ["k"])
    assert found == (() if expected is None else (KeyBound("k", *expected),))


def test_large_batches_of_several_chunks() -> None:
    """Size and chunks, which set threads to work, change neither rows nor their order."""
    rows = 70_000
    ids = [n * 7919 % 30_011 for n in range(rows)]
    carried = [n % 3 != 0 and key % 5 != 0 for n, key in enumerate(ids)]
    table = pa.table(
        {
            OP: ["U"] * rows,
            "id": ids,
            "a": [n if has else None for n, has in enumerate(carried)],
            A: carried,
        }
    )
    pieces = pa.concat_tables([table.slice(start, 9_001) for start in range(0, rows, 9_001)])
    expected: dict[int, int | None] = {}
    for n, (key, has) in enumerate(zip(ids, carried, strict=True)):
        value = n if has else expected.get(key)
        expected.pop(key, None)
        expected[key] = value
    folded = fold(pieces, ["id"])
    assert folded["id"].to_pylist() == list(expected)
    assert folded["a"].to_pylist() == list(expected.values())
    assert folded[A].to_pylist() == [value is not None for value in expected.values()]


# -- against a plain table in a dict --------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(
        st.sampled_from("UUUD"),
        st.sampled_from([1, 2, 3, None]),
        st.sampled_from([0, 1, None, ABSENT]),
        st.sampled_from([0, 1, None, ABSENT]),
    ).map(lambda e: (e[0], e[1], None, None) if e[0] == "D" else e),
    max_size=12,
)
STORED = st.dictionaries(
    st.sampled_from([1, 2, 3, None]),
    st.fixed_dictionaries({"a": st.integers(5, 6), "b": st.none()}),
)


def applied(stored: dict[Any, dict[str, Any]], table: pa.Table) -> dict[Any, dict[str, Any]]:
    """What a target holds after the rows of a table were applied one by one."""
    result = copy.deepcopy(stored)
    for row in table.to_pylist():
        if row[OP] == "D":
            result.pop(row["id"], None)
            continue
        target = result.setdefault(row["id"], {"a": None, "b": None})
        for name in ("a", "b"):
            if row.get(HAS_PREFIX + name, True):
                target[name] = row[name]
    return result


@settings(max_examples=300)
@given(EVENTS, STORED)
def test_fold_is_the_same_as_one_by_one(events: list[Any], stored: Any) -> None:
    """Whatever the target held, the net changes lead to the same rows, one row per key."""
    table = changes(*events)
    folded = fold(table, ["id"])
    assert applied(stored, folded) == applied(stored, table)
    keys = folded["id"].to_pylist()
    assert sorted(map(str, keys)) == sorted({str(event[1]) for event in events})
    assert fold(folded, ["id"]).equals(folded)


@settings(max_examples=300)
@given(EVENTS, EVENTS)
def test_fold_in_parts(first: list[Any], second: list[Any]) -> None:
    """Folding folded pieces gives what folding all at once gives."""
    a, b = changes(*first), changes(*second)
    parts = fold(concat_changes([fold(a, ["id"]), fold(b, ["id"])]), ["id"])
    whole = fold(concat_changes([a, b]), ["id"])
    order = sorted(parts.column_names)
    assert parts.select(order).to_pylist() == whole.select(order).to_pylist()
