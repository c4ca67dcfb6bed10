"""How many rows are fetched at a time: few where a row may be long."""

from __future__ import annotations

import pytest

from changes.model.model import TableName
from changes.sql.forms import Form
from databases.base.fetching import BYTES, MOST_ROWS, MOST_UNBOUNDED_ROWS, fetch_rows
from databases.base.port import SourceColumn, SourceTable


def table(*types: str, rows: int = 0, size: int = 0) -> SourceTable:
    columns = tuple(SourceColumn("a", type_, True, Form.TEXT) for type_ in types)
    return SourceTable(TableName("a", "b"), columns, (), rows, size, "")


@pytest.mark.parametrize(
    ("types", "rows"),
    [
        (("int(11)", "decimal(10,2)", "varchar(60)"), MOST_ROWS),
        (("integer", "character varying(60)", "timestamp(6) without time zone"), MOST_ROWS),
        (("varchar(16000)",), BYTES // 64000),
        (("int", "text"), MOST_UNBOUNDED_ROWS),
        (("integer", "character varying"), MOST_UNBOUNDED_ROWS),
        (("integer[]",), MOST_UNBOUNDED_ROWS), (("numeric",), MOST_UNBOUNDED_ROWS),
        (("geometry",), MOST_UNBOUNDED_ROWS), (("longblob",), MOST_UNBOUNDED_ROWS),
    ],
)  # fmt: skip
def test_types_that_bound_a_row_allow_many(types: tuple[str, ...], rows: int) -> None:
    """Any other type may hold a gigabyte."""
    assert fetch_rows(table(*types)) == rows


def test_long_rows_are_fetched_one_by_one() -> None:
    """By the mean, with a margin; also where the server has no numbers."""
    assert fetch_rows(table("longblob", rows=100, size=100 << 20)) == 1
    assert fetch_rows(table("longblob", rows=100_000, size=100_000 * 10_000)) == 13
    assert fetch_rows(table("longblob")) == MOST_UNBOUNDED_ROWS
    assert fetch_rows(None) == MOST_UNBOUNDED_ROWS
