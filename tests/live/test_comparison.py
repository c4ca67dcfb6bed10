"""Differences between a table of the source and the lake's."""

from __future__ import annotations

from collections.abc import Mapping

from tests.live.comparison import SHOWN, Found, differences

TWO = Found((("id", "number"), ("Name", "text")), (("1", "a"), ("2", None)), ("id",))


def test_equal_rows_in_any_order_are_equal() -> None:
    """Neither order nor the case of a column's name counts."""
    lake: list[Mapping[str, object]] = [{"name": None, "id": 2}, {"name": "a", "id": 1}]
    assert differences(TWO, lake, ("id", "name")) == []


def test_a_changed_cell_is_named_with_its_key() -> None:
    """One line for a row that is there with other values."""
    lake: list[Mapping[str, object]] = [{"id": 1, "Name": "b"}, {"id": 2, "Name": None}]
    assert differences(TWO, lake, ("id", "Name")) == ["id='1': Name is 'b', not 'a'"]


def test_rows_of_one_side_are_shown_whole() -> None:
    """Lost and doubled rows."""
    lake = [{"id": 2, "Name": None}, {"id": 2, "Name": None}]
    found = differences(TWO, lake, ("id", "Name"))
    assert found == ["only the source has id='1', Name='a'", "only the lake has id='2', Name=None"]


def test_a_column_that_the_lake_lacks_is_null_there() -> None:
    """It shows with the first row behind it; until then it may only be NULL."""
    null = Found(TWO.columns, (("1", None),), ("id",))
    assert differences(null, [{"id": 1}], ("id",)) == []
    assert differences(TWO, [{"id": 1}, {"id": 2}], ("id",)) == [
        "column Name is missing among ['id']"
    ]


def test_a_column_that_only_the_lake_has_counts_where_none_is_kept() -> None:
    """A dropped column stays by default."""
    lake: list[Mapping[str, object]] = [{"id": 1, "Old": 3}]
    null = Found((("id", "number"),), (("1",),), ("id",))
    assert differences(null, lake, ("id", "Old")) == []
    assert differences(null, lake, ("id", "Old"), keeps=False) == ["column Old is still there"]


def test_a_table_that_the_lake_lacks_equals_one_without_rows() -> None:
    """Its first row makes it."""
    empty = Found(TWO.columns, (), ("id",))
    assert differences(empty, None, ()) == []
    assert differences(TWO, None, ()) == ["the lake has no such table"]


def test_many_differences_are_counted() -> None:
    """A report stays short."""
    rows = tuple((str(number), "a") for number in range(SHOWN + 3))
    found = differences(Found(TWO.columns, rows, ("id",)), [], ("id", "Name"))
    assert len(found) == SHOWN + 1
    assert found[-1] == f"{SHOWN + 3} differences in all"
