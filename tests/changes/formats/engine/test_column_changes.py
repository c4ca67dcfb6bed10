"""How two lists of columns differ, and two sets of types."""

from __future__ import annotations

from changes.formats.engine.column_changes import (
    ColumnChange,
    ListedType,
    changed_columns,
    changed_types,
)

INT, LONG = ListedType("int32"), ListedType("int64")


def test_lists_of_columns_differ_by_column() -> None:
    """New, gone, another type: a wider one too, for USING may compute anything."""
    was = {"id": INT, "a": INT, "b": INT}
    found = list(changed_columns("s.t", was, {"id": INT, "b": LONG, "c": INT}))
    assert found == [
        ColumnChange("type", "b", "column b from int32 to int64", "s.t"),
        ColumnChange("new", "c", "column c is new", "s.t"),
        ColumnChange("gone", "a", "column a is gone", "s.t"),
    ]
    assert list(changed_columns("s.t", was, dict(reversed(was.items())))) == []


def test_words_of_the_source_count_where_both_lists_have_them() -> None:
    """That a connector begins to pass them on, or ends to, changes no column."""
    told, wider = ListedType("string", "VARCHAR(10)"), ListedType("string", "VARCHAR(20)")
    assert list(changed_columns("s.t", {"a": ListedType("string")}, {"a": told})) == []
    assert list(changed_columns("s.t", {"a": told}, {"a": ListedType("string")})) == []
    (change,) = changed_columns("s.t", {"a": told}, {"a": wider})
    assert change.what == "column a from VARCHAR(10) to VARCHAR(20)"


def test_types_of_mysql_count_where_they_may_hold_less() -> None:
    """Columns that only one message names are no change: images may be minimal."""
    was = {"a": "varchar(10)", "b": "int(11)", "c": "frobnicate", "gone": "int"}
    now = {"a": "varchar(5)", "b": "bigint(20)", "c": "frobnicates", "new": "int"}
    assert [change.what for change in changed_types(was, now)] == [
        "column a from varchar(10) to varchar(5)",
        "column c from frobnicate to frobnicates",
    ]
