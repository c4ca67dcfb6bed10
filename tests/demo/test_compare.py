"""The comparison: equal tables say nothing, each kind of difference is named."""

from __future__ import annotations

import pyarrow as pa
import pytest

from demo.compare import compare, compare_all


def _table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


ROWS = _table(id=[1, 2, 3], text=["a", None, "ß"], score=[0.5, None, -0.25])


def test_equal_tables_in_another_order() -> None:
    """The order of the rows and of the columns is no difference."""
    found = ROWS.take([2, 0, 1]).select(["score", "id", "text"])
    assert compare(ROWS, found, ["id"]) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            _table(id=[1, 2, 3], text=["a", None, "x"], score=[0.5, None, -0.25]),
            "row id=3, column text: expected 'ß', found 'x'",
        ),
        (
            _table(id=[1, 2, 3], text=["a", "", "ß"], score=[0.5, None, -0.25]),
            "row id=2, column text: expected None, found ''",
        ),
        (
            _table(id=[1, 2, 3], text=["a", None, "ß"], score=[0.5, None, None]),
            "row id=3, column score: expected -0.25, found None",
        ),
        (ROWS.slice(0, 2), "the row id=3 is missing"),
        (
            pa.concat_tables([ROWS, _table(id=[9], text=["z"], score=[1.0])]),
            "the row id=9 should not be there",
        ),
        (pa.concat_tables([ROWS, ROWS.slice(1, 1)]), "2 rows for key id=2, expected 1"),
        (ROWS.drop_columns("text"), "column text is missing"),
        (ROWS.append_column("more", [[1, 2, 3]]), "column more should not be there"),
        (
            ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())),
            "column id is int32, expected int64",
        ),
    ],
)
def test_a_difference_is_named(found: pa.Table, expected: str) -> None:
    """Table, key, column, expected and found are told for each kind of difference."""
    assert compare(ROWS, found, ["id"]) == [expected]


def test_many_differences_are_counted() -> None:
    """The first few are shown, and how many there are."""
    ours, theirs = (
        _table(id=list(range(100)), n=[0] * 100),
        _table(id=list(range(100)), n=[1] * 100),
    )
    lines = compare(ours, theirs, ["id"])
    assert len(lines) == 6
    assert lines[-1] == "100 differing values in all"


def test_composite_keys_tell_rows_apart() -> None:
    """Rows that share one part of the key are not mixed up."""
    ours = _table(a=["x", "x", "y"], b=[1, 2, 1], v=[10, 20, 30])
    theirs = _table(a=["x", "x", "y"], b=[1, 2, 1], v=[10, 30, 20])
    assert compare(ours, theirs, ["a", "b"]) == [
        "row a='x', b=2, column v: expected 20, found 30",
        "row a='y', b=1, column v: expected 30, found 20",
    ]


def test_missing_and_extra_tables() -> None:
    """A table that only one side has is a difference, and is named."""
    lines = compare_all({"a": ROWS, "b": ROWS}, {"b": ROWS, "c": ROWS}, {"a": ["id"], "b": ["id"]})
    assert lines == ["a: the table is missing", "c: nobody expected this table"]
