"""What is counted stands in the singular where it is one."""

from __future__ import annotations

from settings.counted import counted


def test_one_and_more() -> None:
    """Also of a phrase with its verb; none is more than one."""
    assert [counted(n, "table") for n in (0, 1, 1200)] == ["0 tables", "1 table", "1,200 tables"]
    assert counted(1, "row is", "rows are") == "1 row is"
    assert counted(2, "row is", "rows are") == "2 rows are"
